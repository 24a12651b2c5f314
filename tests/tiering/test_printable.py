from __future__ import annotations

import pytest

from tiering.printable import printable_reason
from tiering.store import has_secret, printable_text, printable_url, printable_urls


@pytest.mark.parametrize(
    ("url", "printed"),
    [
        ("s3://bucket/prefix", "s3://bucket/prefix"),
        ("s3://bucket/prefix/", "s3://bucket/prefix"),
        ("s3://key:secret@bucket/x", "s3://bucket/x"),
        ("s3://key:sec@ret@bucket/x@y", "s3://bucket/x@y"),
        ("https://host/x?sig=secret#secret", "https://host/x"),
        ("https://host?secret", "https://host"),
        ("https://user:secret@host", "https://host"),
        ("https:/user:secret@host/x?secret", "https:/host/x"),
        ("https://secret@host:80/x", "https://host:80/x"),
        ("https://us\"er:sec'ret@host", "https://host"),
        ("s3://key:secr/et@bucket/x", "s3://bucket/x"),
        ("s3://key:se?cr#et@bucket/x", "s3://bucket/x"),
        ("https://user:1/secret@host", "https://host"),
        ("https://user:secret", "https://***"),
        ("http://host:80/x", "http://host:80/x"),
        ("http://[::1]:80/x@y?secret", "http://[::1]:80/x@y"),
        ("github://org:secret@sha/x", "github://sha/x"),
        ("hf://user:secret@datasets/x@main", "hf://datasets/x@main"),
        ("simplecache::s3://key:secret@bucket/x", "simplecache::s3://bucket/x"),
        ("zip://x.csv::https://user:secret@host/x?secret", "zip://x.csv::https://host/x"),
        ("https://user:sec::ret@host/x", "https://host/x"),
        ("file:///a/b", "file:///a/b"),
        ("foo_bar://key:secret@x", "foo_bar://x"),
        ("web:v2@x?y", "web:v2@x?y"),
        ("memory://", "memory://"),
        ("/a/local path@x?y", "/a/local path@x?y"),
    ],
)
def test_a_printed_url_holds_no_secret(url: str, printed: str) -> None:
    assert printable_url(url) == printed


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("GET https://h/x?sig=secret in 3 ms", "GET https://h/x in 3 ms"),
        ("two: s3://a:b@c/d, 'gs://e/f?g'", "two: s3://c/d, 'gs://e/f'"),
        ('"authorization": "AWS4-secret"', '"authorization": "***"'),
        ("secret_access_key=abc next", "secret_access_key=*** next"),
        ("X-Amz-Security-Token: abc", "X-Amz-Security-Token: ***"),
        ("nothing to hide", "nothing to hide"),
    ],
)
def test_a_printed_text_holds_no_secret(text: str, printed: str) -> None:
    assert printable_text(text) == printed


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see https://user:pw@host/x", True),
        ("https://ghp_token@host", True),
        ("see https://host/x?X-Amz-Signature=1 and others", True),
        ("s3://a/b, zip://x::https://h/x?a=1&token=2", True),
        ("https://host/issues?id=5#c3", False),
        ("ssh://git@host/x", False),
        ("ann@example.org, token=1", False),
    ],
)
def test_secrets_of_urls_are_noticed(text: str, found: bool) -> None:
    assert has_secret(text) is found


def test_what_a_library_says_holds_no_part_of_a_url_that_is_not_printed() -> None:
    url = "github://org:ghp_1%2Fx@main/y?sig=abcd"
    said = "GET /repos/org/ghp_1/x failed, ghp_1%2Fx, abcd, main"
    assert printable_reason(said, url=url) == "GET /repos/org/*** failed, ***, ***, main"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("no s3://k:s/e@c/d; see", "no s3://c/d; see"),
        ("'/a/https:/u:s'x@h/d'", "'/a/https:/h/d'"),
        ("(simplecache::s3://u:s@b/x)", "(simplecache::s3://b/x)"),
        ("the token: kept, a:b, 12:30", "the token: kept, a:b, 12:30"),
    ],
)
def test_only_urls_of_a_message_are_changed(text: str, printed: str) -> None:
    assert printable_urls(text) == printed
