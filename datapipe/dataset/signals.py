"""The table of signals, whose files have columns of their own: what the stages of a build measured.

A file of signals tells its own columns, so they are looked at before they are believed: names
"stage.signal", of SIGNAL_TYPES, and not many.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from datapipe.dataset.parquet import open_table, restore
from datapipe.dataset.tables import SIGNAL_TYPES, SIGNALS
from datapipe.errors import DamagedError

__all__ = ["decode_signals", "join_signals", "with_signals"]

MOST_SIGNALS = 1000
"""Columns of a file at most."""

_NAME = re.compile(r"[A-Za-z0-9_]{1,60}\.[A-Za-z0-9_.-]{1,100}")


def with_signals(schema: pa.Schema, of: pa.Schema) -> pa.Schema:
    """Returns `schema` and behind it the signals of a table, by name.

    Raises:
        ValueError: a column isn't a signal.
    """
    fields = sorted(
        (field for field in of if field.name not in schema.names), key=lambda field: str(field.name)
    )
    if len(fields) > MOST_SIGNALS:
        raise ValueError(f"the table has {len(fields):,} signals; {MOST_SIGNALS:,} are allowed")
    return pa.schema([*schema, *(_signal(field) for field in fields)])


def _signal(field: pa.Field) -> pa.Field:
    kind = pa.string() if pa.types.is_large_string(field.type) else field.type
    if not _NAME.fullmatch(field.name) or kind not in SIGNAL_TYPES:
        types = ", ".join(map(str, SIGNAL_TYPES))
        raise ValueError(
            f"the column {field.name!r} of {field.type} isn't a signal: those are named "
            f"stage.signal and of the types {types}"
        )
    return pa.field(field.name, kind)


def decode_signals(data: bytes, *, path: str, of: str = "") -> pa.Table:
    """Returns the signals in Parquet bytes.

    Args:
        data: the bytes.
        path: where they are, for messages.
        of: of which version they are, for messages.

    Raises:
        DamagedError: the bytes aren't a table of signals.
    """
    opened = open_table(pa.BufferReader(data), SIGNALS, path=path, of=of)
    try:
        schema = with_signals(SIGNALS, opened.schema_arrow)
    except (ValueError, pa.ArrowException) as error:
        raise DamagedError(
            f"{path}{f', {of},' if of else ''} isn't a table of signals: {error}; restore it from "
            "a copy"
        ) from error
    return restore(opened, schema, path=path, of=of)


def join_signals(files: Sequence[pa.Table]) -> pa.Table:
    """Returns the rows of all files, each with all their signals.

    Raises:
        DamagedError: two files have a signal of one name in two types.
    """
    if not files:
        return SIGNALS.empty_table()
    try:
        joined = pa.concat_tables(files, promote_options="permissive")
    except pa.ArrowException as error:
        raise DamagedError(
            f"the signals of this version don't fit together: {error}; run `datapipe verify`"
        ) from error
    return joined.unify_dictionaries().combine_chunks()
