"""What every model of a recipe is: closed to unknown keys, never changed, never guessing types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

__all__ = ["DataFile", "DataFileMark", "Strict"]


class Strict(BaseModel):
    """A mapping of a recipe."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


@dataclass(frozen=True, slots=True)
class DataFileMark:
    """Marks an option as the path of a file that the stage reads.

    Relative paths are relative to the recipe; a resolved recipe holds "sha256:" and the digest of
    the file's bytes in the path's place, so what the file says decides, not where it lies.
    """


DataFile = Annotated[str, StringConstraints(min_length=1), DataFileMark()]
"""A file of rules, words or a model that a stage reads."""
