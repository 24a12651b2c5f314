from __future__ import annotations

import re
from pathlib import Path

import pytest

from datapipe_tokenizers import TokenizerError, TokenizerFileError, TokenizerFormatError, load
from datapipe_tokenizers.files import read_files


def test_a_file_stands_for_itself(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_bytes(b"A")
    (tmp_path / "tokenizer_config.json").write_bytes(b"B")
    assert read_files(tmp_path / "mine.json") == {"tokenizer.json": b"A"}


def test_a_folder_gives_the_files_that_matter(tmp_path: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        (tmp_path / name).write_text(name)
    files = read_files(str(tmp_path))
    assert list(files) == ["tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"]


def test_missing_path_names_near_ones(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").touch()
    with pytest.raises(
        TokenizerFileError, match=r"doesn't exist\. Did you mean .*tokenizer\.json\?"
    ):
        load(tmp_path / "tokeniser.json")


def test_missing_path_names_a_near_folder(tmp_path: Path) -> None:
    (tmp_path / "llama3").mkdir()
    with pytest.raises(TokenizerFileError, match=r"Did you mean .*llama3"):
        load(tmp_path / "lama3" / "tokenizer.json")


def test_name_on_a_hub_is_not_downloaded() -> None:
    with pytest.raises(TokenizerFileError, match="names on a hub aren't downloaded"):
        load("some-organisation/some-model")


@pytest.mark.parametrize(
    ("names", "found"),
    [([], "found: nothing"), (["vocab.txt", "a.txt"], "found: a.txt, vocab.txt")],
    ids=["empty", "others"],
)
def test_folder_without_tokenizer_json(tmp_path: Path, names: list[str], found: str) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(TokenizerFileError, match=re.escape(found)) as caught:
        load(tmp_path)
    assert caught.value.exit_code == 2
    assert caught.value.path == str(tmp_path)
    assert str(caught.value).startswith(f"folder {tmp_path} has no tokenizer.json")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "isn't JSON"),
        (b'{"version": "1.0", "model": {"ty', "isn't JSON"),
        (b"\xff\x0e\x0a\x05<unk>\xff", "isn't JSON"),
        (b"[1, 2]", r"has no `model` \(found: list\)"),
        (b'{"a": 0, "b": 1}', r"has no `model` \(found: a, b\)"),
        (b'{"model": {"type": "Future"}}', r"tokenizers` \d.* can't read the tokenizer"),
    ],
    ids=["empty", "cut off", "binary", "list", "vocabulary only", "unknown model"],
)
def test_file_that_is_no_tokenizer(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(data)
    with pytest.raises(TokenizerFormatError, match=message) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_huge_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datapipe_tokenizers.files.MAX_FILE_BYTES", 3)
    (tmp_path / "tokenizer.json").write_bytes(b"1234")
    with pytest.raises(TokenizerFileError, match="has 4 bytes, more than any tokenizer"):
        load(tmp_path / "tokenizer.json")


def test_unreadable_file_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "tokenizer.json").touch()
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(TokenizerError, match="can't be read: Permission denied"):
        load(tmp_path)
