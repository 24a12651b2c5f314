"""An HTTP proxy on loopback that fails on purpose, between a store's client and its server.

It takes one server's place: clients are given its `url` as their endpoint. Host headers pass
unchanged, so signatures stay valid. Bodies are held in memory, so keep them below some 100 MB.

with FaultProxy("http://127.0.0.1:8333") as proxy:
    proxy.fail(Fault(method="PUT", times=1, lose_answer=True))
    store = open_store("s3://bucket", endpoint_url=proxy.url)
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tiering.testing.http_messages import MAX_HEAD_BYTES, PIECE_BYTES, Head, read_body, read_head

__all__ = ["Fault", "FaultProxy", "SeenRequest"]

_START_SECONDS = 10.0
_EXPECTED = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """Which requests are hit, and what happens to them; everything set happens."""

    method: str = ""
    """Only this method; empty: any."""
    target: str = ""
    """Only where path and query hold this; empty: any."""
    times: int | None = None
    """At most so often; None: always."""
    share: float = 1.0
    """Fraction of the matching requests that are hit, drawn with the proxy's seed."""
    latency_seconds: float = 0.0
    """Wait before the request is passed on."""
    bytes_per_second: float | None = None
    """The pace of the answer's body."""
    upload_bytes_per_second: float | None = None
    """The pace at which the request's body is taken."""
    drop_headers: tuple[str, ...] = ()
    """Request headers that don't arrive."""
    status: int | None = None
    """Answer this instead of passing the request on."""
    reset_at_byte: int | None = None
    """Reset the connection after so many bytes of the answer's body."""
    truncate_at_byte: int | None = None
    """Close the connection after so many bytes of the answer's body."""
    shorten_to_bytes: int | None = None
    """Cut the body and say so in Content-Length: an answer that looks whole."""
    flip_byte: int | None = None
    """Flip all bits of this byte of the answer's body."""
    stall_at_byte: int | None = None
    """Send no more after so many bytes of the answer's body, but keep the connection."""
    lose_answer: bool = False
    """Carry the request out, then reset the connection instead of answering."""

    def matches(self, request: Head) -> bool:
        """Returns whether a request is of those that are hit."""
        return self.method in ("", request.method) and self.target in request.target


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenRequest:
    """A request that came, and the fault that hit it."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    fault: Fault | None


class FaultProxy:
    """The proxy, in a thread of its own, as a context manager; safe to use from any thread."""

    def __init__(self, upstream: str, *, seed: int = 0) -> None:
        """Nothing listens before the context is entered.

        Args:
            upstream: the server's URL, `http://host:port`.
            seed: for the share of requests that are hit.
        """
        parts = urlsplit(upstream)
        self._upstream = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self._hits: dict[int, int] = {}
        self._seen: list[SeenRequest] = []
        self._connections: set[object] = set()
        self._loop = asyncio.new_event_loop()
        self._port: Future[int] = Future()
        self._thread = threading.Thread(target=self._run, name="fault-proxy", daemon=True)

    @property
    def url(self) -> str:
        """The endpoint to give to clients."""
        return f"http://127.0.0.1:{self._port.result(timeout=_START_SECONDS)}"

    @property
    def seen(self) -> list[SeenRequest]:
        """All requests until now, in the order they came."""
        with self._lock:
            return list(self._seen)

    def fail(self, *faults: Fault) -> None:
        """From now on exactly these faults; a request gets the first that matches."""
        with self._lock:
            self._faults, self._hits = list(faults), {}

    def __enter__(self) -> FaultProxy:
        self._thread.start()
        self._port.result(timeout=_START_SECONDS)
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=_START_SECONDS)

    # -- the server

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._accept, "127.0.0.1", 0, limit=MAX_HEAD_BYTES)
        )
        self._port.set_result(server.sockets[0].getsockname()[1])
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(task := asyncio.current_task())  # the loop itself refers weakly
        try:
            await self._converse(reader, writer)
        finally:
            self._connections.discard(task)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(*_EXPECTED, asyncio.CancelledError):
            while (head := await read_head(reader)) is not None:
                if head.get("Expect"):
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                fault = self._choose(head) or Fault()
                body = await read_body(reader, head, pace=fault.upload_bytes_per_second)
                if not await self._serve(head.without("Expect"), body, writer, fault=fault):
                    break
        with contextlib.suppress(OSError):
            writer.close()

    async def _serve(
        self, head: Head, body: bytes, writer: asyncio.StreamWriter, *, fault: Fault
    ) -> bool:
        """Answers one request; returns whether the connection goes on."""
        await asyncio.sleep(fault.latency_seconds)
        if fault.status is not None:
            writer.write(_refusal(fault.status, method=head.method))
            await writer.drain()
            return True
        answer, data = await self._forward(head.without(*fault.drop_headers), body)
        if fault.lose_answer:
            _reset(writer)
            return False
        return await _send(answer, data, writer, fault=fault)

    def _choose(self, head: Head) -> Fault | None:
        with self._lock:
            fault = self._first_match(head)
            seen = SeenRequest(
                method=head.method, target=head.target, headers=head.headers, fault=fault
            )
            self._seen.append(seen)
        return fault

    def _first_match(self, head: Head) -> Fault | None:
        for number, fault in enumerate(self._faults):
            hits = self._hits.get(number, 0)
            if not fault.matches(head) or (fault.times is not None and hits >= fault.times):
                continue
            if self._random.random() < fault.share:
                self._hits[number] = hits + 1
                return fault
        return None

    async def _forward(self, head: Head, body: bytes) -> tuple[Head, bytes]:
        reader, writer = await asyncio.open_connection(*self._upstream, limit=MAX_HEAD_BYTES)
        try:
            writer.write(head.encoded() + body)
            await writer.drain()
            answer = await read_head(reader)
            while answer is not None and answer.status < 200:
                answer = await read_head(reader)
            if answer is None:
                raise ConnectionError("the server closed the connection")
            has_body = answer.has_body(answers=head.method)
            return answer, await read_body(reader, answer) if has_body else b""
        finally:
            writer.close()


async def _send(head: Head, body: bytes, writer: asyncio.StreamWriter, *, fault: Fault) -> bool:
    """Sends an answer, damaged as the fault says; returns whether the connection goes on."""
    if fault.flip_byte is not None and fault.flip_byte < len(body):
        at = fault.flip_byte
        body = body[:at] + bytes([body[at] ^ 0xFF]) + body[at + 1 :]
    if fault.shorten_to_bytes is not None and fault.shorten_to_bytes < len(body):
        body = body[: fault.shorten_to_bytes]
        head = head.replaced("Content-Length", str(len(body)))
    end, finish = _end(fault, len(body))
    writer.write(head.encoded())
    await _send_paced(body[:end], writer, bytes_per_second=fault.bytes_per_second)
    if finish is not None:
        await finish(writer)
    return finish is None


async def _send_paced(
    body: bytes, writer: asyncio.StreamWriter, *, bytes_per_second: float | None
) -> None:
    if bytes_per_second is None:
        writer.write(body)
        await writer.drain()
        return
    for start in range(0, len(body), PIECE_BYTES):
        piece = body[start : start + PIECE_BYTES]
        await asyncio.sleep(len(piece) / bytes_per_second)
        writer.write(piece)
        await writer.drain()


def _end(
    fault: Fault, size: int
) -> tuple[int, Callable[[asyncio.StreamWriter], Awaitable[None]] | None]:
    """Returns how much of the body is sent, and what is done instead of going on."""
    ends: list[tuple[int | None, Callable[[asyncio.StreamWriter], Awaitable[None]]]] = [
        (fault.reset_at_byte, _reset_later),
        (fault.truncate_at_byte, _close),
        (fault.stall_at_byte, _stall),
    ]
    for at, finish in ends:
        if at is not None and at < size:
            return at, finish
    return size, None


async def _stall(_: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def _close(writer: asyncio.StreamWriter) -> None:
    await writer.drain()


async def _reset_later(writer: asyncio.StreamWriter) -> None:
    await writer.drain()
    await asyncio.sleep(0.05)  # a reset overtakes bytes that the client hasn't read yet
    _reset(writer)


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    linger = struct.pack("ii", 1, 0)  # close sends RST
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


def _refusal(status: int, *, method: str) -> bytes:
    code = {429: "TooManyRequests", 503: "SlowDown"}.get(status, "InternalError")
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>on purpose</Message></Error>"
    lines = (
        f"HTTP/1.1 {status} {code}",
        "Content-Type: application/xml",
        f"Content-Length: {len(body)}",
        "",
        "" if method == "HEAD" else body,
    )
    return "\r\n".join(lines).encode()
