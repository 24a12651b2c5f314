"""Patience, with a client that fails as told."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import pytest

from tiering.errors import (
    AccessDeniedError,
    NoSpaceError,
    ObjectExistsError,
    ObjectNotFoundError,
    PreconditionError,
    StoreError,
    ThrottledError,
    UndecidedError,
)
from tiering.store import Mode, ObjectInfo, Transfer
from tiering.store.client import Body
from tiering.store.failures import Failure, FailureKind
from tiering.store.remote_view import FIRST_AHEAD_BYTES, RemoteView
from tiering.store.retry import Attempts
from tiering.store.throttle import ConcurrencyLimit

T = TypeVar("T")
QUICK = Transfer(max_attempts=4, first_delay_seconds=0.0, max_delay_seconds=0.001)


class FailedError(Exception):
    """A request failed in a known way."""

    def __init__(self, kind: FailureKind) -> None:
        super().__init__(f"https://host/x?sig=secret said {kind.value}")
        self.kind = kind


class FailingClient:
    """Requests that fail as told, one kind after the other, and then succeed."""

    def __init__(self, *kinds: FailureKind) -> None:
        self.kinds = [*kinds]
        self.num = 0
        self.num_renewed = 0

    @property
    def lists_in_order(self) -> bool:
        return True

    async def request(self) -> str:
        self.num += 1
        if self.kinds:
            raise FailedError(self.kinds.pop(0))
        return "done"

    async def head(self, path: str) -> ObjectInfo:
        raise NotImplementedError(path)

    async def read(
        self, path: str, *, start: int, stop: int | None, etag: str | None, resumed: bool
    ) -> Body:
        raise NotImplementedError(path, start, stop, etag, resumed)

    async def put(self, path: str, data: memoryview, *, mode: Mode, match: str | None) -> str:
        raise NotImplementedError(path, data, mode, match)

    async def list(self, prefix: str, *, after: str) -> AsyncIterator[builtins.list[ObjectInfo]]:
        raise NotImplementedError(prefix, after)
        yield []

    async def delete(self, path: str) -> None:
        raise NotImplementedError(path)

    def renew(self) -> None:
        self.num_renewed += 1

    def explain(self, error: Exception) -> Failure:
        assert isinstance(error, FailedError)
        return Failure(error.kind, error.kind.value)


def run(client: FailingClient, *, doing: str = "reading", transfer: Transfer = QUICK) -> str:
    async def attempt() -> str:
        limit = ConcurrencyLimit(4)
        attempts = Attempts(client, transfer, limit, doing=doing, path="object", url="s3://b")
        return await attempts.run(client.request)

    return asyncio.run(attempt())


TRANSIENT = [kind for kind in FailureKind if kind.is_transient and kind is not FailureKind.EXPIRED]


@pytest.mark.parametrize("kind", TRANSIENT)
def test_what_may_pass_is_asked_again(kind: FailureKind) -> None:
    client = FailingClient(kind, kind, kind)
    assert run(client) == "done"
    assert client.num == 4


@pytest.mark.parametrize("kind", TRANSIENT)
def test_patience_ends_with_count_and_time(kind: FailureKind) -> None:
    client = FailingClient(*[kind] * 9)
    with pytest.raises(StoreError, match=rf"after 4 attempts in 0\.\d s: {kind.value}"):
        run(client)
    assert client.num == 4


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (FailureKind.NOT_FOUND, ObjectNotFoundError),
        (FailureKind.EXISTS, ObjectExistsError),
        (FailureKind.CHANGED, PreconditionError),
        (FailureKind.DENIED, AccessDeniedError),
        (FailureKind.NO_SPACE, NoSpaceError),
        (FailureKind.OTHER, StoreError),
    ],
)
def test_what_stays_as_it_is_is_asked_once(kind: FailureKind, error: type[StoreError]) -> None:
    client = FailingClient(kind)
    with pytest.raises(error, match="object") as caught:
        run(client)
    assert (client.num, caught.value.path) == (1, "object")
    assert "secret" not in str(caught.value.__cause__)
    assert caught.value.__context__ in (None, caught.value.__cause__)


def test_expired_credentials_are_renewed_once() -> None:
    client = FailingClient(FailureKind.EXPIRED)
    assert run(client) == "done"
    assert client.num_renewed == 1
    with pytest.raises(AccessDeniedError, match="renew the credentials"):
        run(FailingClient(*[FailureKind.EXPIRED] * 2))


@pytest.mark.parametrize(
    ("kinds", "error"),
    [
        ([FailureKind.THROTTLED, FailureKind.EXISTS], ObjectExistsError),
        ([FailureKind.UNREACHABLE, FailureKind.CHANGED], PreconditionError),
        ([FailureKind.CONFLICT, FailureKind.EXISTS], ObjectExistsError),
        ([FailureKind.INTERRUPTED, FailureKind.EXISTS], UndecidedError),
        ([FailureKind.SERVER, FailureKind.CHANGED], UndecidedError),
        ([FailureKind.TIMED_OUT, FailureKind.THROTTLED, FailureKind.EXISTS], UndecidedError),
        ([FailureKind.INTERRUPTED, FailureKind.DENIED], AccessDeniedError),
        ([FailureKind.INTERRUPTED] * 4, UndecidedError),
        ([FailureKind.INTERRUPTED, *[FailureKind.THROTTLED] * 3], UndecidedError),
        ([FailureKind.THROTTLED] * 4, ThrottledError),
    ],
    ids=lambda value: "-".join(k.value for k in value) if isinstance(value, list) else "",
)
def test_a_write_that_may_have_been_done_is_undecided(
    kinds: list[FailureKind], error: type[StoreError]
) -> None:
    with pytest.raises(error, match="object") as caught:
        run(FailingClient(*kinds), doing="writing")
    assert type(caught.value) is error


def test_an_endpoint_that_is_never_reached_is_given_up_earlier() -> None:
    transfer = Transfer(max_attempts=1000, first_delay_seconds=0.02, unreachable_seconds=0.05)
    client = FailingClient(*[FailureKind.UNREACHABLE] * 1000)
    with pytest.raises(StoreError, match="check the endpoint and the network"):
        run(client, transfer=transfer)
    assert client.num < 20


def test_an_attempt_without_an_answer_is_timed_out() -> None:
    async def attempt(request: Callable[[], Awaitable[T]]) -> T:
        limit = ConcurrencyLimit(1)
        attempts = Attempts(
            FailingClient(), QUICK, limit, doing="reading", path="object", url="s3://b"
        )
        return await attempts.run(request, seconds=0.01)

    with pytest.raises(StoreError, match=r"after 4 attempts .* no answer in time"):
        asyncio.run(attempt(lambda: asyncio.sleep(5)))


# -- concurrency


def test_the_limit_halves_when_throttled_and_rises_again() -> None:
    now = [0.0]
    limit = ConcurrencyLimit(16, clock=lambda: now[0])
    limit.throttled()
    limit.throttled()  # of the same burst
    assert limit.limit == 8
    for _ in range(9):
        limit.succeeded()
    assert limit.limit == 9
    for _ in range(9):
        now[0] += 2
        limit.throttled()
    assert limit.limit == 1
    for _ in range(1000):
        limit.succeeded()
    assert limit.limit == 16


def test_no_more_requests_run_than_the_limit() -> None:
    async def use() -> int:
        limit, busy, most = ConcurrencyLimit(3), 0, 0

        async def work() -> None:
            nonlocal busy, most
            async with limit:
                busy += 1
                most = max(most, busy)
                await asyncio.sleep(0.001)
                busy -= 1

        await asyncio.gather(*[work() for _ in range(12)])
        return most

    assert asyncio.run(use()) == 3


# -- views


class CountingReader:
    """Bytes, and which ranges of them were asked for."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reads: list[tuple[int, int]] = []

    def read_into(self, info: ObjectInfo, buffer: memoryview, offset: int) -> int:
        self.reads.append((offset, buffer.nbytes))
        part = self.data[offset : min(offset + buffer.nbytes, info.size)]
        buffer[: len(part)] = part
        return len(part)


@pytest.fixture
def reader() -> CountingReader:
    return CountingReader(bytes(range(256)) * 4096)


def view_of(reader: CountingReader) -> RemoteView:
    size = len(reader.data)
    return RemoteView(reader, ObjectInfo(path="o", size=size, etag="1", modified_seconds=0.0))


def test_small_reads_in_a_row_fetch_ahead(reader: CountingReader) -> None:
    view, target = view_of(reader), bytearray(1000)
    for offset in range(0, len(reader.data), 1000):
        count = view.read_into(memoryview(target), offset)
        assert target[:count] == reader.data[offset : offset + count]
    assert len(reader.reads) < 8
    assert reader.reads[0] == (0, FIRST_AHEAD_BYTES)


def test_reads_here_and_there_fetch_only_themselves(reader: CountingReader) -> None:
    view, target = view_of(reader), bytearray(1000)
    for offset in (500_000, 7, 300_000, 1_000_000):
        assert view.read_into(memoryview(target), offset) == 1000
        assert target == reader.data[offset : offset + 1000]
    assert reader.reads == [(500_000, 1000), (7, 1000), (300_000, 1000), (1_000_000, 1000)]


@pytest.mark.parametrize("name", ["stall_seconds", "max_attempts", "part_bytes"])
def test_patience_must_be_positive(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is 0, but it must be positive"):
        Transfer(**{name: 0})
