"""Dates as records write them: ISO 8601 to whole seconds since the epoch, UTC."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pyarrow as pa

__all__ = ["parse_date", "parse_dates"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)


def parse_dates(values: Iterable[str | None]) -> pa.Array:
    """Returns timestamps in seconds, UTC; null for what isn't an ISO 8601 date."""
    seconds = [None if value is None else parse_date(value) for value in values]
    return pa.array(seconds, pa.int64()).cast(pa.timestamp("s", tz="UTC"))


def parse_date(value: str) -> int | None:
    """Returns seconds since the epoch, fractions cut off downwards; without a zone it is UTC."""
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _SECOND
