from __future__ import annotations

import pytest

from tiering.store import printable_text, printable_url


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
