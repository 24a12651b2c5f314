"""Quarantined records as JSON lines in one zstd frame; raw bytes are base64."""

from __future__ import annotations

import base64

import msgspec
import pyarrow as pa
import zstandard

from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.tables import QUARANTINE
from datapipe.errors import DamagedError

__all__ = ["decode_quarantine", "encode_quarantine"]


_DAMAGE = (
    zstandard.ZstdError,
    msgspec.MsgspecError,
    ValueError,
    KeyError,
    TypeError,
    MemoryError,  # a frame may claim any size
)


def encode_quarantine(plain: pa.Table) -> bytes:
    """Returns conformed QUARANTINE rows as compressed canonical JSON lines, in their order."""
    lines = bytearray()
    for row in plain.to_pylist():
        lines += canonical_json({**row, "raw": base64.b64encode(row["raw"]).decode()}) + b"\n"
    return zstandard.ZstdCompressor(level=3, write_checksum=True).compress(bytes(lines))


def decode_quarantine(data: bytes, *, path: str) -> pa.Table:
    """Returns the QUARANTINE rows of compressed JSON lines. Raises: DamagedError."""
    try:
        rows = [_row(line) for line in _lines(data)]
        columns = [_array([row[field.name] for row in rows], field.type) for field in QUARANTINE]
    except _DAMAGE as error:
        raise DamagedError(
            f"{path} can't be read as quarantined records: {error}; their raw bytes are lost, "
            "nothing else is; run `datapipe verify` to see what else is damaged"
        ) from error
    return pa.table(columns, schema=QUARANTINE)


def _lines(data: bytes) -> list[bytes]:
    return zstandard.ZstdDecompressor().decompress(data).splitlines()


def _row(line: bytes) -> dict[str, object]:
    row = msgspec.json.decode(line, type=dict[str, object])
    return {**row, "raw": base64.b64decode(str(row["raw"]), validate=True)}


def _array(values: list[object], kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(values, kind)
