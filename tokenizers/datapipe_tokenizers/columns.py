"""Texts as encoders take them: one Arrow array of valid UTF-8 without nulls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

from datapipe_tokenizers.errors import TextError

__all__ = ["Texts", "as_column"]

Texts: TypeAlias = "pa.Array | pa.ChunkedArray | Sequence[str] | Sequence[bytes]"


def as_column(texts: Texts) -> pa.LargeStringArray:
    """Returns `texts` as one array.

    Raises:
        TextError: a null, something else than text, or text that isn't valid UTF-8; the first such
            text is named.
    """
    if not isinstance(texts, pa.Array | pa.ChunkedArray):
        texts = _from_python(texts)
    if texts.null_count:
        raise TextError(
            f"{texts.null_count} of {len(texts)} texts are null and can't be encoded, the first is "
            f"text {texts.is_null().index(True)}; drop or fill them before"
        )
    column = _combined(texts)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not _holds_text(column.type):
        raise TextError(f"a column of {column.type} can't be encoded as text; pass strings")
    try:
        column = column.cast(pa.large_binary()).cast(pa.large_string())
    except pa.ArrowInvalid as error:
        raise _invalid(column) from error
    return column


def _from_python(texts: Sequence[str] | Sequence[bytes]) -> pa.Array:
    if isinstance(texts, str | bytes):
        kind = type(texts).__name__
        raise TextError(f"one {kind} was given where a sequence of texts belongs; pass [text]")
    try:
        return pa.array(texts, type=pa.large_binary())
    except (pa.ArrowException, TypeError, UnicodeEncodeError) as error:
        raise TextError(
            f"{_first_odd(texts)} can't be encoded: {error}. Pass str without lone surrogates, or "
            "UTF-8 as bytes"
        ) from error


def _first_odd(texts: Sequence[str] | Sequence[bytes]) -> str:
    """Returns how the first text is called that isn't one; where Arrow objects to all, "a text"."""
    for row, text in enumerate(texts):
        try:
            pa.array([text], type=pa.large_binary())
        except (pa.ArrowException, TypeError, UnicodeEncodeError):
            return f"text {row}"
    return "a text"


def _combined(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(texts, pa.ChunkedArray):
        return texts
    if texts.num_chunks == 1:
        return texts.chunk(0)
    return texts.combine_chunks()


def _holds_text(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_string_view(type_)
        or pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
        or pa.types.is_binary_view(type_)
    )


def _invalid(column: pa.Array) -> TextError:
    for row, text in enumerate(column.cast(pa.large_binary())):
        try:
            text.as_py().decode()
        except UnicodeDecodeError as error:
            return TextError(
                f"text {row} isn't valid UTF-8 ({error.reason} at byte {error.start} of it); it "
                "can't be encoded. Repair or quarantine the document before"
            )
    return TextError("a text isn't valid UTF-8; it can't be encoded. Repair the document before")
