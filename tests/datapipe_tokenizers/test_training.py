from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from datapipe_tokenizers import TrainingError, load_files, train_bpe

TRAIN = """
import hashlib, datapipe_tokenizers
texts = (f"word{i % 91} number {i % 37} of {i}\\n" for i in range(3000))
print(hashlib.sha256(datapipe_tokenizers.train_bpe(texts, vocab_size=600)).hexdigest())
"""


def test_same_texts_give_the_same_bytes_in_every_process_and_with_any_threads() -> None:
    texts = (f"word{i % 91} number {i % 37} of {i}\n" for i in range(3000))
    here = hashlib.sha256(train_bpe(texts, vocab_size=600)).hexdigest()
    for environment in ({"RAYON_NUM_THREADS": "4", "TOKENIZERS_PARALLELISM": "true"}, {}):
        there = subprocess.run(
            [sys.executable, "-c", TRAIN],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.strip() == here


def test_special_tokens_come_first_then_all_bytes() -> None:
    data = train_bpe([], vocab_size=300, special_tokens=("<|endoftext|>", "<|pad|>"))
    tokenizer = load_files({"tokenizer.json": data})
    assert tokenizer.special_tokens == {"<|endoftext|>": 0, "<|pad|>": 1}
    assert (tokenizer.eos_id, tokenizer.vocab_size) == (0, 258)


def test_vocabulary_has_the_size_asked_for() -> None:
    texts = [f"{i * i} {i}" for i in range(2000)]
    assert load_files({"tokenizer.json": train_bpe(texts, vocab_size=400)}).vocab_size == 400


@pytest.mark.parametrize(
    ("vocab_size", "specials", "message"),
    [
        (256, ("<|endoftext|>",), "vocab_size 256 has no room .* use 257 or more"),
        (1000, ("<a>", "<a>"), "an empty or repeated one"),
        (1000, ("",), "an empty or repeated one"),
    ],
    ids=["too small", "twice", "empty"],
)
def test_training_is_refused(vocab_size: int, specials: tuple[str, ...], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        train_bpe(["text"], vocab_size=vocab_size, special_tokens=specials)


def test_training_leaves_the_environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("true", None):
        monkeypatch.delenv("TOKENIZERS_PARALLELISM", raising=False)
        if value:
            monkeypatch.setenv("TOKENIZERS_PARALLELISM", value)
        train_bpe(["text"], vocab_size=257)
        assert os.environ.get("TOKENIZERS_PARALLELISM") == value
