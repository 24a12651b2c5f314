"""Which format a tokenizer's files are in: told by what they hold, not by what they are called."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from datapipe_tokenizers.errors import TokenizerFormatError
from datapipe_tokenizers.huggingface import HuggingFaceFile
from datapipe_tokenizers.model import Model
from datapipe_tokenizers.sentencepiece import SentencePieceModel
from datapipe_tokenizers.tekken import tekken_model
from datapipe_tokenizers.tiktoken import rank_model

__all__ = ["ENCODING", "MAIN_FILES", "RANKS", "file_kind", "open_model"]

TOKENIZER_JSON = "tokenizer.json"
TEKKEN = "tekken.json"
SENTENCEPIECE = "tokenizer.model"
RANKS = "ranks.tiktoken"
ENCODING = "encoding.json"

MAIN_FILES = (TOKENIZER_JSON, TEKKEN, SENTENCEPIECE, RANKS)
"""Names under which a dataset keeps a tokenizer, one a format; of a folder the first is taken."""

_OPEN: dict[str, Callable[[Mapping[str, bytes]], Model]] = {
    TOKENIZER_JSON: lambda files: HuggingFaceFile(files[TOKENIZER_JSON]),
    TEKKEN: lambda files: tekken_model(files[TEKKEN]),
    SENTENCEPIECE: lambda files: SentencePieceModel(files[SENTENCEPIECE]),
    RANKS: lambda files: rank_model(files[RANKS], files[ENCODING]),
}
_RANK_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2} \d+\r?\n")
_PROTOBUF = b"\x0a"  # the first field of a SentencePiece model is a piece


def file_kind(data: bytes) -> str:
    """Returns under which of MAIN_FILES a file belongs; what isn't known is a tokenizer.json."""
    if _RANK_LINE.match(data):
        return RANKS
    if data.startswith(_PROTOBUF) and not data.lstrip().startswith((b"{", b"[")):
        return SENTENCEPIECE
    return TEKKEN if _is_tekken(data) else TOKENIZER_JSON


def open_model(files: Mapping[str, bytes]) -> Model:
    """Returns the tokenizer of `files`, by their canonical names.

    Raises:
        TokenizerFormatError: they hold none, or it can't be read.
        MissingPackageError: the library that reads it isn't installed.
    """
    main = next((name for name in MAIN_FILES if name in files), None)
    if main is None:
        raise TokenizerFormatError(
            f"no {TOKENIZER_JSON} among the tokenizer's files ({', '.join(sorted(files))}), nor "
            f"{', '.join(MAIN_FILES[1:])}; the tokenizer can't be loaded"
        )
    if main == RANKS and ENCODING not in files:
        raise TokenizerFormatError(
            f"{RANKS} has no {ENCODING} beside it, so how it splits text isn't known; "
            "the tokenizer can't be loaded"
        )
    return _OPEN[main](files)


def _is_tekken(data: bytes) -> bool:
    """Whether JSON has the keys of tekken; big files are looked at without parsing them twice."""
    if b'"default_num_special_tokens"' not in data:
        return False
    try:
        value = json.loads(data)
    except ValueError:
        return False
    return isinstance(value, dict) and "model" not in value and "vocab" in value
