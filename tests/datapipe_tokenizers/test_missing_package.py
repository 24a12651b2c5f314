from __future__ import annotations

import sys

import pytest

from datapipe_tokenizers import MissingPackageError, load_files, train_bpe


def test_missing_tokenizers_package_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, bpe_json: bytes
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'datapipe-train\[build\]'"):
        load_files({"tokenizer.json": bpe_json})
    with pytest.raises(MissingPackageError, match=r"pip install 'datapipe-train\[build\]'"):
        train_bpe([], vocab_size=300)
