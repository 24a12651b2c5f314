"""The stages that a recipe may name, each with its options."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

from datapipe.recipe.cleaning_options import CLEANING_OPTIONS
from datapipe.recipe.strict import Strict

__all__ = ["STAGE_OPTIONS"]


class _NoOptions(Strict):
    """Options of a stage without any."""


STAGE_OPTIONS: Mapping[str, type[BaseModel]] = {
    **CLEANING_OPTIONS,
    "drop_empty": _NoOptions,
    "dedup_exact": _NoOptions,
}
"""Every stage that a recipe may name, with its options."""
