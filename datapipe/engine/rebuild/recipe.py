"""The recipe of a version, as it can be carried out here.

No code is loaded because a dataset names it: a stage that this program doesn't have is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from datapipe.dataset import Dataset
from datapipe.engine.own import refuse_other_code
from datapipe.engine.stages import file_digest
from datapipe.errors import RecipeError
from datapipe.recipe import NO_OWN_STAGES, Fields, Input, OwnStage, Recipe

__all__ = ["recorded_recipe"]

_ALLOW = "or, if it is your own, give --allow-stage NAME (and --stages FILE.py)"
_PLACEHOLDER = "recorded"  # files are given to the build one by one, so no path is looked up


def recorded_recipe(
    version: Dataset,
    *,
    own: Mapping[str, OwnStage] = NO_OWN_STAGES,
    data_files: Sequence[str] = (),
) -> Recipe:
    """Returns the recipe of a version, without its paths; damage of its inputs is accepted.

    Args:
        version: whose recipe.
        own: stages that the user lets run.
        data_files: paths of what its stages read, found by their bytes.

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
    recipe = _with_data_files(version, recipe, data_files)
    # What was accepted then isn't recorded, and isn't asked again.
    guards = recipe.guards.model_copy(update={"allow_damaged": True})
    return recipe.model_copy(update={"guards": guards})


def _with_data_files(version: Dataset, recipe: Recipe, given: Sequence[str]) -> Recipe:
    """Returns the recipe with the paths of files in the place of their digests."""
    paths = {file_digest(path): path for path in given}
    missing = [digest for digest in recipe.data_files if digest not in paths]
    if missing:
        raise RecipeError(
            f"stages of version {version.version} of {version.url} read the files "
            f"{', '.join(missing)}, of which a dataset keeps the digests alone; nothing was "
            "rebuilt; name files with these bytes by --data-file PATH"
        )
    return recipe.with_data_files(paths.__getitem__)


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
