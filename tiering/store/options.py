"""How a remote store is talked to: patience, retries, sizes of requests."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Transfer"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Transfer:
    """Patience and sizes; the defaults suit object stores in a data centre."""

    connect_seconds: float = 5.0
    """Time for a connection to come about."""
    stall_seconds: float = 20.0
    """A transfer from which no byte comes for so long is given up and resumed at its offset."""
    upload_bytes_per_second: int = 64 * 1024
    """An upload slower than this is given up; on top of it comes `stall_seconds`."""
    max_attempts: int = 10
    """Attempts in a row without a byte of progress."""
    max_retry_seconds: float = 180.0
    """No new attempt later than this after the last progress."""
    unreachable_seconds: float = 30.0
    """The same for an endpoint to which no connection comes about."""
    first_delay_seconds: float = 0.1
    """Before the second attempt, at most; doubled from then on, and drawn at random below."""
    max_delay_seconds: float = 15.0
    """Longest wait between two attempts."""
    max_concurrency: int = 32
    """Requests at a time; halved when the store asks to slow down, and raised again by and by."""
    range_bytes: int = 8 << 20
    """A larger range is fetched in several requests at a time."""
    gap_bytes: int = 64 * 1024
    """Ranges closer than this are fetched with one request."""
    part_bytes: int = 16 << 20
    """An overwrite larger than four of these is uploaded in such parts."""

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if value <= 0 and name not in ("gap_bytes", "first_delay_seconds"):
                raise ValueError(f"{name} is {value}, but it must be positive")

    def upload_seconds(self, num_bytes: int) -> float:
        """Returns how long an upload of so many bytes may take."""
        return self.stall_seconds + num_bytes / self.upload_bytes_per_second
