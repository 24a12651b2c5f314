"""The recipe of a version, as it can be carried out here.

No code is loaded because a dataset names it: a stage that this program doesn't have is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from datapipe.dataset import Dataset
from datapipe.engine.own import refuse_other_code
from datapipe.errors import RecipeError
from datapipe.recipe import NO_OWN_STAGES, Fields, Input, OwnStage, Recipe

__all__ = ["recorded_recipe"]

_ALLOW = "or, if it is your own, give --allow-stage NAME (and --stages FILE.py)"
_PLACEHOLDER = "recorded"  # files are given to the build one by one, so no path is looked up


def recorded_recipe(version: Dataset, *, own: Mapping[str, OwnStage] = NO_OWN_STAGES) -> Recipe:
    """Returns the recipe of a version, without its paths; damage of its inputs is accepted.

    Args:
        version: whose recipe.
        own: stages that the user lets run.

    Raises:
        RecipeError: it names a stage that isn't known here, or can't be understood.
    """
    recorded = version.manifest.recipe
    try:
        refuse_other_code(version, own, remedy=f"use {_maker(version)}, which made it, {_ALLOW}")
        recipe = Recipe.from_resolved(
            recorded, inputs=[_entry(entry) for entry in recorded["inputs"]], own=own
        )
    except (ValidationError, KeyError, TypeError, AttributeError) as error:
        first = str(error).splitlines()[0]
        raise RecipeError(
            f"the recipe of version {version.version} of {version.url} can't be understood "
            f"({type(error).__name__}: {first}); nothing was rebuilt; use "
            f"{_maker(version)}, which made it"
        ) from error
    if recipe.data_files:
        raise RecipeError(
            f"stages of version {version.version} of {version.url} read the files "
            f"{', '.join(recipe.data_files)}, of which a dataset keeps the digests alone; nothing "
            "was rebuilt; build again with the recipe itself, and compare with `datapipe diff`"
        )
    # What was accepted then isn't recorded, and isn't asked again.
    guards = recipe.guards.model_copy(update={"allow_damaged": True})
    return recipe.model_copy(update={"guards": guards})


def _maker(version: Dataset) -> str:
    return f"datapipe-train {version.manifest.environment.get('datapipe', '(version unknown)')}"


def _entry(recorded: Mapping[str, Any]) -> Input:
    return Input(
        source=recorded["source"],
        paths=[_PLACEHOLDER],
        format=recorded["format"],
        licence=recorded["licence"],
        fields=Fields.model_validate(recorded["fields"]),
    )
