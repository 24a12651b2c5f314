"""What this user saw of datasets before, so that versions that vanish are noticed.

`$XDG_STATE_HOME/datapipe/seen.json` (default `~/.local/state`) holds, for each dataset by id and
place, the highest version that was ever there and the digest of its log entry. An older state of
the log, restored or put there by somebody, is then an error and not just an older dataset. It is a
safeguard and no record: where the file can't be written everything works without it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from datapipe.dataset.log import LogEntry
from datapipe.dataset.manifest import Digest
from datapipe.errors import RollbackError

__all__ = ["SeenVersions"]

_MOST = 500
"""Datasets that are remembered, read in 0.7 ms; those that changed longest ago are forgotten."""

_LOCK_SECONDS = 1.0


class _Seen(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    entry_sha256: Digest


class _File(msgspec.Struct, kw_only=True):
    datasets: dict[str, _Seen]
    """By "<id> <url>"; those that changed last stand behind."""
    format: int = 1


class SeenVersions:
    """The newest versions that were seen; safe for concurrent use by threads and processes.

    Args:
        path: the file; None remembers nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    @classmethod
    def of_user(cls) -> SeenVersions:
        """Returns what the user that runs this program saw."""
        state = os.environ.get("XDG_STATE_HOME", "")
        if not Path(state).is_absolute():  # as the XDG specification wants it
            try:
                state = str(Path.home() / ".local" / "state")
            except RuntimeError:  # a container's user without a home
                return cls(None)
        return cls(Path(state) / "datapipe" / "seen.json")

    def check(
        self,
        url: str,
        *,
        latest: LogEntry,
        opened: LogEntry | None = None,
        entry_at: Callable[[int], LogEntry],
        accept: bool = False,
    ) -> None:
        """Compares a dataset with what was seen of it, and remembers its newest version.

        Args:
            url: where it is.
            latest: entry of its newest version.
            opened: entry of the version that was asked for by name; None: the newest was. Who
                asks by name isn't refused because other versions are gone.
            entry_at: reads the entry of a version; asked only when there are new ones.
            accept: what is there now is right, whatever was seen.

        Raises:
            RollbackError: the version seen last is gone, or another stands in its place.
            DamagedError: `entry_at` found a damaged entry.
        """
        if self._path is None:
            return
        key = f"{latest.dataset} {url}"
        known = self._read().get(key)
        if known is not None and not accept:
            _compare(url, known, latest=latest, opened=opened, entry_at=entry_at)
        # Who asks by name reads nothing of a longer log, which nobody has compared with `known`.
        if known is None or accept or (latest.version > known.version and opened is None):
            self._remember(key, latest, replace=accept)

    def note(self, url: str, entry: LogEntry) -> None:
        """Remembers a version that this user committed: its loss would be noticed."""
        if self._path is not None:
            self._remember(f"{entry.dataset} {url}", entry, replace=False)

    def forget(self, url: str) -> None:
        """Forgets the datasets that were at a place which is given up."""
        if self._path is None or not self._path.exists():
            return
        with contextlib.suppress(OSError), _locked(self._path.with_name("seen.lock")):
            known = self._read()
            kept = {key: seen for key, seen in known.items() if key.partition(" ")[2] != url}
            if len(kept) < len(known):
                _write(self._path, kept)

    def _remember(self, key: str, latest: LogEntry, *, replace: bool) -> None:
        """Notes a version unless a higher one was noted meanwhile."""
        now = _Seen(version=latest.version, entry_sha256=latest.entry_sha256)
        assert self._path is not None
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with _locked(self._path.with_name("seen.lock")):
                datasets = self._read()
                known = datasets.pop(key, None)
                if known is None or replace or known.version < now.version:
                    datasets[key] = now
                    _write(self._path, dict(list(datasets.items())[-_MOST:]))
        except OSError as error:
            warnings.warn(
                f"{self._path} can't be written ({error.strerror}): versions that vanish from a "
                "dataset won't be noticed; set XDG_STATE_HOME to a folder that can be written",
                RuntimeWarning,
                stacklevel=2,
            )

    def _read(self) -> dict[str, _Seen]:
        assert self._path is not None
        try:
            data = self._path.read_bytes()
        except OSError:
            return {}
        try:
            return msgspec.json.decode(data, type=_File).datasets
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            warnings.warn(
                f"{self._path} is damaged ({error}) and is written anew: what was seen of datasets "
                "before is forgotten",
                RuntimeWarning,
                stacklevel=2,
            )
            return {}


def _compare(
    url: str,
    known: _Seen,
    *,
    latest: LogEntry,
    opened: LogEntry | None,
    entry_at: Callable[[int], LogEntry],
) -> None:
    remedy = (
        "nothing was opened; restore the log from a copy; if what is there now is right, say so "
        f"once: `datapipe show {url} --accept-rollback`, or datapipe.open(..., "
        "accept_rollback=True)"
    )
    if latest.version < known.version:
        if opened is not None:
            return
        raise RollbackError(
            f"the newest version of {url} is {latest.version}, but version {known.version} was "
            f"there when it was opened before: versions were lost, or an older state was put in "
            f"its place; {remedy}"
        )
    standing = opened or latest
    if opened is None and latest.version > known.version:
        standing = entry_at(known.version)
    if standing.version == known.version and standing.entry_sha256 != known.entry_sha256:
        raise RollbackError(
            f"version {known.version} of {url} isn't the one that was there when it was opened "
            f"before: its log entry has digest {standing.entry_sha256[:12]}, it had "
            f"{known.entry_sha256[:12]}: the log was written anew; {remedy}"
        )


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Excludes other writers; without locks, or after a second, the file is written all the same.

    Then a record may be lost, which the next opening makes good.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + _LOCK_SECONDS
        while not _lock(descriptor) and time.monotonic() < deadline:
            time.sleep(0.002)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _write(path: Path, datasets: dict[str, _Seen]) -> None:
    """Replaces the file; not flushed to the disk, since losing it does no harm."""
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        unfinished.write_bytes(msgspec.json.encode(_File(datasets=datasets)))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
