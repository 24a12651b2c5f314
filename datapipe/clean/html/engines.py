"""The libraries that turn a page into text, and what a page says of itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import Any, NamedTuple, TypeAlias

from datapipe.documents.libraries import optional_library

__all__ = ["Extracted", "Extractor", "extractor"]


class Extracted(NamedTuple):
    """The text of a page, and what it says of itself."""

    text: str
    title: str | None
    date: str | None
    """The day it was published, ISO 8601."""
    language: str | None
    """The first part of the page's `lang`: "pt" of pt-BR."""


Extractor: TypeAlias = Callable[[str], Extracted | None]
"""Takes a page's source; None: the library can't make anything of it."""

_ROOT = re.compile(r"<html\s[^>]{0,2000}", re.IGNORECASE)
_LANGUAGE = re.compile(
    r"\slang\s*=\s*([\"']?)\s*([a-z]{2,3})(?:[-_][\w-]*)?\s*(?:\1|$)(?=[\s/]|$)", re.IGNORECASE
)
_DAY = re.compile(r"\s*(\d{4}-\d\d-\d\d)(?!\d)")
_DATES = (
    *("article:published_time", "datepublished", "og:published_time", "date", "dc.date"),
    *("dc.date.issued", "dcterms.created", "dcterms.date", "dc.date.created", "pubdate"),
    *("publishdate", "publish-date", "sailthru.date", "parsely-pub-date"),
)
"""Names of <meta> that give the day of publication, best first."""

_IN_DATES = (
    *("published", "pubdate", "publish-date", "publishdate", "dc.date", "dcterms.", "pub-date"),
    *('"date"', "'date'", "=date", "sailthru.date"),
)
"""A head that gives one of _DATES holds one of these, in lower case."""
_COLSPAN = re.compile(r"(?:col|row)span\s*=\s*[\"']?\s*\d{4,}", re.IGNORECASE)
_LONGEST_TITLE = 1000


def extractor(
    engine: str, *, list_bullets: bool, alt_texts: bool, links: bool, tables: bool, comments: bool
) -> Extractor:
    """Returns what takes the text out of pages.

    Raises:
        MissingExtraError: the library isn't installed.
    """
    html = _library("resiliparse.parse.html", "resiliparse", "build")
    if engine == "trafilatura":
        text_of = _trafilatura(links=links, tables=tables, comments=comments)
        return lambda source: _extracted(html.HTMLTree.parse, lambda _: text_of(source), source)
    html2text = _library("resiliparse.extract.html2text", "resiliparse", "build")
    settings = {
        "preserve_formatting": True,
        "main_content": engine == "resiliparse",
        "list_bullets": list_bullets,
        "alt_texts": alt_texts,
        "links": links,
        "form_fields": False,
        "noscript": False,
        "comments": comments,
        "post_meta": True,
        "hidden_elements": False,
    }
    return lambda source: _extracted(
        html.HTMLTree.parse, lambda tree: html2text.extract_plain_text(tree, **settings), source
    )


def _library(module: str, package: str, extra: str) -> Any:
    return optional_library(module, stage="extract_html", package=package, extra=extra)


def _extracted(
    parse: Callable[[str], Any], text_of: Callable[[Any], str], source: str
) -> Extracted | None:
    try:
        tree = parse(source)
        text = text_of(tree)
    except Exception:
        return None
    day = _date(tree) if _may_have_date(source) else None
    return Extracted(text, _title(tree), day, _language(source))


def _trafilatura(*, links: bool, tables: bool, comments: bool) -> Callable[[str], str]:
    """Returns what calls trafilatura, without its clock and its memory of earlier pages."""
    library = _library("trafilatura", "trafilatura", "web")
    settings = _library("trafilatura.settings", "trafilatura", "web")
    config = settings.use_config()
    config.set("DEFAULT", "EXTRACTION_TIMEOUT", "0")

    def text_of(source: str) -> str:
        source = _COLSPAN.sub("data-span=1", source)  # it makes as many cells as a span says
        text: str | None = library.extract(
            source,
            config=config,
            deduplicate=False,
            include_links=links,
            include_tables=tables,
            include_comments=comments,
        )
        return text or ""

    return text_of


def _title(tree: Any) -> str | None:
    title = " ".join((tree.title or "").split())
    return title[:_LONGEST_TITLE] or None


def _language(source: str) -> str | None:
    """Returns the language that the page's outermost tag gives: nodes of the tree cost more."""
    start = source.find("<html")
    start = start if start >= 0 else source.find("<HTML")
    root = _ROOT.match(source, start) if start >= 0 else None
    found = _LANGUAGE.search(root[0]) if root else None
    return found[2].lower() if found else None


def _may_have_date(source: str) -> bool:
    """Tells whether a look at every <meta> is worth its time, a tenth of the extraction's."""
    end = source.find("<body")
    head = source[:end].lower() if end >= 0 else source.lower()
    if "date" not in head and "publish" not in head and "dcterms." not in head:
        return False
    return any(part in head for part in _IN_DATES)


def _date(tree: Any) -> str | None:
    if tree.head is None:
        return None
    days: dict[str, str] = {}
    for meta in tree.head.get_elements_by_tag_name("meta"):
        named = _attribute(meta, "property") or _attribute(meta, "name")
        name = (named or _attribute(meta, "itemprop")).strip().lower()
        if name in _DATES and name not in days:
            found = _DAY.match(_attribute(meta, "content"))
            if found and _is_day(found[1]):
                days[name] = found[1]
    return next((days[name] for name in _DATES if name in days), None)


def _attribute(element: Any, name: str) -> str:
    return element.getattr(name) or ""


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
