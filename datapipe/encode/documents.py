"""A batch of documents to one token array, with an end-of-text token after each document."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datapipe.errors import FailedError
from datapipe_tokenizers import Tokenizer

__all__ = ["check_sample", "close_documents", "count_special_text", "encode_documents"]


def encode_documents(
    batch: pa.RecordBatch, tokenizer: Tokenizer, *, append_eos: bool
) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Returns the tokens of the documents in `batch`, one after the other, and how many each has.

    Args:
        batch: Documents; only `text` is read.
        tokenizer: Encodes the texts; its `token_dtype` is the result's.
        append_eos: Close every document with the tokenizer's end-of-text token, exactly once;
            an empty document is then that token alone.

    Returns:
        Tokens of `tokenizer.token_dtype`, and int64 [batch.num_rows] counts that include the
        end-of-text token.

    Raises:
        TextError: a text that can't be encoded.
        FailedError: the tokenizer broke its promise: an id that doesn't fit the dtype, or the
            end-of-text token inside a text.
    """
    ids, offsets = tokenizer.encode_batch(batch.column("text"))
    _check_ids(ids, offsets, tokenizer)
    tokens = ids.astype(tokenizer.token_dtype)
    num_tokens = np.diff(offsets)
    if not append_eos:
        return tokens, num_tokens
    return close_documents(tokens, offsets, eos_id=tokenizer.eos_id), num_tokens + 1


def check_sample(batch: pa.RecordBatch, tokenizer: Tokenizer, *, one_in: int) -> None:
    """Encodes some of the documents with the tokenizer's reference too.

    Which ones, their content hash decides: the first 8 bytes, little-endian, divisible by `one_in`.

    Args:
        batch: Documents; their text, content hash and place are read.
        tokenizer: What encodes them.
        one_in: Of so many documents one is compared; 0: none.

    Raises:
        FailedError: the ids differ; names the document and the first differing token.
    """
    if not one_in:
        return
    hashes = batch.column("content_hash")
    words = np.frombuffer(hashes.buffers()[1], "<u8")[2 * hashes.offset :][: 2 * len(hashes) : 2]
    rows = np.flatnonzero(words % np.uint64(one_in) == 0)
    difference = tokenizer.compare(batch.column("text").take(pa.array(rows))) if len(rows) else None
    if difference is not None:
        raise FailedError(
            f"{_name_of(batch, int(rows[difference.row]))}: token {difference.token} is "
            f"{difference.found} by "
            f"{tokenizer.backend}, but {difference.expected} by the reference; nothing was "
            "committed. Build with `tokenize: {backend: reference}`, which is slower, and report "
            "this document"
        )


def count_special_text(batch: pa.RecordBatch, tokenizer: Tokenizer) -> dict[str, int]:
    """Counts the documents with literal text of special tokens.

    Returns:
        `documents`: with the text of any; `with_eos`: with that of the token that closes documents.

    Raises:
        FailedError: there is one, and the tokenizer's policy is "error"; names the document.
    """
    texts = batch.column("text")
    rows = tokenizer.with_special_text(texts)
    if len(rows) and tokenizer.special_text == "error":
        raise FailedError(
            f"{_name_of(batch, int(rows[0]))} has the text of a special token, which "
            "`tokenize: {special_text: error}` refuses; nothing was committed. Drop or repair such "
            "documents, or build with `special_text: text`, which encodes it as characters"
        )
    with_eos = tokenizer.with_eos_text(texts.take(pa.array(rows))) if len(rows) else rows
    return {"documents": len(rows), "with_eos": len(with_eos)}


def _name_of(batch: pa.RecordBatch, row: int) -> str:
    document = batch.slice(row, 1).to_pylist()[0]
    place = f"{document['source_file']} at {document['source_offset']}"
    return f"document {document['doc_id'].hex()} ({place})"


def close_documents(
    tokens: npt.NDArray[Any], offsets: npt.NDArray[np.int64], *, eos_id: int
) -> npt.NDArray[Any]:
    """Returns `tokens` with `eos_id` put after each document; document i ends at offsets[i + 1]."""
    num_documents = len(offsets) - 1
    closed = np.empty(len(tokens) + num_documents, dtype=tokens.dtype)
    is_eos = np.zeros(len(closed), dtype=np.bool_)
    is_eos[offsets[1:] + np.arange(num_documents)] = True
    closed[is_eos] = eos_id
    closed[~is_eos] = tokens
    return closed


def _check_ids(
    ids: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int64], tokenizer: Tokenizer
) -> None:
    largest = int(ids.max(initial=0))
    if largest > np.iinfo(tokenizer.token_dtype).max:
        raise FailedError(
            f"token id {largest} doesn't fit {tokenizer.token_dtype.name}; the tokenizer promised "
            f"ids up to {tokenizer.max_id}. Nothing was written; report this tokenizer"
        )
    places = np.flatnonzero(ids == tokenizer.eos_id)
    if len(places):
        row = int(np.searchsorted(offsets, places[0], side="right")) - 1
        raise FailedError(
            f"the text of document {row} of the batch contains the end-of-text token "
            f"{tokenizer.eos_id}, so documents couldn't be told apart. Nothing was written; "
            "report this tokenizer"
        )
