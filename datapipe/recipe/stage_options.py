"""The stages that a recipe may name, each with its options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel

from datapipe.recipe.strict import Strict

__all__ = ["STAGE_OPTIONS"]


class NormalizeSpec(Strict):
    """Options of the stage `normalize`."""

    unicode: Literal["NFC", "none"] = "NFC"
    control_characters: Literal["strip", "keep"] = "strip"


class _NoOptions(Strict):
    """Options of a stage without any."""


STAGE_OPTIONS: Mapping[str, type[BaseModel]] = {
    "normalize": NormalizeSpec,
    "drop_empty": _NoOptions,
    "dedup_exact": _NoOptions,
}
"""Every stage that a recipe may name, with its options."""
