"""Clients of the clouds as far as they go without one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from tiering.errors import StoreURLError
from tiering.store import Mode, Transfer
from tiering.store.failures import FailureKind
from tiering.store.obstore_client import ObstoreClient, client_options
from tiering.store.obstore_open import open_cloud

exceptions = pytest.importorskip("obstore.exceptions", reason="obstore isn't installed")


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("s3://bucket/prefix", {"access_key_id": "k", "secret_access_key": "s"}),
        ("gs://bucket/prefix", {"skip_signature": True}),
        ("az://container/prefix", {"account_name": "lab", "account_key": "c2VjcmV0"}),
    ],
)
def test_a_client_of_each_cloud_is_made(url: str, options: Mapping[str, Any]) -> None:
    client = open_cloud(url, options, transfer=Transfer())
    assert client.lists_in_order
    assert "prefix" in repr(client._reader)
    assert "c2VjcmV0" not in repr(client._reader)


@pytest.mark.parametrize(
    ("endpoint", "ordered"),
    [
        ("http://127.0.0.1:8333", False),
        ("https://minio.lab", False),
        ("https://bucket.vpce-1.s3.eu-west-1.vpce.amazonaws.com", True),
        ("https://amazonaws.com.lab", False),
    ],
)
def test_only_the_clouds_are_trusted_to_list_in_order(endpoint: str, ordered: bool) -> None:
    options = {"endpoint_url": endpoint, "anonymous": True}
    assert open_cloud("s3://bucket", options, transfer=Transfer()).lists_in_order is ordered


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("az://box", {"account_name": "lab", "endpoint": "http://127.0.0.1:1/lab"}),
        ("gs://bucket", {"base_url": "http://127.0.0.1:1", "skip_signature": True}),
    ],
    ids=["az", "gs"],
)
def test_servers_of_other_makers_are_reached_without_tls(
    url: str, options: Mapping[str, Any]
) -> None:
    client = open_cloud(url, options, transfer=Transfer())
    assert not client.lists_in_order
    assert client._reader.client_options["allow_http"] in (True, "true")


def test_slow_downloads_and_uploads_have_no_total_limit() -> None:
    for reads in (True, False):
        options = client_options(Transfer(), allow_http=False, reads=reads)
        assert options["timeout"].days >= 1
        assert options.get("read_timeout") == (options["read_timeout"] if reads else None)
    assert Transfer().upload_seconds(250_000_000) > 250  # 1 MB/s


ERRORS = [
    ("Server returned non-2xx status code: 503 X: <Code>SlowDown</Code>", "THROTTLED"),
    ("Server returned non-2xx status code: 500 X: <Code>SlowDown</Code>", "THROTTLED"),
    ("Server returned non-2xx status code: 400 X: <Code>ExpiredToken</Code>", "EXPIRED"),
    ("Server returned non-2xx status code: 400 X: <Code>Other</Code>", "OTHER"),
    ("Server returned non-2xx status code: 409 X", "CONFLICT"),
    ("Server returned non-2xx status code: 502 X", "SERVER"),
    ("Server returned non-2xx status code: 507 X", "NO_SPACE"),
    ("HTTP error\n\nDebug source:\nHttpError { kind: Connect, }", "UNREACHABLE"),
    ("HTTP error\n\nDebug source:\nHttpError { kind: Timeout, }", "TIMED_OUT"),
    ("HTTP error\n\nDebug source:\nHttpError { kind: Interrupted, }", "INTERRUPTED"),
    ("Error performing PUT http://169.254.169.254/latest/api/token", "DENIED"),
    ("something else", "OTHER"),
]


@pytest.mark.parametrize(("text", "kind"), ERRORS, ids=[kind for _, kind in ERRORS])
def test_errors_of_the_library_are_told_apart(text: str, kind: str) -> None:
    client = open_cloud("s3://bucket", {"anonymous": True}, transfer=Transfer())
    assert client.explain(exceptions.GenericError(text)).kind is FailureKind[kind]


@pytest.mark.parametrize(
    ("code", "kind"),
    [("BlobAlreadyExists", "EXISTS"), ("ConditionalRequestConflict", "CONFLICT")],
)
def test_a_conflict_is_told_from_what_is_there(code: str, kind: str) -> None:
    client = open_cloud("s3://bucket", {"anonymous": True}, transfer=Transfer())
    text = f"Server returned non-2xx status code: 409 Conflict: <Code>{code}</Code>"
    error = exceptions.AlreadyExistsError(text)
    assert client.explain(error).kind is FailureKind[kind]


def test_a_swap_by_number_looks_the_version_up() -> None:
    """As on Google Cloud, but in memory."""
    store = pytest.importorskip("obstore.store").MemoryStore()
    client = ObstoreClient(
        lambda _: store, transfer=Transfer(), lists_in_order=True, swaps_by_number=True
    )

    async def use() -> None:
        first = await client.put("a", memoryview(b"1"), mode=Mode.CREATE, match=None)
        await client.put("a", memoryview(b"2"), mode=Mode.CREATE, match=first)
        for path in ("a", "none"):
            with pytest.raises(exceptions.PreconditionError, match=r"expected|isn't there"):
                await client.put(path, memoryview(b"3"), mode=Mode.CREATE, match=first)

    asyncio.run(use())


def test_an_option_that_no_store_knows_is_named() -> None:
    with pytest.raises(StoreURLError, match=r"gs://bucket can't be opened.*colour"):
        open_cloud("gs://bucket", {"colour": "red"}, transfer=Transfer())
