"""What is wrong with a stream or a record, in the words that the quarantine uses."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["DAMAGE_ERRORS", "HEAD_LIMIT_BYTES", "RAW_LIMIT_BYTES", "Fault", "StreamDamage"]

DAMAGE_ERRORS = re.compile(r"^(corrupt_|truncated_|trailing_garbage)")
"""Errors of a file rather than of a record: what it is about was lost with its surroundings."""

RAW_LIMIT_BYTES = 1 << 20
"""Raw bytes kept of a quarantined record; of a longer one the beginning is kept."""

HEAD_LIMIT_BYTES = 1 << 12
"""Raw bytes kept of a whole file that isn't of a known format: enough to see what it is."""


class StreamDamage(Exception):
    """A stream has no further byte.

    `trusted` is how many bytes of it were right all the same: those before the member or frame
    that is damaged, for a wrong bit shows long after its place. None: all that were delivered.
    `resumes`: the stream goes on behind some bytes that are lost, `lost_bytes` of them as far as
    anybody knows.
    """

    def __init__(self, error: str, detail: str, *, raw: bytes = b"", truncated: bool) -> None:
        super().__init__(detail)
        self.error = error
        self.detail = detail
        self.raw = raw
        self.truncated = truncated
        self.trusted: int | None = None
        self.resumes = False
        self.lost_bytes = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One record, or the rest of a file, that can't be read."""

    error: str
    """The class that is counted."""
    detail: str
    """What exactly is wrong, one line."""
    offset: int
    length: int
    raw: bytes
    """At most RAW_LIMIT_BYTES."""
