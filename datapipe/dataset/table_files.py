"""The rows in a file of any of a version's tables."""

from __future__ import annotations

import pyarrow as pa

from datapipe.dataset.layout import TABLE_KINDS
from datapipe.dataset.parquet import decode_table
from datapipe.dataset.quarantine import decode_quarantine
from datapipe.dataset.signals import decode_signals

__all__ = ["decode_file"]


def decode_file(
    name: str, data: bytes, *, path: str, of: str = "", rows: int | None = None
) -> pa.Table:
    """Returns the rows in a file of a table.

    Args:
        name: of the table.
        data: what is stored.
        path: where, for messages.
        of: of which version, for messages.
        rows: how many there must be, where that bounds what is unpacked; None: not known.

    Raises:
        DamagedError: they aren't that.
    """
    kind = TABLE_KINDS[name]
    if name == "quarantine":
        return decode_quarantine(data, path=path, rows=rows)
    if kind.has_signals:
        return decode_signals(data, path=path, of=of)
    return decode_table(data, kind.schema, path=path, of=of)
