"""The S3 store behind a proxy that fails on purpose."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

import numpy as np
import pytest

from tiering.errors import (
    AccessDeniedError,
    ObjectExistsError,
    PreconditionError,
    StoreError,
    ThrottledError,
    UndecidedError,
)
from tiering.store import BlockingStore, Mode, Transfer, open_store
from tiering.testing import Fault, FaultProxy, S3Server

pytestmark = pytest.mark.s3

MIB = 1 << 20
DATA = np.random.default_rng(3).bytes(5 * MIB + 17)
IMPATIENT = Transfer(
    stall_seconds=0.6,
    connect_seconds=1.0,
    max_attempts=4,
    first_delay_seconds=0.01,
    max_delay_seconds=0.05,
    unreachable_seconds=0.2,
    range_bytes=2 * MIB,
    upload_bytes_per_second=1,  # a busy machine isn't a stalled upload
)


@pytest.fixture(scope="module")
def running_proxy(s3_server: S3Server) -> Iterator[FaultProxy]:
    with FaultProxy(s3_server.url) as proxy:
        yield proxy


@pytest.fixture
def proxy(running_proxy: FaultProxy) -> Iterator[FaultProxy]:
    running_proxy.fail()
    yield running_proxy
    running_proxy.fail()


@pytest.fixture
def store(s3_server: S3Server, proxy: FaultProxy) -> BlockingStore:
    url = f"s3://bucket/{uuid.uuid4().hex}"
    options = s3_server.options(url=proxy.url)
    return open_store(url, transfer=IMPATIENT, **options).blocking()


@pytest.fixture
def direct(s3_server: S3Server, store: BlockingStore) -> BlockingStore:
    """The same store, not through the proxy."""
    return open_store(store.url, **s3_server.options()).blocking()


ONCE_BROKEN = [
    pytest.param(Fault(method="GET", times=2, reset_at_byte=0), id="reset at once"),
    pytest.param(Fault(method="GET", times=2, reset_at_byte=MIB + 5), id="reset later"),
    pytest.param(Fault(method="GET", times=2, truncate_at_byte=MIB + 5), id="truncated"),
    pytest.param(Fault(method="GET", times=2, shorten_to_bytes=MIB + 5), id="short"),
    pytest.param(Fault(method="GET", times=1, stall_at_byte=MIB + 5), id="stalled"),
    pytest.param(Fault(method="GET", times=2, lose_answer=True), id="answer lost"),
    pytest.param(Fault(method="GET", times=2, status=503), id="throttled"),
    pytest.param(Fault(method="GET", times=2, status=500), id="server error"),
    pytest.param(Fault(method="GET", latency_seconds=0.05), id="slow to answer"),
]


@pytest.mark.parametrize("fault", ONCE_BROKEN)
def test_broken_downloads_are_resumed(
    store: BlockingStore, proxy: FaultProxy, fault: Fault
) -> None:
    store.put("object", DATA)
    proxy.fail(fault)
    assert store.get("object") == DATA
    proxy.fail(fault)
    target = bytearray(4 * MIB)
    with store.open("object") as view:
        assert view.read_into(memoryview(target), 99) == len(target)
    assert target == DATA[99 : 99 + len(target)]


def test_a_download_is_resumed_at_its_offset(store: BlockingStore, proxy: FaultProxy) -> None:
    store.put("object", DATA)
    proxy.fail(Fault(method="GET", times=1, reset_at_byte=3 * MIB))
    seen = len(proxy.seen)
    assert store.get("object") == DATA
    ranges = [dict(request.headers).get("range") for request in proxy.seen[seen:]]
    assert ranges[0] == "bytes=0-"
    assert ranges[1] is not None
    assert int(ranges[1].removeprefix("bytes=").split("-")[0]) >= 2 * MIB


def test_a_download_that_breaks_again_and_again_ends(
    store: BlockingStore, proxy: FaultProxy
) -> None:
    """Each attempt brings some bytes, so patience never ends; the object does."""
    store.put("object", DATA)
    proxy.fail(Fault(method="GET", truncate_at_byte=MIB))
    assert store.get("object") == DATA


def test_a_slow_transfer_that_goes_on_finishes(store: BlockingStore, proxy: FaultProxy) -> None:
    store.put("object", DATA[:MIB])
    proxy.fail(Fault(method="GET", bytes_per_second=MIB / 2))
    start = time.monotonic()
    assert store.get("object") == DATA[:MIB]
    assert time.monotonic() - start > 2 * IMPATIENT.stall_seconds


def test_a_slow_upload_that_goes_on_finishes(store: BlockingStore, proxy: FaultProxy) -> None:
    proxy.fail(Fault(method="PUT", upload_bytes_per_second=2 * MIB))
    start = time.monotonic()
    store.put("object", DATA[: 3 * MIB])
    assert time.monotonic() - start > 2 * IMPATIENT.stall_seconds
    assert store.get("object") == DATA[: 3 * MIB]


def test_a_transfer_that_stalls_for_ever_is_given_up(
    store: BlockingStore, proxy: FaultProxy
) -> None:
    store.put("object", DATA)
    proxy.fail(Fault(method="GET", stall_at_byte=0))
    with pytest.raises(StoreError, match=r"reading object .* failed after 4 attempts in \d+\.\d s"):
        store.get("object")


def test_flipped_bytes_pass_and_are_the_digests_to_find(
    store: BlockingStore, proxy: FaultProxy
) -> None:
    store.put("object", DATA)
    proxy.fail(Fault(method="GET", flip_byte=7))
    assert store.get("object")[:8] == DATA[:7] + bytes([DATA[7] ^ 0xFF])


@pytest.mark.parametrize("status", [503, 429])
def test_throttling_is_waited_out(store: BlockingStore, proxy: FaultProxy, status: int) -> None:
    proxy.fail(Fault(status=status, share=0.3))
    for number in range(30):
        store.put(f"many/{number:02}", b"%d" % number)
    assert [store.get(info.path) for info in store.list("many/")] == [b"%d" % n for n in range(30)]
    assert any(request.fault for request in proxy.seen)


@pytest.mark.parametrize("status", [503, 429])
def test_throttling_without_end_says_how_long_it_was_tried(
    store: BlockingStore, proxy: FaultProxy, status: int
) -> None:
    proxy.fail(Fault(status=status))
    with pytest.raises(ThrottledError, match=rf"failed after 4 attempts in .* s: {status} "):
        store.put("object", b"1")
    with pytest.raises(ThrottledError, match=rf"looking up object .*: {status}"):
        store.head("object")
    with pytest.raises(ThrottledError, match=rf"listing .*: {status} "):
        list(store.list())


@pytest.mark.parametrize("size", [1, 2 * MIB], ids=str)
def test_a_create_whose_answer_is_lost_is_undecided(
    store: BlockingStore, proxy: FaultProxy, direct: BlockingStore, size: int
) -> None:
    proxy.fail(Fault(method="PUT", times=1, lose_answer=True))
    with pytest.raises(UndecidedError, match=r"writing object .* may or may not"):
        store.put("object", DATA[:size])
    assert direct.get("object") == DATA[:size]


def test_a_swap_whose_answer_is_lost_is_undecided(store: BlockingStore, proxy: FaultProxy) -> None:
    etag = store.put("object", b"old").etag
    proxy.fail(Fault(method="PUT", times=1, lose_answer=True))
    with pytest.raises(UndecidedError, match="may or may not"):
        store.put("object", b"new", match=etag)
    assert store.get("object") == b"new"


def test_an_overwrite_whose_answer_is_lost_is_sent_again(
    store: BlockingStore, proxy: FaultProxy
) -> None:
    proxy.fail(Fault(method="PUT", times=2, lose_answer=True))
    store.put("object", b"1", mode=Mode.OVERWRITE)
    assert store.get("object") == b"1"


def test_a_create_that_never_arrived_is_sent_again(store: BlockingStore, proxy: FaultProxy) -> None:
    proxy.fail(Fault(method="PUT", times=2, status=500))
    store.put("object", b"1")
    with pytest.raises(ObjectExistsError, match="object is there already"):
        store.put("object", b"2")


def test_a_write_without_any_answer_is_undecided(store: BlockingStore, proxy: FaultProxy) -> None:
    proxy.fail(Fault(method="PUT", lose_answer=True))
    for condition in ({"mode": Mode.OVERWRITE}, {"mode": Mode.CREATE}, {"match": '"1"'}):
        with pytest.raises((UndecidedError, PreconditionError), match="object"):
            store.put("object", b"1", **condition)


def test_a_late_answer_is_undecided(
    s3_server: S3Server, store: BlockingStore, proxy: FaultProxy, direct: BlockingStore
) -> None:
    transfer = Transfer(stall_seconds=0.2, max_attempts=1)
    hasty = open_store(store.url, transfer=transfer, **s3_server.options(url=proxy.url)).blocking()
    proxy.fail(Fault(method="PUT", latency_seconds=0.7))
    with pytest.raises(UndecidedError, match="no answer in time"):
        hasty.put("object", b"1")
    assert direct.url == hasty.url


def test_a_dropped_condition_is_seen_by_a_probe(proxy: FaultProxy) -> None:
    """Unsigned requests, because a server refuses signed ones that lost a header."""
    store = open_store(
        f"s3://anonymous/{uuid.uuid4().hex}", endpoint_url=proxy.url, anonymous=True
    ).blocking()
    store.put("object", b"1")
    with pytest.raises(ObjectExistsError, match="object"):
        store.put("object", b"2")
    proxy.fail(Fault(method="PUT", drop_headers=("If-None-Match",)))
    store.put("object", b"2")
    assert store.get("object") == b"2"


def test_a_dropped_header_of_a_signed_request_is_denied(
    store: BlockingStore, proxy: FaultProxy
) -> None:
    proxy.fail(Fault(method="PUT", drop_headers=("If-None-Match",)))
    with pytest.raises(AccessDeniedError, match=r"403 SignatureDoesNotMatch.*check credentials"):
        store.put("object", b"2")


def test_a_dropped_range_is_no_wrong_bytes(proxy: FaultProxy) -> None:
    url = f"s3://anonymous/{uuid.uuid4().hex}"
    store = open_store(url, endpoint_url=proxy.url, anonymous=True, transfer=IMPATIENT).blocking()
    store.put("object", DATA)
    proxy.fail(Fault(method="GET", drop_headers=("Range",)))
    with pytest.raises(StoreError, match="object"):
        store.get_range("object", MIB, 10)


def test_listings_go_on_after_a_fault(store: BlockingStore, proxy: FaultProxy) -> None:
    for number in range(5):
        store.put(f"a/{number}", b"")
    proxy.fail(
        Fault(target="list-type", times=1, lose_answer=True),
        Fault(target="list-type", times=1, truncate_at_byte=40),
    )
    assert [info.path for info in store.list("a/")] == [f"a/{number}" for number in range(5)]


def test_who_may_only_read_is_denied(s3_server: S3Server, store: BlockingStore) -> None:
    store.put("object", b"1")
    reader = open_store(store.url, **s3_server.options(reader=True)).blocking()
    assert reader.get("object") == b"1"
    with pytest.raises(AccessDeniedError, match=r"writing other .*: 403 AccessDenied"):
        reader.put("other", b"1")


def test_an_endpoint_where_nobody_listens_is_named(s3_server: S3Server) -> None:
    options = s3_server.options(url="http://127.0.0.1:9")
    store = open_store("s3://bucket/x", transfer=IMPATIENT, **options).blocking()
    with pytest.raises(StoreError, match="no connection; nothing was read; check the endpoint"):
        store.get("object")


def test_large_overwrites_go_up_in_parts(s3_server: S3Server, proxy: FaultProxy) -> None:
    transfer = Transfer(part_bytes=5 * MIB)
    store = open_store(
        f"s3://bucket/{uuid.uuid4().hex}", transfer=transfer, **s3_server.options(url=proxy.url)
    ).blocking()
    data = DATA * 5
    seen = len(proxy.seen)
    store.put("object", data, mode=Mode.OVERWRITE)
    assert sum("partNumber" in request.target for request in proxy.seen[seen:]) == 6
    assert store.get("object") == data


def test_a_view_never_mixes_versions(store: BlockingStore) -> None:
    store.put("object", b"old bytes")
    with store.open("object") as view:
        store.put("object", b"new bytes", mode=Mode.OVERWRITE)
        with pytest.raises(PreconditionError, match="object"):
            view.read_into(memoryview(bytearray(4)), 0)
