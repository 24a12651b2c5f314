from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from datapipe.clean.url.address import plain_url, read_address, registered_domain
from datapipe.clean.url.block_list import BlockList
from datapipe.documents import batch_from_columns
from datapipe.engine.stages import document_stage
from datapipe.errors import InputError, MissingExtraError

pytest.importorskip("publicsuffixlist")


def from_urls(*urls: str | None) -> pa.RecordBatch:
    rows = len(urls)
    return batch_from_columns(
        ["x"] * rows, source="s", source_file="f", offsets=range(rows), lengths=[1] * rows, url=urls
    )


def rule(url: str | None, **options: Any) -> str | None:
    kept, dropped, _ = document_stage("url_filter", options).apply(from_urls(url))
    assert kept.num_rows + dropped.num_rows == 1
    rules: list[str] = dropped.column("rule").to_pylist()
    return rules[0] if rules else None


@pytest.fixture
def listed(tmp_path: Path) -> str:
    path = tmp_path / "list.txt"
    path.write_text(
        "# bad ones\n\nBad.co.uk \n0.0.0.0 ads.example.com\nevil.github.io\nmüller.de\n"
    )
    return str(path)


@pytest.mark.parametrize(
    ("url", "domains", "hosts"),
    [
        ("https://www.bad.co.uk/x", True, True),
        ("http://BAD.CO.UK:8080", True, True),
        ("a.b.bad.co.uk/x", True, True),
        ("https://notbad.co.uk/", False, False),
        ("https://co.uk/", False, False),
        ("https://bad.co.uk.example.org/", False, False),
        ("https://example.com/bad.co.uk", False, False),
        ("http://ads.example.com./", False, True),
        ("http://x.ads.example.com/", False, True),
        ("http://example.com/", False, False),
        ("https://x.evil.github.io/", True, True),
        ("https://good.github.io/", False, False),
        ("https://www.xn--mller-kva.de/", True, True),
        ("https://www.Müller.de/", True, True),
        ("http://[::1]/", False, False),
        ("http://[::1", False, False),
        ("", False, False),
        (None, False, False),
    ],
)
def test_lists_of_domains_and_hosts(
    listed: str, url: str | None, domains: bool, hosts: bool
) -> None:
    assert rule(url, block_domains=listed) == ("blocked_domain" if domains else None)
    assert rule(url, block_hosts=listed) == ("blocked_host" if hosts else None)


@pytest.mark.parametrize(
    ("url", "blocked"),
    [
        ("https://www.example.com/a/", True), ("http://example.com/a#top", True),
        ("EXAMPLE.com/a", True), ("https://example.com/A", False),
        ("https://example.com/a?b", False),
    ],
)  # fmt: skip
def test_lists_of_urls(tmp_path: Path, url: str, blocked: bool) -> None:
    path = tmp_path / "urls.txt"
    path.write_text("https://example.com/a\n")
    assert (rule(url, block_urls=str(path)) == "blocked_url") == blocked


@pytest.mark.parametrize(
    ("url", "options", "expected"),
    [
        ("https://x.com/Casino-night", {"hard_words": ["casino"]}, "hard_word"),
        ("https://casino.com/", {"hard_words": ["CASINO"]}, "hard_word"),
        ("https://x.com/casinos", {"hard_words": ["casino"]}, None),
        ("https://x.com/%63asino", {"hard_words": ["casino"]}, "hard_word"),
        ("https://x.com/?q=poker_slots", {"soft_words": ["poker", "slots"]}, "soft_words"),
        ("https://x.com/poker/poker", {"soft_words": ["poker", "slots"]}, None),
        ("https://x.com/poker", {"soft_words": ["poker"], "max_soft_words": 0}, "soft_words"),
        ("https://x.com/bigca-sinos", {"parts": ["casino"]}, "part"),
        (None, {}, None),
        (None, {"missing": "drop"}, "missing_url"),
        ("https:///path", {"missing": "drop"}, "missing_url"),
        ("https://x.com", {"missing": "drop"}, None),
    ],
)
def test_words_and_missing_addresses(url: str | None, options: Any, expected: str | None) -> None:
    assert rule(url, **options) == expected


def test_how_many_soft_words_there_were_is_kept() -> None:
    stage = document_stage("url_filter", {"soft_words": ["a", "b", "c"]})
    (row,) = stage.apply(from_urls("http://x.com/a-b-c")).dropped.to_pylist()
    assert (row["value"], row["threshold"]) == (3, 1)


def test_a_long_list_takes_16_bytes_an_entry_and_finds_exactly_what_is_in_it() -> None:
    names = [f"host{i}.example.org" for i in range(200_000)]
    blocked = BlockList(iter(names))
    assert (len(blocked), blocked.nbytes) == (200_000, 3_200_000)
    assert all(name in blocked for name in names[::997])
    assert not any(f"x{name}" in blocked for name in names[::997])
    assert "a" not in BlockList([])


def test_a_list_that_cant_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the list .*gone\.txt of url_filter can't be read"):
        document_stage("url_filter", {"block_hosts": str(tmp_path / "gone.txt")})


def test_a_missing_suffix_list_is_named(monkeypatch: pytest.MonkeyPatch, listed: str) -> None:
    registered_domain.cache_clear()
    monkeypatch.setitem(sys.modules, "publicsuffixlist", None)
    with pytest.raises(MissingExtraError, match=r"publicsuffixlist, .*train\[build\]"):
        document_stage("url_filter", {"block_domains": listed})
    registered_domain.cache_clear()


def test_parts_of_addresses() -> None:
    address = read_address("HTTPS://User:pw@Www.Example.COM:80/A_b/%C3%A9?q=1#f")
    assert address is not None
    assert (address.host, address.words) == (
        "www.example.com",
        ("www", "example", "com", "a", "b", "é", "q", "1"),
    )
    assert plain_url("http://www.a.com/") == plain_url("a.com") == "a.com"
