"""Own stages that a dataset names: its word alone loads no code."""

from __future__ import annotations

from collections.abc import Mapping

from datapipe.dataset import Dataset
from datapipe.errors import RecipeError
from datapipe.recipe import STAGE_OPTIONS, OwnStage, recorded_options

__all__ = ["refuse_other_code"]


def refuse_other_code(version: Dataset, own: Mapping[str, OwnStage], *, remedy: str) -> None:
    """Refuses stages of a version that the user didn't give, or gave with other code.

    Args:
        version: what names the stages.
        own: what the user gave.
        remedy: what to do.

    Raises:
        RecipeError: there is such a stage.
    """
    for stage in version.manifest.recipe["stages"]:
        for name, recorded in stage.items():
            if name in STAGE_OPTIONS:
                continue
            found = recorded_options(recorded)
            code = found[1] if found else "unknown code"
            if name not in own:
                raise RecipeError(
                    f"version {version.version} of {version.url} was made with the stage {name!r} "
                    f"({code}), which this program doesn't have, and no code is loaded because a "
                    f"dataset names it; nothing was done; {remedy}"
                )
            if own[name].code != code:
                raise RecipeError(
                    f"version {version.version} of {version.url} was made with the stage {name!r} "
                    f"of {code}, and {own[name].file or 'what is installed'} is {own[name].code}; "
                    "nothing was done; give the code that it was made with"
                )
