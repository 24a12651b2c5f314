from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from datapipe_tokenizers import train_bpe

# No deadlines: machines are shared and noisy. The gate tries the same examples every time.
settings.register_profile("project", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("project")

_WORDS = ("the quick brown fox jumps over a lazy dog while seven wizards mix potions", "0123456789")


@pytest.fixture(scope="session")
def tokenizer_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small byte-level BPE tokenizer whose EOS is <|endoftext|>."""
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    path.write_bytes(train_bpe(iter(_WORDS * 20), vocab_size=300))
    return path


@pytest.fixture(scope="session")
def other_tokenizer_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another tokenizer than `tokenizer_path`."""
    path = tmp_path_factory.mktemp("other") / "tokenizer.json"
    path.write_bytes(train_bpe(iter(["something else entirely, said she"] * 20), vocab_size=290))
    return path
