"""The stage `extract_html`: documents that are web pages become the text in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from datapipe.clean.changes import Removal, measured, replaced, without
from datapipe.clean.html.engines import Extracted, Extractor, extractor
from datapipe.documents import StageResult, with_values

__all__ = ["ExtractHtml", "ExtractHtmlOptions"]

_DEPTH_ON_AVERAGE = 20  # 100,000 paragraphs in 500 <div> take 4 s

Rows: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class ExtractHtmlOptions:
    """What is taken out of which pages."""

    engine: Literal["resiliparse", "plain", "trafilatura"] = "resiliparse"
    """resiliparse: its main content; plain: all its text; trafilatura: that library's text."""
    media_type: Literal["html", "any"] = "html"
    """html: documents whose reader found text/html; any: every document is a page."""
    list_bullets: bool = True
    """Bullets and numbers stand in front of list items."""
    alt_texts: bool = False
    """Descriptions of pictures belong to the text."""
    links: bool = False
    """Addresses of links stand behind them."""
    tables: bool = True
    """Tables belong to the text; trafilatura alone can leave them out."""
    comments: bool = True
    """Comments of readers belong to the main content."""
    max_bytes: int = 16 << 20
    """UTF-8 bytes of a page, and of the indentation of its lists."""
    max_depth: int = 512
    """Elements in each other, as in browsers."""
    max_attributes: int = 256
    """Of one tag."""
    max_elements: int = 500_000


class ExtractHtml:
    """Replaces the source of web pages by their text; other documents pass unchanged.

    A page over a limit is dropped before anything is parsed, with what was measured. The same page
    always gives the same text: no time limit, no memory of other pages. `language` is set from the
    page where the reader left it open; title and date are signals.
    """

    name = "extract_html"
    version = 1

    def __init__(self, options: ExtractHtmlOptions | None = None) -> None:
        self._options = options or ExtractHtmlOptions()
        self._extract: Extractor = extractor(
            self._options.engine,
            list_bullets=self._options.list_bullets,
            alt_texts=self._options.alt_texts,
            links=self._options.links,
            tables=self._options.tables,
            comments=self._options.comments,
        )

    @property
    def options(self) -> Mapping[str, object]:
        """All options, as JSON values."""
        return asdict(self._options)

    def apply(self, batch: pa.RecordBatch) -> StageResult:
        """Returns the documents with text in the place of pages."""
        rows, texts = self._pages(batch), batch.column("text")
        removals = self._over_limits(texts, rows)
        removed = {removal.row for removal in removals}
        pages: dict[int, Extracted] = {}
        for row in rows.tolist():
            if row not in removed:
                extracted = self._extract(texts[row].as_py())
                if extracted is None:
                    removals.append(Removal(row, "failed"))
                else:
                    pages[row] = extracted
        kept, dropped = without(_changed(batch, pages), removals, stage=self.name)
        return StageResult(kept, dropped, _signals(batch, pages))

    def _pages(self, batch: pa.RecordBatch) -> Rows:
        if self._options.media_type == "any":
            return np.arange(batch.num_rows)
        pages = pc.equal(batch.column("media_type"), "text/html").fill_null(False)
        return np.flatnonzero(pages.to_numpy(zero_copy_only=False))

    def _over_limits(self, texts: pa.Array, rows: Rows) -> list[Removal]:
        """Returns the pages over a limit, each for the first limit that it is over."""
        options = self._options
        sizes = pc.binary_length(texts.take(pa.array(rows))).to_numpy()
        large = sizes > options.max_bytes
        removals = [
            Removal(row, "too_large", size, options.max_bytes)
            for row, size in zip(rows[large].tolist(), sizes[large].tolist(), strict=True)
        ]
        return removals + self._tangled(texts, rows[~large])

    def _tangled(self, texts: pa.Array, rows: Rows) -> list[Removal]:
        from datapipe.clean.html import structure  # brings Numba, which takes half a second

        options = self._options
        found = structure.measure(texts, rows, most_depth=options.max_depth + 1)
        limits = (
            ("too_deep", structure.DEPTH, options.max_depth),
            ("too_many_attributes", structure.ATTRIBUTES, options.max_attributes),
            ("too_many_elements", structure.NODES, options.max_elements),
            ("too_tangled", structure.PATHS, options.max_elements * _DEPTH_ON_AVERAGE),
            ("lists_too_deep", structure.INDENT, options.max_bytes),
        )
        removals: dict[int, Removal] = {}
        for rule, column, limit in limits:
            for place in np.flatnonzero(found[:, column] > limit).tolist():
                row = int(rows[place])
                removals.setdefault(row, Removal(row, rule, int(found[place, column]), limit))
        return list(removals.values())


def _changed(batch: pa.RecordBatch, pages: Mapping[int, Extracted]) -> pa.RecordBatch:
    if not pages:
        return batch
    texts = replaced(batch.column("text"), list(pages), [page.text for page in pages.values()])
    languages = batch.column("language").to_pylist()
    media_types = batch.column("media_type").to_pylist()
    for row, page in pages.items():
        media_types[row] = "text/plain"
        languages[row] = page.language if languages[row] is None else languages[row]
    batch = with_values(batch, "text", texts)
    batch = with_values(batch, "language", pa.array(languages, pa.string()))
    return with_values(batch, "media_type", pa.array(media_types, pa.string()))


def _signals(batch: pa.RecordBatch, pages: Mapping[int, Extracted]) -> pa.RecordBatch:
    def column(values: Mapping[int, Any]) -> pa.Array:
        return pa.array([values.get(row) for row in range(batch.num_rows)], pa.string())

    return measured(
        batch,
        extract_html__title=column({row: page.title for row, page in pages.items()}),
        extract_html__date=column({row: page.date for row, page in pages.items()}),
    )
