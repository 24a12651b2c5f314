"""What a build is to do: the recipe's model, its YAML, its presets.

Owns names, types and defaults of a recipe; knows nothing of how any of it is carried out.
"""

from datapipe.recipe.data_files import named_files, with_files
from datapipe.recipe.fields import FieldPath, Fields, parse_path
from datapipe.recipe.formats import FORMATS, FormatName
from datapipe.recipe.load import load_recipe
from datapipe.recipe.model import (
    Guards,
    Input,
    Output,
    Recipe,
    StageSpec,
    Tokenize,
)
from datapipe.recipe.own import NO_OWN_STAGES, OwnStage, recorded_options
from datapipe.recipe.presets import DEFAULT_STAGES, bare_recipe, starter_recipe
from datapipe.recipe.problems import refusing
from datapipe.recipe.sizes import parse_size
from datapipe.recipe.stage_options import STAGE_OPTIONS

__all__ = [
    "DEFAULT_STAGES",
    "FORMATS",
    "NO_OWN_STAGES",
    "STAGE_OPTIONS",
    "FieldPath",
    "Fields",
    "FormatName",
    "Guards",
    "Input",
    "Output",
    "OwnStage",
    "Recipe",
    "StageSpec",
    "Tokenize",
    "bare_recipe",
    "load_recipe",
    "named_files",
    "parse_path",
    "parse_size",
    "recorded_options",
    "refusing",
    "starter_recipe",
    "with_files",
]
