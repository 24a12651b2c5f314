from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from datapipe.clean import ExtractHtml, ExtractHtmlOptions
from datapipe.documents import batch_from_columns
from datapipe.engine.stages import document_stage
from datapipe.errors import MissingExtraError

pytest.importorskip("numba")
pytest.importorskip("resiliparse")

PAGE = """<!DOCTYPE html><html lang="pt-BR"><head><title> The
 title </title><meta property="article:published_time" content="2024-05-17T08:00:00Z">
<meta name=date content="2020-01-01"></head><body><nav><a href=x>Home</a></nav><main><h1>Head</h1>
<p>A paragraph of some length, which is what the page is about, and nothing else.</p>
<table><tr><td>cell</td></tr></table></main><footer>Imprint</footer></body></html>"""

Batch = Callable[[list[str]], pa.RecordBatch]


def pages(*texts: str, media_type: str | None = "text/html", language: Any = None) -> Any:
    return batch_from_columns(
        texts,
        source="web",
        source_file="a.warc",
        offsets=range(len(texts)),
        lengths=[1] * len(texts),
        media_type=[media_type] * len(texts),
        language=[language] * len(texts),
    )


@pytest.mark.parametrize("engine", ["resiliparse", "plain", "trafilatura"])
def test_a_page_becomes_its_text_and_tells_of_itself(engine: Any) -> None:
    pytest.importorskip("trafilatura")
    given = pages(PAGE)
    kept, dropped, signals = ExtractHtml(ExtractHtmlOptions(engine=engine)).apply(given)
    (row,) = kept.to_pylist()
    assert "A paragraph of some length" in row["text"]
    assert "<p>" not in row["text"]
    assert ("Imprint" in row["text"]) == (engine == "plain")
    assert (row["language"], row["media_type"]) == ("pt", "text/plain")
    assert row["content_hash"] == given.column("content_hash")[0].as_py()
    assert dropped.num_rows == 0
    assert kept.schema == given.schema
    assert signals is not None
    assert signals.to_pylist() == [
        {
            "doc_id": row["doc_id"],
            "extract_html.title": "The title",
            "extract_html.date": "2024-05-17",
        }
    ]


def test_documents_that_arent_pages_pass_unchanged() -> None:
    given = pages("<p>text", media_type=None)
    kept, _, signals = ExtractHtml().apply(given)
    assert kept.equals(given)
    assert signals is not None
    assert signals.column("extract_html.title").null_count == 1


def test_every_document_is_a_page_where_the_recipe_says_so() -> None:
    stage = document_stage("extract_html", {"media_type": "any"})
    kept, *_ = stage.apply(pages("<p>text", media_type=None))
    assert kept.column("text").to_pylist() == ["text"]


def test_a_language_that_is_known_stays() -> None:
    kept, *_ = ExtractHtml().apply(pages(PAGE, language="es"))
    assert kept.column("language").to_pylist() == ["es"]


@pytest.mark.parametrize(
    ("tag", "language"),
    [
        ("<html lang=en>", "en"), ("<HTML class=x LANG='zh_Hant'>", "zh"), ("<html>", None),
        ('<html lang="">', None), ('<html lang="x-default">', None), ('<html xml:lang="fr">', None),
        ('<html lang="english">', None), ("", None),
    ],
)  # fmt: skip
def test_languages_of_pages(tag: str, language: str | None) -> None:
    kept, *_ = ExtractHtml().apply(pages(f"{tag}<body>x"))
    assert kept.column("language").to_pylist() == [language]


@pytest.mark.parametrize(
    ("html", "rule", "value", "threshold"),
    [
        ("<div>" * 100_000, "too_deep", 513, 512),
        ("<p " + " ".join(f"a{i}" for i in range(40_000)) + ">", "too_many_attributes", 4e4, 256),
        ("<table>" + "<tr><td>x" * 1_000_000, "too_many_elements", 2_000_001, 500_000),
        ("x" * (17 << 20), "too_large", 17 << 20, 16 << 20),
        ("<div>" * 500 + "<p>x" * 25_000, "too_tangled", 12_649_749, 10_000_000),
        ("<ul>" * 200 + "<br>" * 45_000, "lists_too_deep", 18_039_800, 16 << 20),
    ],
    ids=["depth", "attributes", "rows", "bytes", "paths", "lists"],
)
def test_a_page_over_a_limit_is_dropped(html: str, rule: str, value: int, threshold: int) -> None:
    kept, dropped, signals = ExtractHtml().apply(pages("<p>a", html, "<p>b"))
    assert kept.column("text").to_pylist() == ["a", "b"]
    (row,) = dropped.to_pylist()
    assert (row["stage"], row["rule"]) == ("extract_html", rule)
    assert (row["value"], row["threshold"]) == (value, threshold)
    assert signals is not None
    assert signals.num_rows == 3


@pytest.mark.parametrize("engine", ["resiliparse", "plain", "trafilatura"])
@pytest.mark.parametrize(
    "html",
    [
        '<table><tr><td colspan="9007199254740991">a</td><td rowspan=99999999>b</td></tr></table>',
        "<b>x<p>" * 400,
        "<a href=x>y<table>" * 100,
        f"<p title={'a' * 100_000}>x",
        "&amp;&notit;&#x1F600;&#0;&bogus;" * 1000,
        "<" * 10_000,
        "<p>a\0b</p>\0\0",
        "\u202e<p>\u05d0\u05d1</p>",
        "<script>" + "x" * 10_000,
        "<!--",
        "",
        " \n",
        "\U0001f600",
        "...!!",
    ],
    ids=lambda html: html[:12].encode("unicode_escape").decode(),
)
def test_odd_pages_have_a_result_and_always_the_same(engine: Any, html: str) -> None:
    pytest.importorskip("trafilatura")
    stage = ExtractHtml(ExtractHtmlOptions(engine=engine))
    alone = stage.apply(pages(html)).batch.column("text").to_pylist()
    (again,) = stage.apply(pages(PAGE, html)).batch.column("text").to_pylist()[1:]
    assert alone == [again]


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    with pytest.raises(MissingExtraError, match=r"needs the package trafilatura.*train\[web\]"):
        ExtractHtml(ExtractHtmlOptions(engine="trafilatura"))
