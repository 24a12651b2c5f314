"""The stages that a recipe may name, each with its options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from datapipe.recipe.sizes import Size
from datapipe.recipe.strict import Strict

__all__ = ["STAGE_OPTIONS"]


class ExtractHtmlSpec(Strict):
    """Options of the stage `extract_html`."""

    engine: Literal["resiliparse", "plain", "trafilatura"] = "resiliparse"
    media_type: Literal["html", "any"] = "html"
    list_bullets: bool = True
    alt_texts: bool = False
    links: bool = False
    tables: bool = True
    comments: bool = True
    max_bytes: Annotated[Size, Field(ge=1024, le=1 << 30)] = 16 << 20
    max_depth: Annotated[int, Field(ge=1, le=10_000)] = 512
    max_attributes: Annotated[int, Field(ge=1, le=100_000)] = 256
    max_elements: Annotated[int, Field(ge=1, le=100_000_000)] = 500_000


class NormalizeSpec(Strict):
    """Options of the stage `normalize`."""

    unicode: Literal["NFC", "none"] = "NFC"
    control_characters: Literal["strip", "keep"] = "strip"


class _NoOptions(Strict):
    """Options of a stage without any."""


STAGE_OPTIONS: Mapping[str, type[BaseModel]] = {
    "extract_html": ExtractHtmlSpec,
    "normalize": NormalizeSpec,
    "drop_empty": _NoOptions,
    "dedup_exact": _NoOptions,
}
"""Every stage that a recipe may name, with its options."""
