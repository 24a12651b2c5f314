from __future__ import annotations

import errno
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import datapipe
from datapipe.engine import BuildOptions, Request, train_tokenizer
from datapipe.errors import DatasetError, FailedError, RecipeError, UsageError

ROOT = Path(__file__).resolve().parents[3]
_BYTES = os.fsdecode(b"\xff")


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "the fox"}\n{"text": "jumps"}\n')
    return path


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"source": "a b"}, r"source 'a b': not a name; write letters"),
        ({"source": "x" * 101}, r"source 'xxx.*\.\.\. \(103\): not a name.*100 at most"),
        ({"text_field": "a..b"}, r"text field 'a..b': .*dots between"),
    ],
    ids=lambda case: str(case)[:30],
)
def test_a_value_that_no_recipe_has_is_a_recipe_error(
    raw: Path, tokenizer_path: Path, tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(RecipeError, match=message):
        datapipe.build(raw, out=tmp_path / "ds", tokenizer=tokenizer_path, workers=1, **given)
    made = datapipe.build(raw, out=tmp_path / "ds", tokenizer=tokenizer_path, workers=1)
    with pytest.raises(RecipeError, match=message):
        datapipe.append(made.url, raw, workers=1, **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"inputs": ()}, "no input is given"),
        ({"inputs": ("",)}, "input 1 is empty"),
        ({"inputs": (_BYTES,)}, r"input 1 isn't UTF-8 text \('\\udcff'\)"),
        ({"source": ""}, "--source is empty"),
        ({"text_field": " "}, "--text-field is empty"),
        ({"eos": ""}, "--eos is empty"),
        ({"tokenizer": ""}, "--tokenizer is empty"),
        ({"max_dropped_fraction": math.nan}, "--max-dropped is nan; give a share"),
        ({"max_quarantined_fraction": 1.5}, "--max-quarantined is 1.5; give a share"),
    ],
    ids=str,
)
def test_an_unusable_request_is_a_usage_error(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Request(**{"inputs": ("a",), **given})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"workers": 0}, "workers is 0; give 1 to 1,024"),
        ({"workers": 1 << 40}, "give 1 to 1,024"),
        ({"work": ""}, "work folder's name is empty"),
        ({"author": _BYTES}, "author isn't UTF-8"),
        ({"reason": _BYTES}, "reason isn't UTF-8"),
    ],
    ids=str,
)
def test_unusable_build_options_are_usage_errors(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        BuildOptions(**given)


def test_an_output_that_is_a_file_is_a_usage_error(raw: Path, tokenizer_path: Path) -> None:
    with pytest.raises(UsageError, match="is a file, and a dataset is a folder"):
        datapipe.build(raw, out=raw, tokenizer=tokenizer_path, workers=1)


def test_a_script_without_the_main_guard_is_told_of_it(
    raw: Path, tokenizer_path: Path, tmp_path: Path
) -> None:
    raw.with_name("b.jsonl").write_text('{"text": "another"}\n')
    script = tmp_path / "script.py"
    script.write_text(
        "import datapipe\nfrom datapipe.engine import units\nunits.UNIT_BYTES = 10\n"
        f"datapipe.build([{str(raw)!r}, {str(raw.with_name('b.jsonl'))!r}], workers=2, "
        f"out={str(tmp_path / 'ds')!r}, tokenizer={str(tokenizer_path)!r})\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tokenizers'}"}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env=environment, check=False
    )
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("datapipe.errors.ResumableError: a worker process was killed before")
    assert 'put the call under `if __name__ == "__main__":`' in last
    assert "bootstrapping" not in done.stderr


def test_an_output_of_too_long_a_name_is_said_so(raw: Path, tokenizer_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"File name too long.*use a shorter path"):
        datapipe.build(raw, out="x" * 300, tokenizer=tokenizer_path, workers=1)


def test_a_tokenizer_that_cannot_be_written_says_what_to_do(
    raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, *_: Any, **__: Any) -> Any:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(FailedError, match=r"t\.json can't be written: Read-only.*mount options"):
        train_tokenizer([str(raw)], out=tmp_path / "t.json", vocab_size=300)


@pytest.mark.parametrize(
    ("inputs", "tokenizer"),
    [("raw", "https://u:S3CRET@host/t.json?sig=S3CRET"), ("https://u:S3CRET@host/r.yaml", None)],
    ids=["tokenizer", "recipe"],
)
def test_secrets_of_urls_that_are_none_of_ours_are_not_repeated(
    raw: Path, tmp_path: Path, inputs: str, tokenizer: str | None
) -> None:
    given = str(raw) if inputs == "raw" else inputs
    with pytest.raises(UsageError, match=r"host.* is a URL, and it is read from a local") as caught:
        datapipe.build(given, out=tmp_path / "ds", tokenizer=tokenizer, workers=1)
    assert "S3CRET" not in str(caught.value)
