from __future__ import annotations

import sys
from base64 import b64encode
from pathlib import Path

import pytest

from datapipe_tokenizers import (
    MissingPackageError,
    TokenizerFileError,
    load,
    load_files,
    train_bpe,
)


def test_missing_tokenizers_package_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, bpe_json: bytes
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'datapipe-train\[build\]'"):
        load_files({"tokenizer.json": bpe_json})
    with pytest.raises(MissingPackageError, match=r"pip install 'datapipe-train\[build\]'"):
        train_bpe([], vocab_size=300)


@pytest.mark.parametrize(
    ("package", "path"),
    [
        ("tiktoken", "cl100k_base"),
        ("tiktoken", "r50k_base.tiktoken"),
        ("tiktoken", "tekken.json"),
        ("sentencepiece", "a.model"),
    ],
)
def test_missing_package_of_a_format_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, path: str
) -> None:
    config = '"config": {"pattern": "a", "default_vocab_size": 1, "default_num_special_tokens": 0}'
    vocab = '"vocab": [{"rank": 0, "token_bytes": "YQ=="}]'
    (tmp_path / "tekken.json").write_text(f"{{{config}, {vocab}}}")
    ranks = b"".join(b"%s %d\n" % (b64encode(b"%d" % n), n) for n in range(50_256))
    (tmp_path / "r50k_base.tiktoken").write_bytes(ranks)
    (tmp_path / "a.model").write_bytes(b"\x0a\x0e\x0a\x05<unk>")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    remedy = rf"package `{package}` can't be imported.*pip install 'datapipe-train\[build\]'"
    with pytest.raises(MissingPackageError, match=remedy):
        load(path)


def test_missing_packages_leave_the_other_formats(
    monkeypatch: pytest.MonkeyPatch, bpe_json: bytes, tmp_path: Path
) -> None:
    for package in ("tiktoken", "sentencepiece"):
        monkeypatch.setitem(sys.modules, package, None)
    assert load_files({"tokenizer.json": bpe_json}).vocab_size == 380
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TokenizerFileError, match="doesn't exist"):
        load("no_encoding")
