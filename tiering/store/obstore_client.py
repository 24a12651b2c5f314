"""Object stores by obstore: S3, Google Cloud Storage, Azure, and memory."""

from __future__ import annotations

import builtins
import re
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import timedelta
from typing import Any

from tiering.checksums import Buffer
from tiering.errors import StoreError
from tiering.printable import printable_text
from tiering.store.client import Body
from tiering.store.failures import Failure, FailureKind, kind_of_answer
from tiering.store.obstore_library import exceptions, library
from tiering.store.options import Transfer
from tiering.store.protocol import Mode, ObjectInfo

__all__ = ["ObstoreClient", "client_options", "retry_config"]

_PIECE_BYTES = 1 << 20
_SMALL_PIECE_BYTES = 64 * 1024  # after a break: what a broken transfer brought isn't lost
_LISTED_AT_ONCE = 1000
_MAX_SINGLE_PUT_BYTES = 5 << 30
_FOREVER = timedelta(days=30)

_STATUS = re.compile(r"Server returned non-2xx status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w{1,64})</Code>")
_TRANSPORT = re.compile(r"\bkind: (Connect|Timeout|Interrupted|Request|Decode|Unknown)\b")
_CONFLICTS = ("ConditionalRequestConflict", "OperationAborted")
"""S3's 409: not carried out, for another one is under way. Azure's 409 says that it exists."""
_RANGE_ERRORS = ("StartTooLarge", "range starting at", '"bytes 0--1/0"')
"""The last is Azurite's answer to a range of an empty object."""
_NO_CREDENTIALS = ("credential", "169.254.169.254", "metadata.google.internal")

_BY_TRANSPORT = {
    "Connect": FailureKind.UNREACHABLE,
    "Timeout": FailureKind.TIMED_OUT,
}
_TRANSPORT_WORDS = {
    FailureKind.UNREACHABLE: "no connection",
    FailureKind.TIMED_OUT: "no byte came for too long",
    FailureKind.INTERRUPTED: "the connection broke",
}


def client_options(transfer: Transfer, *, allow_http: bool, reads: bool) -> dict[str, Any]:
    """Returns obstore's options for patience.

    Its total time-out of 30 s would end slow transfers that go on. Uploads get no time-out by
    read: none comes while a large body is sent; the caller bounds them by size.
    """
    options: dict[str, Any] = {
        "connect_timeout": timedelta(seconds=transfer.connect_seconds),
        "timeout": _FOREVER,
        "allow_http": allow_http,
    }
    if reads:
        options["read_timeout"] = timedelta(seconds=transfer.stall_seconds)
    return options


def retry_config() -> dict[str, Any]:
    """Returns obstore's options for retries: none.

    A retry below us would hide that an earlier attempt may have been carried out.
    """
    return {"max_retries": 0, "retry_timeout": _FOREVER}


class ObstoreClient:
    """Requests to one store of obstore; belongs to one process."""

    def __init__(
        self,
        make: Callable[[bool], Any],
        *,
        transfer: Transfer,
        lists_in_order: bool,
        swaps_by_number: bool = False,
    ) -> None:
        """Sends nothing yet.

        Args:
            make: makes obstore's store, for reading (True) or writing (False).
            transfer: patience and sizes.
            lists_in_order: whether listings come ascending by whole path.
            swaps_by_number: swaps need a generation number, which only a look-up tells (Google).
        """
        self._swaps_by_number = swaps_by_number
        self._make = make
        self._transfer = transfer
        self._ordered = lists_in_order
        self.renew()

    @property
    def lists_in_order(self) -> bool:
        """Whether listings come ascending by whole path."""
        return self._ordered

    async def head(self, path: str) -> ObjectInfo:
        """See `Client.head`."""
        return _info(await library().head_async(self._reader, path), path)

    async def read(
        self, path: str, *, start: int, stop: int | None, etag: str | None, resumed: bool
    ) -> Body:
        """See `Client.read`."""
        # Always a range: its answer says how large the whole is, which unmasks one cut short.
        span: Any = {"offset": start} if stop is None else (start, stop)
        options: dict[str, Any] = {"range": span}
        if etag is not None:
            options["if_match"] = etag
        answer = await library().get_async(self._reader, path, options=options)
        smallest = _SMALL_PIECE_BYTES if resumed else _PIECE_BYTES
        return Body(_info(answer.meta, path), _pieces(answer.stream(min_chunk_size=smallest)))

    async def put(self, path: str, data: memoryview, *, mode: Mode, match: str | None) -> str:
        """See `Client.put`; only a plain overwrite is sent in parts."""
        condition: Any = "create" if mode is Mode.CREATE else "overwrite"
        if match is not None:
            condition = await self._version(path, match)
        in_parts = condition == "overwrite" and data.nbytes > 4 * self._transfer.part_bytes
        if not in_parts and data.nbytes > _MAX_SINGLE_PUT_BYTES:
            raise StoreError(
                f"{path} has {data.nbytes} bytes, and object stores take at most "
                f"{_MAX_SINGLE_PUT_BYTES} in one conditional request; nothing was written; write "
                "smaller objects",
                path=path,
            )
        try:
            result = await library().put_async(
                self._writer,
                path,
                data,
                mode=condition,
                use_multipart=in_parts,
                chunk_size=self._transfer.part_bytes,
            )
        except exceptions().AlreadyExistsError as error:
            if match is None:
                raise
            raise exceptions().PreconditionError(str(error)) from error
        return str(result["e_tag"] or "")

    async def _version(self, path: str, etag: str) -> dict[str, str]:
        """Returns obstore's name for the version to replace."""
        if not self._swaps_by_number:
            return {"e_tag": etag}
        try:
            meta = await library().head_async(self._reader, path)
        except FileNotFoundError as error:
            raise exceptions().PreconditionError(f"{path} isn't there") from error
        if meta["e_tag"] != etag:
            raise exceptions().PreconditionError(f"etag {meta['e_tag']}, expected {etag}")
        return {"e_tag": etag} | ({"version": meta["version"]} if meta["version"] else {})

    async def list(self, prefix: str, *, after: str) -> AsyncIterator[builtins.list[ObjectInfo]]:
        """See `Client.list`; obstore takes whole folders as prefixes."""
        folder = prefix.rpartition("/")[0]
        # A server with an order of its own skips too much behind an offset: SeaweedFS lists
        # `a/b` before `a b`, and nothing of the folder `a` behind the offset `a`.
        offset = max(after, prefix[:-1]) if self._ordered else ""
        found = library().list(
            self._reader,
            folder or None,
            offset=offset or None,
            chunk_size=_LISTED_AT_ONCE,
        )
        async for page in found:
            yield [_info(meta, meta["path"]) for meta in page]

    async def delete(self, path: str) -> None:
        """See `Client.delete`."""
        try:
            await library().delete_async(self._writer, path)
        except FileNotFoundError:
            return

    def renew(self) -> None:
        """See `Client.renew`; obstore keeps credentials as long as the store."""
        self._reader, self._writer = self._make(True), self._make(False)

    def explain(self, error: Exception) -> Failure:
        """See `Client.explain`."""
        text = str(error)
        status, code = _STATUS.search(text), _CODE.search(text)
        words = " ".join(filter(None, (status and status[1], code and code[1])))
        kind = _by_type(error)
        if kind is None or (code and code[1] in _CONFLICTS):
            kind = _by_text(text, status=int(status[1]) if status else 0, code=code and code[1])
        return Failure(kind, words or _TRANSPORT_WORDS.get(kind) or _first_line(text))


def _by_type(error: Exception) -> FailureKind | None:
    known = exceptions()
    if isinstance(error, FileNotFoundError):
        return FailureKind.NOT_FOUND
    if isinstance(error, known.AlreadyExistsError):
        return FailureKind.EXISTS
    if isinstance(error, (known.PreconditionError, known.NotModifiedError)):
        return FailureKind.CHANGED
    if _CODE.search(str(error)):
        return None  # expired credentials come as several types
    if isinstance(error, (known.PermissionDeniedError, known.UnauthenticatedError)):
        return FailureKind.DENIED
    return None


def _by_text(text: str, *, status: int, code: str | None) -> FailureKind:
    if status:
        return kind_of_answer(status, code)
    if any(word in text for word in _RANGE_ERRORS):
        return FailureKind.BEYOND_END
    if any(word in text.lower() for word in _NO_CREDENTIALS):
        return FailureKind.DENIED
    transport = _TRANSPORT.search(text)
    if transport is None:
        return FailureKind.OTHER
    return _BY_TRANSPORT.get(transport[1], FailureKind.INTERRUPTED)


def _first_line(text: str) -> str:
    return printable_text(text.split("\n", 1)[0])[:300]


def _info(meta: Mapping[str, Any], path: str) -> ObjectInfo:
    return ObjectInfo(
        path=path,
        size=int(meta["size"]),
        etag=_same_everywhere(str(meta["e_tag"] or meta["version"] or "")),
        modified_seconds=meta["last_modified"].timestamp(),
    )


def _same_everywhere(etag: str) -> str:
    """Returns an etag as headers have it: Azure's listings leave its quotes out."""
    return f'"{etag}"' if etag.startswith("0x") else etag


async def _pieces(stream: AsyncIterator[Buffer]) -> AsyncIterator[Buffer]:
    async for piece in stream:
        yield piece
