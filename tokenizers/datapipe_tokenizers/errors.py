"""Every error that datapipe_tokenizers raises on purpose, as one tree.

    TokenizerError                       exit_code 2: it can't be carried out as given
    |- TokenizerFileError (OSError)      the path isn't there, or holds no tokenizer
    |- TokenizerFormatError (ValueError) the file isn't a tokenizer that can be read
    |- EndOfTextError (ValueError)       no usable token that closes a document
    |- TextError (ValueError)            what was to be encoded isn't valid text
    |  |- LimitError                     the library that encodes can't take this text
    |  `- SpecialTextError               it holds the text of a special token, which is refused
    |- BackendError (RuntimeError)       the backend asked for can't be used
    |- TrainingError (ValueError)        a tokenizer can't be trained from this
    `- MissingPackageError (ImportError) an optional package isn't installed

A message has three parts: what happened, with the values; what follows; what to do.
"""

from __future__ import annotations

__all__ = [
    "BackendError",
    "EndOfTextError",
    "LimitError",
    "MissingPackageError",
    "SpecialTextError",
    "TextError",
    "TokenizerError",
    "TokenizerFileError",
    "TokenizerFormatError",
    "TrainingError",
]


class TokenizerError(Exception):
    """Root of all errors raised on purpose; `exit_code` is what a command line returns."""

    exit_code: int = 2


class TokenizerFileError(TokenizerError, OSError):
    """A tokenizer's path isn't there, can't be read or holds no tokenizer."""

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path

    def __str__(self) -> str:
        return str(self.args[0])


class TokenizerFormatError(TokenizerError, ValueError):
    """A file isn't a tokenizer that can be read."""


class EndOfTextError(TokenizerError, ValueError):
    """The tokenizer has no usable token that closes a document."""


class TextError(TokenizerError, ValueError):
    """What was to be encoded isn't valid text."""


class LimitError(TextError):
    """A text is beyond what the library that encodes it can do."""


class SpecialTextError(TextError):
    """A text holds the text of a special token where that is refused."""

    def __init__(self, message: str, *, row: int, token: str) -> None:
        super().__init__(message)
        self.row = row
        self.token = token


class BackendError(TokenizerError, RuntimeError):
    """The backend that was asked for can't be used with a tokenizer."""


class TrainingError(TokenizerError, ValueError):
    """A tokenizer can't be trained from what was given."""


class MissingPackageError(TokenizerError, ImportError):
    """An optional package isn't installed."""
