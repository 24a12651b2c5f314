"""The stages of this folder, by the names that recipes give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from datapipe.clean.drop_empty import DropEmpty
from datapipe.clean.fix_text import FixText, FixTextOptions
from datapipe.clean.html import ExtractHtml, ExtractHtmlOptions
from datapipe.clean.language import Language, LanguageOptions
from datapipe.clean.lines import (
    C4Lines,
    C4LinesOptions,
    DuplicateLines,
    DuplicateOptions,
    DuplicateParagraphs,
    LineRules,
    LineRulesOptions,
    RefinedWebLines,
    RefinedWebLinesOptions,
)
from datapipe.clean.normalize import Normalize, NormalizeOptions
from datapipe.clean.pii import Pii, PiiOptions
from datapipe.clean.url import UrlFilter, UrlFilterOptions
from datapipe.documents import Stage

__all__ = ["STAGES"]

STAGES: Mapping[str, Callable[[Mapping[str, Any]], Stage]] = {
    "extract_html": lambda options: ExtractHtml(ExtractHtmlOptions(**options)),
    "normalize": lambda options: Normalize(NormalizeOptions(**options)),
    "drop_empty": lambda _: DropEmpty(),
    "fix_text": lambda options: FixText(FixTextOptions(**options)),
    "language": lambda options: Language(LanguageOptions(**options)),
    "c4_lines": lambda options: C4Lines(C4LinesOptions(**options)),
    "refinedweb_lines": lambda options: RefinedWebLines(RefinedWebLinesOptions(**options)),
    "line_rules": lambda options: LineRules(LineRulesOptions(**options)),
    "duplicate_lines": lambda options: DuplicateLines(DuplicateOptions(**options)),
    "duplicate_paragraphs": lambda options: DuplicateParagraphs(DuplicateOptions(**options)),
    "url_filter": lambda options: UrlFilter(UrlFilterOptions(**options)),
    "pii": lambda options: Pii(PiiOptions(**options)),
}
"""What makes a stage from its options, which are those of the recipe."""
