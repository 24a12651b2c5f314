"""The proxy itself, before a plain server that echoes."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from tiering.testing import Fault, FaultProxy

BODY = bytes(range(200))


class Echo(BaseHTTPRequestHandler):
    """Answers GET with BODY, or chunks of it; PUT with what it got; counts in the server."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/chunked":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"64\r\n" + BODY[:100] + b"\r\n64\r\n" + BODY[100:] + b"\r\n0\r\n\r\n")
            return
        self._answer(BODY)

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        APPLIED.append(self.path)
        self._answer(self.headers.get("X-Seen", "nothing").encode() + b" " + body)

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        del format, args


APPLIED: list[str] = []


@pytest.fixture(scope="module")
def proxy() -> Iterator[FaultProxy]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    with FaultProxy(f"http://127.0.0.1:{server.server_address[1]}") as running:
        yield running
    server.shutdown()
    server.server_close()
    thread.join()


def ask(
    proxy: FaultProxy,
    method: str = "GET",
    path: str = "/",
    body: bytes | None = None,
    *,
    fault: Fault | None = None,
    timeout: float = 5.0,
) -> tuple[int, bytes]:
    proxy.fail(*([fault] if fault else []))
    address = urlsplit(proxy.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=timeout)
    try:
        connection.request(method, path, body, {"X-Seen": "seen"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_without_faults_all_passes(proxy: FaultProxy) -> None:
    assert ask(proxy) == (200, BODY)
    assert ask(proxy, path="/chunked") == (200, BODY)
    assert ask(proxy, "HEAD") == (200, b"")
    assert ask(proxy, "PUT", "/x", b"body") == (200, b"seen body")
    assert (proxy.seen[-1].method, proxy.seen[-1].target) == ("PUT", "/x")


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault(shorten_to_bytes=3), BODY[:3]),
        (Fault(flip_byte=1), b"\x00\xfe" + BODY[2:]),
        (Fault(flip_byte=1000), BODY),
        (Fault(method="PUT", flip_byte=1), BODY),
        (Fault(target="/other", flip_byte=1), BODY),
        (Fault(times=0, flip_byte=1), BODY),
        (Fault(share=0.0, flip_byte=1), BODY),
    ],
    ids=["short", "flipped", "behind", "other method", "other target", "never", "no share"],
)
def test_a_body_is_damaged_where_the_fault_matches(
    proxy: FaultProxy, fault: Fault, expected: bytes
) -> None:
    assert ask(proxy, fault=fault) == (200, expected)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault(truncate_at_byte=5), http.client.IncompleteRead),
        (Fault(reset_at_byte=5), ConnectionResetError),
        (Fault(reset_at_byte=0), ConnectionResetError),
        (Fault(stall_at_byte=5), TimeoutError),
        (Fault(lose_answer=True), ConnectionResetError),
    ],
    ids=["truncated", "reset", "reset at once", "stalled", "lost"],
)
def test_a_connection_ends_as_told(proxy: FaultProxy, fault: Fault, error: type[Exception]) -> None:
    with pytest.raises(error):
        ask(proxy, fault=fault, timeout=0.3)


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT"])
def test_a_status_is_answered_without_asking_the_server(proxy: FaultProxy, method: str) -> None:
    APPLIED.clear()
    status, body = ask(proxy, method, "/x", b"1", fault=Fault(status=503))
    assert (status, b"SlowDown" in body) == (503, method != "HEAD")
    assert APPLIED == []


def test_a_lost_answer_was_applied(proxy: FaultProxy) -> None:
    APPLIED.clear()
    with pytest.raises(ConnectionResetError):
        ask(proxy, "PUT", "/applied", b"1", fault=Fault(lose_answer=True))
    assert APPLIED == ["/applied"]


def test_a_dropped_header_does_not_arrive(proxy: FaultProxy) -> None:
    answer = ask(proxy, "PUT", "/x", b"1", fault=Fault(drop_headers=("x-seen",)))
    assert answer == (200, b"nothing 1")


@pytest.mark.parametrize(
    "fault", [Fault(latency_seconds=0.2), Fault(bytes_per_second=1000.0)], ids=["late", "slow"]
)
def test_answers_are_held_back(proxy: FaultProxy, fault: Fault) -> None:
    start = time.monotonic()
    assert ask(proxy, fault=fault) == (200, BODY)
    assert time.monotonic() - start > 0.15


def test_a_share_of_requests_is_hit(proxy: FaultProxy) -> None:
    address = urlsplit(proxy.url)
    proxy.fail(Fault(status=503, share=0.5, times=10))
    statuses = []
    for _ in range(60):
        connection = http.client.HTTPConnection(address.hostname or "", address.port)
        connection.request("GET", "/")
        statuses.append(connection.getresponse().status)
        connection.close()
    assert statuses.count(503) == 10
    assert statuses[:20].count(200) > 2
