"""References: what stands behind the `@`: a number, a tag, a digest or a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from datapipe.dataset.log import LogEntry, read_entry
from datapipe.dataset.tags import list_tags, read_tag
from datapipe.errors import DamagedError, UnknownReferenceError
from tiering.store import BlockingStore

__all__ = ["parse_time", "resolve"]

_NUMBER = re.compile(r"v?(\d{1,20})")
_TAG = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,63}")
_DIGEST_PREFIX = re.compile(r"[0-9a-f]{4,64}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?")


def resolve(
    store: BlockingStore, ref: str, *, latest: int, entries: Callable[[], Sequence[LogEntry]]
) -> LogEntry:
    """Returns the log entry that a reference means.

    Args:
        store: the dataset's.
        ref: "3", "v3", a tag, the first digits of a manifest digest, or a time.
        latest: number of the newest version.
        entries: reads all log entries, version 1 first.

    Raises:
        UnknownReferenceError: it means nothing here.
        DamagedError: the entry is missing or damaged, or isn't the one that the tag was set to.
    """
    number = _NUMBER.fullmatch(ref)
    if number and 1 <= int(number[1]) <= latest:
        return read_entry(store, int(number[1]))[0]
    found = _by_tag(store, ref, latest=latest) if _TAG.fullmatch(ref) else None
    if found is None and _DIGEST_PREFIX.fullmatch(ref):
        found = _by_digest(store, ref, entries())
    if found is None and _TIME.fullmatch(ref):
        found = _by_time(store, ref, entries())
    if found is None:
        raise _unknown(store, ref, latest)
    return found


def parse_time(text: str) -> float:
    """Returns a time as seconds since the epoch; without a zone it is UTC, without hours midnight.

    Raises:
        ValueError: not a time.
    """
    time = datetime.fromisoformat(text)
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _by_tag(store: BlockingStore, ref: str, *, latest: int) -> LogEntry | None:
    tag = read_tag(store, ref)
    if tag is None or tag.version is None:
        return None
    entry = read_entry(store, tag.version)[0] if tag.version <= latest else None
    if entry is None or entry.manifest != tag.manifest:
        raise DamagedError(
            f"tag {ref} of {store.url} was set to version {tag.version} with manifest "
            f"{(tag.manifest or '')[:12]}, which isn't in the log: versions were lost or replaced; "
            "nothing was opened; restore the log from a copy"
        )
    return entry


def _by_digest(store: BlockingStore, ref: str, entries: Sequence[LogEntry]) -> LogEntry | None:
    found = {entry.manifest: entry for entry in entries if entry.manifest.startswith(ref)}
    if len(found) > 1:
        raise UnknownReferenceError(
            f"{ref!r} begins the digests of versions {sorted(e.version for e in found.values())} "
            f"of {store.url}; give more of it, or a number"
        )
    return next(iter(found.values()), None)


def _by_time(store: BlockingStore, ref: str, entries: Sequence[LogEntry]) -> LogEntry:
    """Returns the newest version that wasn't committed later; by its writers' clocks."""
    try:
        seconds = parse_time(ref)
    except ValueError as error:
        raise UnknownReferenceError(
            f"{ref!r} isn't a time: {error}; give one such as 2026-11-30T12:00 (UTC), or "
            "2026-11-30T12:00+01:00"
        ) from error
    found = [entry for entry in entries if entry.time_seconds <= seconds]
    if found:
        return found[-1]
    first = datetime.fromtimestamp(entries[0].time_seconds, tz=UTC)
    raise UnknownReferenceError(
        f"{store.url} has no version at {ref}: version 1 was committed at "
        f"{first:%Y-%m-%dT%H:%M:%S}Z; give a later time"
    )


def _unknown(store: BlockingStore, ref: str, latest: int) -> UnknownReferenceError:
    versions = "version 1" if latest == 1 else f"versions 1 to {latest}"
    tags = ", ".join(tag.name for tag in list_tags(store))
    return UnknownReferenceError(
        f"{store.url} has no version {ref!r}; it has {versions} and {'the tags ' if tags else ''}"
        f"{tags or 'no tags'}; give a number, a tag, a time, or the first digits of a manifest "
        "digest (`datapipe log` shows them)"
    )
