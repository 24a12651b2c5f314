"""Quarantined records as JSON lines in one zstd frame; raw bytes are base64."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import msgspec
import pyarrow as pa
import zstandard

from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.parquet import MOST_ROWS_PER_BYTE
from datapipe.dataset.tables import QUARANTINE
from datapipe.errors import DamagedError, DatasetError

__all__ = ["decode_quarantine", "encode_quarantine"]


_DAMAGE = (
    zstandard.ZstdError,
    msgspec.MsgspecError,
    ValueError,
    KeyError,
    TypeError,
    MemoryError,
)

MOST_LINE_BYTES = 4 << 20
"""A line holds at most 1 MiB of a record's bytes, as base64, and short fields beside it."""

MOST_UNPACKED_BYTES = 4 << 30
"""More isn't written nor unpacked: whoever reads the table holds it in memory, and a zstd frame
can be 30,000 times its size."""

_PACKED_BYTES = 1 << 10  # unpacked at a time: up to 32 MiB
_MOST_WINDOW_BYTES = 128 << 20  # of the strongest level of the command `zstd` without --long


def encode_quarantine(plain: pa.Table) -> bytes:
    """Returns conformed QUARANTINE rows as compressed canonical JSON lines, in their order."""
    lines = bytearray()
    for row in plain.to_pylist():
        lines += canonical_json({**row, "raw": base64.b64encode(row["raw"]).decode()}) + b"\n"
        if len(lines) > MOST_UNPACKED_BYTES:
            raise DatasetError(
                f"the quarantined records take more than {MOST_UNPACKED_BYTES:,} bytes; nothing "
                "was committed; leave the files that can't be read out of the inputs"
            )
    return zstandard.ZstdCompressor(level=3, write_checksum=True).compress(bytes(lines))


def decode_quarantine(data: bytes, *, path: str, rows: int | None = None) -> pa.Table:
    """Returns the QUARANTINE rows of compressed JSON lines.

    Args:
        data: what is stored.
        path: where, for messages.
        rows: how many there must be. What unpacks to more than could be is refused meanwhile.

    Raises:
        DamagedError: they aren't that.
    """
    try:
        most = MOST_ROWS_PER_BYTE * len(data) if rows is None else rows
        found = [_row(line) for line in _lines(data, most_lines=most)]
        columns = [_array([row[field.name] for row in found], field.type) for field in QUARANTINE]
    except _DAMAGE as error:
        raise DamagedError(
            f"{path} can't be read as quarantined records: {error or type(error).__name__}; their "
            "raw bytes are lost, nothing else is; restore it from a copy, or run `datapipe verify` "
            "to see what else is damaged"
        ) from error
    return pa.table(columns, schema=QUARANTINE)


def _lines(data: bytes, *, most_lines: int) -> Iterator[bytes]:
    """Yields the lines of a zstd frame; raises ValueError as soon as they can't be rows."""
    num_lines, rest = 0, b""
    for unpacked in _unpacked(data):
        num_lines += unpacked.count(b"\n")
        if num_lines > most_lines or len(rest) > MOST_LINE_BYTES:
            raise ValueError(
                f"it unpacks to more than its {most_lines:,} rows of {MOST_LINE_BYTES:,} bytes"
            )
        *lines, rest = (rest + unpacked).split(b"\n")
        yield from lines
    if rest:
        raise ValueError("its last line has no end")


def _unpacked(data: bytes) -> Iterator[bytes]:
    frame = zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW_BYTES).decompressobj()
    num_bytes = 0
    for start in range(0, len(data), _PACKED_BYTES):
        unpacked = frame.decompress(data[start : start + _PACKED_BYTES])
        num_bytes += len(unpacked)
        if num_bytes > MOST_UNPACKED_BYTES:
            raise ValueError(f"it unpacks to more than {MOST_UNPACKED_BYTES:,} bytes")
        yield unpacked
    if not frame.eof or frame.unused_data:
        raise ValueError("it isn't one whole zstd frame")


def _row(line: bytes) -> dict[str, object]:
    row = msgspec.json.decode(line, type=dict[str, object])
    return {**row, "raw": base64.b64decode(str(row["raw"]), validate=True)}


def _array(values: list[object], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)
