from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CODE = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from datapipe.documents.unicode_words import cut_unicode
    from datapipe.documents.split import word_hash
import numpy as np
found = [str(w.message) for w in caught if "compiled kernels" in str(w.message)]
print(len(found), word_hash(np.zeros(3, np.uint8), 0, 3) > 0)
"""


def run(cache: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=ROOT,
        env={"XDG_CACHE_HOME": str(cache), "PATH": "", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_compiled_code_is_kept_in_a_folder_of_its_own(tmp_path: Path) -> None:
    assert run(tmp_path) == "0 True"
    assert list(tmp_path.glob("datapipe/kernels-*/**/*.nbi"))


def test_kernels_run_without_a_folder_to_write_with_one_warning(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert run(blocked) == "1 True"


@pytest.mark.parametrize("module", ["datapipe.documents", "datapipe.signals", "datapipe.engine"])
def test_numba_is_loaded_only_by_what_runs_kernels(module: str) -> None:
    code = f"import sys, {module}; print('numba' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
