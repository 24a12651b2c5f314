"""The stages that a recipe may name, each with its options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, Field, field_validator

from datapipe.recipe.cleaning_options import CLEANING_OPTIONS
from datapipe.recipe.strict import DataFile, Strict

__all__ = ["STAGE_OPTIONS"]


ProfileName = Literal[
    "gopher@paper",
    "gopher@dolma-1.2",
    "gopher-v2@dolma-1.2",
    "gopher-repetition@datatrove-0.10",
    "gopher-quality@datatrove-0.10",
    "gopher@datatrove-0.10",
    "c4@paper",
    "c4@datatrove-0.10",
    "c4-any-end@datatrove-0.10",
    "fineweb-lines@datatrove-0.10",
    "fineweb@code",
    "fineweb@paper",
    "refinedweb@dclm",
]
"""A profile of `datapipe.signals`."""
Threshold = Annotated[float, Field(allow_inf_nan=False)]


class QualitySpec(Strict):
    """Options of the stage `quality`."""

    profile: Annotated[list[ProfileName], Field(min_length=1)]
    """One profile, or several that are applied one after another."""
    thresholds: dict[str, Threshold | None] = Field(default_factory=dict)
    """Other thresholds by rule; null: the rule isn't applied."""

    @field_validator("profile", mode="before")
    @classmethod
    def _one_profile(cls, profile: object) -> object:
        return [profile] if isinstance(profile, str) else profile


class ClassifierSpec(Strict):
    """Options of the stage `classifier`."""

    model: DataFile
    """A fastText model."""
    label: Annotated[str, Field(min_length=1)]
    min_score: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    """null: the score is only kept."""


class _NoOptions(Strict):
    """Options of a stage without any."""


STAGE_OPTIONS: Mapping[str, type[BaseModel]] = {
    **CLEANING_OPTIONS,
    "classifier": ClassifierSpec,
    "drop_empty": _NoOptions,
    "quality": QualitySpec,
    "dedup_exact": _NoOptions,
}
"""Every stage that a recipe may name, with its options."""
