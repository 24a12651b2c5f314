"""Tokenizers: loading, exact encoding, digests, training.

Owns the way from text to token ids and back, which token closes a document, and what identifies a
tokenizer; knows nothing of documents, datasets, stores or recipes.
"""

from datapipe_tokenizers.choice import BACKENDS, Difference, first_difference
from datapipe_tokenizers.errors import (
    BackendError,
    EndOfTextError,
    LimitError,
    MissingPackageError,
    SpecialTextError,
    TextError,
    TokenizerError,
    TokenizerFileError,
    TokenizerFormatError,
    TrainingError,
)
from datapipe_tokenizers.facts import Facts
from datapipe_tokenizers.special_text import SPECIAL_TEXT
from datapipe_tokenizers.tokenizer import Tokenizer, load, load_files
from datapipe_tokenizers.training import MAX_VOCAB_SIZE, train_bpe

__all__ = [
    "BACKENDS",
    "MAX_VOCAB_SIZE",
    "SPECIAL_TEXT",
    "BackendError",
    "Difference",
    "EndOfTextError",
    "Facts",
    "LimitError",
    "MissingPackageError",
    "SpecialTextError",
    "TextError",
    "Tokenizer",
    "TokenizerError",
    "TokenizerFileError",
    "TokenizerFormatError",
    "TrainingError",
    "first_difference",
    "load",
    "load_files",
    "train_bpe",
]
