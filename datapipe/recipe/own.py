"""Stages that don't come with the program: what a recipe knows of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

__all__ = ["NO_OWN_STAGES", "OWN_STAGES", "OwnStage", "recorded_options"]


@dataclass(frozen=True, slots=True)
class OwnStage:
    """Where the code of a stage is, and which it is."""

    code: str
    """"sha256:" and the digest of its file; or the package that brings it along, with its
    version."""
    file: str | None
    """The file's path; None: it is an entry point."""


NO_OWN_STAGES: Mapping[str, OwnStage] = MappingProxyType({})

OWN_STAGES = "own_stages"
"""Key of the mapping of own stages, by name, in the context that recipes are validated with."""


def recorded_options(recorded: object) -> tuple[dict[str, Any], str] | None:
    """Returns options and code of an own stage in a resolved recipe; None: it isn't one."""
    if isinstance(recorded, dict) and set(recorded) == {"options", "code"}:
        options, code = recorded["options"], recorded["code"]
        if isinstance(options, dict) and isinstance(code, str):
            return options, code
    return None
