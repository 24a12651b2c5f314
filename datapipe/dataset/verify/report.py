"""What verification found, collected as it goes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from datapipe.dataset.hashing import sha256_hex
from datapipe.errors import DatapipeError
from tiering.errors import ObjectNotFoundError, StoreError
from tiering.store import BlockingStore

__all__ = ["Findings", "VerifyReport"]


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifyReport:
    """The result of a verification."""

    objects: int
    """Objects that were read."""
    bytes: int
    """Bytes that were read."""
    problems: list[str]
    """One sentence each, beginning with the object's path; empty: all is well."""


@dataclass(kw_only=True, slots=True)
class Findings:
    """Problems and sums of one stretch of verification; merged by the caller."""

    store: BlockingStore
    objects: int = 0
    num_bytes: int = 0
    problems: list[str] = field(default_factory=list)

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

    def read(self, path: str) -> bytes | None:
        """Returns an object's bytes, or None and a problem."""
        try:
            data = self.store.get(path)
        except ObjectNotFoundError:
            self.add(path, "it is missing")
            return None
        except StoreError as error:
            self.add(path, f"it can't be read: {error}")
            return None
        self.objects += 1
        self.num_bytes += len(data)
        return data

    def read_checked(self, path: str, sha256: str) -> bytes | None:
        """Returns an object's bytes if they are what its name says, or None and a problem."""
        data = self.read(path)
        if data is None:
            return None
        found = sha256_hex(data)
        if found != sha256:
            self.add(path, f"SHA-256 {sha256} expected, {found} read ({len(data)} bytes)")
            return None
        return data

    @contextlib.contextmanager
    def attempt(self, path: str) -> Iterator[None]:
        """Turns whatever damage makes go wrong into a problem of the object."""
        try:
            yield
        except DatapipeError as error:
            self.problems.append(str(error))  # names its object itself
        except (StoreError, pa.ArrowException, ValueError, ArithmeticError, LookupError) as error:
            self.add(path, str(error))
