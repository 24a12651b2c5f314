"""What verification found, collected as it goes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from datapipe.dataset.hashing import sha256_hex
from datapipe.dataset.verify.origin import Origin
from datapipe.errors import DatapipeError, ResumableError
from tiering.errors import ObjectNotFoundError, StoreError
from tiering.store import BlockingStore

__all__ = ["Findings", "Repaired", "VerifyReport"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Repaired:
    """An object that was fetched from the other copy and put in the place of a damaged one."""

    path: str
    num_bytes: int
    problem: str
    """What was wrong with it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifyReport:
    """The result of a verification."""

    objects: int
    """Objects that were read."""
    bytes: int
    """Bytes that were read."""
    problems: list[str]
    """One sentence each, beginning with the object's path; empty: all is well."""
    repaired: list[Repaired] = field(default_factory=list)
    """What was damaged and is well again."""


@dataclass(kw_only=True, slots=True)
class Findings:
    """Problems and sums of one stretch of verification; merged by the caller."""

    store: BlockingStore
    origin: Origin | None = None
    """Where damaged objects are fetched from; None: they are only named."""
    objects: int = 0
    num_bytes: int = 0
    problems: list[str] = field(default_factory=list)
    repaired: list[Repaired] = field(default_factory=list)

    def fresh(self) -> Findings:
        """Returns findings of another stretch of the same verification, empty yet."""
        return Findings(store=self.store, origin=self.origin)

    def add(self, path: str, problem: str) -> None:
        """Notes one problem of an object."""
        self.problems.append(f"{path}: {problem}")

    def expect(self, path: str, what: str, *, expected: object, found: object) -> None:
        """Notes a problem if two values differ."""
        if expected != found:
            self.add(path, f"{what} is {found}, {expected} expected")

    def merge(self, other: Findings) -> None:
        """Adds what another stretch found."""
        self.objects += other.objects
        self.num_bytes += other.num_bytes
        self.problems += other.problems
        self.repaired += other.repaired

    def read(self, path: str, sha256: str | None) -> bytes | None:
        """Returns an object's bytes, restored before if need be; or None and a problem.

        Args:
            path: the object's path.
            sha256: what its bytes must have; None: not known, any bytes will do.
        """
        data = self._read_or_restore(path, sha256)
        if data is not None:
            self.objects += 1
            self.num_bytes += len(data)
        return data

    def _read_or_restore(self, path: str, sha256: str | None) -> bytes | None:
        data, problem = self._read_once(path, sha256)
        if problem and self.restore(path, sha256, problem=problem):
            data, problem = self._read_once(path, sha256)
            if problem:
                self.add(path, f"{problem}, although it was just fetched from the copy")
        return None if problem else data

    def _read_once(self, path: str, sha256: str | None) -> tuple[bytes, str]:
        """Returns an object's bytes and what is wrong with them, "" for nothing."""
        try:
            data = self.store.get(path)
        except ObjectNotFoundError:
            return b"", "it is missing"
        except StoreError as error:
            return b"", f"it can't be read: {error}"
        found = sha256_hex(data) if sha256 is not None else None
        if found == sha256:
            return data, ""
        return data, f"SHA-256 {sha256} expected, {found} read ({len(data)} bytes)"

    def paths(self, prefix: str) -> list[str]:
        """Returns the paths of all objects below a prefix; none, and a problem, if it can't."""
        try:
            return [info.path for info in self.store.list(prefix)]
        except (StoreError, DatapipeError) as error:
            self.add(prefix, f"it can't be listed: {error}")
            return []

    def restore(self, path: str, sha256: str | None, *, problem: str) -> bool:
        """Puts a sound copy in the place of a damaged object, or notes the problem.

        Returns:
            Whether the object was replaced; the caller looks at it again.
        """
        if self.origin is None:
            self.add(path, problem)
            return False
        num_bytes, hindrance = self.origin.restore(self.store, path, sha256=sha256)
        if hindrance:
            self.add(path, f"{problem}; not repaired: {hindrance}")
            return False
        self.repaired.append(Repaired(path=path, num_bytes=num_bytes, problem=problem))
        return True

    @contextlib.contextmanager
    def attempt(self, path: str) -> Iterator[None]:
        """Turns whatever damage makes go wrong into a problem of the object."""
        try:
            yield
        except ResumableError:  # no damage: a repair that ran out of space
            raise
        except DatapipeError as error:
            self.problems.append(str(error))  # names its object itself
        except (StoreError, pa.ArrowException, ValueError, ArithmeticError, LookupError) as error:
            self.add(path, str(error))
