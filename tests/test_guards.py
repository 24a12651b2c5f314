"""What the layout of the repository promises to everyone who imports from it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

import datapipe

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("torch", "numba", "pyarrow", "ray", "s3fs", "fsspec", "obstore", "botocore")


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_tokenizers_folder_is_no_package() -> None:
    assert [path.name for path in (ROOT / "tokenizers").glob("*.py")] == []


def test_import_tokenizers_at_the_root_gives_hugging_face() -> None:
    path = run_python("import tokenizers; tokenizers.Tokenizer; print(tokenizers.__file__)")
    assert not Path(path).is_relative_to(ROOT / "tokenizers")


def test_import_datapipe_is_light() -> None:
    code = f"import sys, datapipe; print([m for m in {HEAVY} if m in sys.modules])"
    assert run_python(code) == "[]"


def test_no_public_function_has_the_name_of_a_sub_package() -> None:
    packages = {path.parent.name for path in (ROOT / "datapipe").glob("*/__init__.py")}
    for name in packages.intersection(datapipe.__all__):
        assert isinstance(getattr(datapipe, name), ModuleType)


@pytest.mark.skipif(not (ROOT / "README.md").exists(), reason="a wheel needs README.md")
def test_wheel_holds_the_three_packages_and_nothing_else(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"datapipe", "datapipe_tokenizers", "tiering"}
    assert "datapipe_tokenizers/canary.json" in names
    assert "datapipe_tokenizers/py.typed" in names
