"""The stages of this folder, by the names that recipes give them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from datapipe.clean.drop_empty import DropEmpty
from datapipe.clean.html import ExtractHtml, ExtractHtmlOptions
from datapipe.clean.normalize import Normalize, NormalizeOptions
from datapipe.documents import Stage

__all__ = ["STAGES"]

STAGES: Mapping[str, Callable[[Mapping[str, Any]], Stage]] = {
    "extract_html": lambda options: ExtractHtml(ExtractHtmlOptions(**options)),
    "normalize": lambda options: Normalize(NormalizeOptions(**options)),
    "drop_empty": lambda _: DropEmpty(),
}
"""What makes a stage from its options, which are those of the recipe."""
