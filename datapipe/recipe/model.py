"""The recipe as typed objects; `starter_recipe` shows every key."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from datapipe.recipe.data_files import named_files, with_files
from datapipe.recipe.fields import Fields
from datapipe.recipe.formats import FormatName
from datapipe.recipe.own import NO_OWN_STAGES, OWN_STAGES, OwnStage, recorded_options
from datapipe.recipe.sizes import Size
from datapipe.recipe.stage_options import STAGE_OPTIONS
from datapipe.recipe.strict import Strict
from tiering.store import has_secret

__all__ = [
    "Guards",
    "Input",
    "Output",
    "Recipe",
    "StageSpec",
    "Tokenize",
]

_WILDCARDS = frozenset("*?[")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(
            "not a name; write letters (a-z, A-Z), digits, '.', '_' and '-', a letter or digit "
            "first, 100 at most"
        )
    return name


def _without_secret(text: str) -> str:
    if has_secret(text):
        raise ValueError("a URL in it has a password or token, which would be recorded")
    return text


# No "/": in mixtures a source's name stands behind "dataset/". No "@": it marks splits.
Name = Annotated[str, AfterValidator(_checked_name)]
Text = Annotated[str, StringConstraints(min_length=1)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Input(Strict):
    """Some files, and what they are."""

    source: Name
    """The mixture component that the documents belong to."""
    paths: Annotated[list[Text], Field(min_length=1)]
    """Files, folders and patterns; relative ones are relative to the recipe."""
    format: FormatName | None = None
    """None: seen from name and content."""
    licence: Annotated[Text, AfterValidator(_without_secret)] | None = None
    """Of every document, as an SPDX expression; None: not known."""
    fields: Fields = Fields()
    root: Text | None = None
    """Folder that file names are relative to; None: the deepest one common to `paths`."""

    @field_validator("paths", mode="before")
    @classmethod
    def _one_path(cls, paths: object) -> object:
        return [paths] if isinstance(paths, str) else paths


class StageSpec(Strict):
    """One stage: its name and all its options."""

    name: str
    options: dict[str, Any]
    own: OwnStage | None = None
    """Where its code is; None: it comes with the program."""

    def recorded(self, files: Mapping[str, str]) -> dict[str, Any]:
        """Returns what a resolved recipe holds of it: its options, and of an own stage its code.

        Args:
            files: what stands for each file that it reads, by path.
        """
        if self.own is not None:
            return {"options": self.options, "code": self.own.code}
        return with_files(self.name, self.options, lambda path: files.get(path, path))

    @model_validator(mode="before")
    @classmethod
    def _from_recipe(cls, entry: object, info: ValidationInfo) -> object:
        if isinstance(entry, str):
            entry = {entry: {}}
        if isinstance(entry, dict) and len(entry) == 1:
            (name, options), *_ = entry.items()
            if name in STAGE_OPTIONS:
                if options is not None and not isinstance(options, dict):
                    raise ValueError(_not_options(name, options))
                spec = STAGE_OPTIONS[name].model_validate(options or {})
                return {"name": name, "options": spec.model_dump()}
            own = (info.context or {}).get(OWN_STAGES, {})
            if name in own:
                if options is not None and not isinstance(options, dict):
                    raise ValueError(_not_options(name, options))
                return {"name": name, "options": _json_options(options or {}), "own": own[name]}
        if not isinstance(entry, dict) or set(entry) != {"name", "options"}:
            raise ValueError("a stage is one name, with its options in braces behind a colon")
        return entry


def _json_options(options: dict[str, Any]) -> dict[str, Any]:
    try:
        json.dumps(options, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "options of a stage are text, numbers, true, false, lists and mappings; put others "
            "(dates) in quotes"
        ) from error
    return options


def _unrecorded(stage: Mapping[str, Any], own: Mapping[str, OwnStage]) -> dict[str, Any]:
    """Returns a stage of a resolved recipe as a recipe has it."""
    found = {
        name: recorded_options(value) if name in own else None for name, value in stage.items()
    }
    return {name: recorded[0] if recorded else stage[name] for name, recorded in found.items()}


def _not_options(name: str, given: object) -> str:
    shown = str(given).lower() if isinstance(given, bool) else repr(given)
    return (
        f"{shown} isn't the options of {name}; a stage that is listed runs. Write `- {name}`, or "
        "take the line out to leave the stage out"
    )


class Tokenize(Strict):
    """How texts become token ids."""

    tokenizer: Text | None = None
    """A tokenizer's file or folder, relative to the recipe, or the name of an encoding of tiktoken;
    None: given with the command."""
    eos: Text | None = None
    """The token that ends a document; None: the one that the tokenizer names."""
    append_eos: bool = True
    """Whether every document is closed with it."""
    special_text: Literal["text", "special", "error"] = "text"
    """What the text of a special token in a document is: characters; that token, except the one
    that ends documents; an error."""
    backend: Literal[
        "auto", "gigatoken", "reference", "huggingface", "tiktoken", "sentencepiece"
    ] = "auto"
    """The library that encodes; "auto": the fastest one that gives the reference's ids."""
    check_one_in: Annotated[int, Field(ge=0, lt=1 << 53)] = 10_000
    """Of so many documents one is encoded by the reference too, as a check; 0: none."""


class Output(Strict):
    """What the dataset looks like."""

    shard_bytes: Annotated[Size, Field(ge=1024, le=1 << 36)] = 64 << 20
    """Bytes of one token shard, about."""
    shuffle_seed: Annotated[int, Field(ge=0, lt=1 << 53)] = 0
    """Documents lie in the order of a hash of this and their text."""
    index: bool | None = None
    """Whether the version has indexes; None: those that the version before it has."""


class Guards(Strict):
    """What stops a build before it commits."""

    max_quarantined_fraction: Fraction = 0.001
    """Records that can't be read, of all records; from 10 such records on."""
    max_dropped_fraction_per_source: Fraction = 0.9
    """Documents that stages remove, of all of a source."""
    allow_damaged: bool = False
    """Whether damaged input files are accepted: what is whole of them is everything then."""


class Recipe(Strict):
    """What a build is to do. Paths are as the program can open them."""

    name: Name
    inputs: Annotated[list[Input], Field(min_length=1)]
    stages: list[StageSpec] = Field(default_factory=list)
    tokenize: Tokenize = Tokenize()
    output: Output = Output()
    guards: Guards = Guards()

    @field_validator("stages")
    @classmethod
    def _each_once(cls, stages: list[StageSpec]) -> list[StageSpec]:
        names = [stage.name for stage in stages]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"{twice} is there twice; leave one out")
        return stages

    @classmethod
    def from_resolved(
        cls,
        resolved: Mapping[str, Any],
        *,
        inputs: list[Input],
        own: Mapping[str, OwnStage] = NO_OWN_STAGES,
    ) -> Recipe:
        """Returns what `resolved` was made of, but with other inputs and no tokenizer.

        Args:
            resolved: what `Recipe.resolved` gave, as a manifest keeps it.
            inputs: what to read.
            own: stages that don't come with the program.

        Raises:
            ValidationError, KeyError, TypeError, AttributeError: it isn't such a recipe.
        """
        return cls(
            name=resolved["name"],
            inputs=inputs,
            stages=[
                StageSpec.model_validate(_unrecorded(stage, own), context={OWN_STAGES: own})
                for stage in resolved["stages"]
            ],
            tokenize=Tokenize.model_validate({**resolved["tokenize"], "tokenizer": None}),
            output=Output.model_validate(resolved["output"]),
            guards=Guards.model_validate(resolved["guards"]),
        )

    @property
    def sources(self) -> list[str]:
        """Names of the sources, each once, in the order of the inputs."""
        return list(dict.fromkeys(entry.source for entry in self.inputs))

    @property
    def data_files(self) -> list[str]:
        """Paths of the files that stages read, each once, sorted."""
        return sorted({path for s in self.stages for path in named_files(s.name, s.options)})

    def with_data_files(self, change: Callable[[str], str]) -> Recipe:
        """Returns the recipe with `change` of each data file's path in its place."""
        stages = [
            stage.model_copy(update={"options": with_files(stage.name, stage.options, change)})
            for stage in self.stages
        ]
        return self.model_copy(update={"stages": stages})

    def resolved(
        self, *, tokenizer: str | None = None, files: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Returns the recipe as JSON values with every default filled in.

        Where data and tokenizer lie isn't in it: paths are kept from the folder on that an entry's
        paths have in common, so the same recipe means the same wherever its data is.

        Args:
            tokenizer: what stands for the tokenizer, a digest.
            files: what stands for each of `data_files`, by path; None: the path itself.
        """
        resolved = self.model_dump(mode="json")
        resolved["stages"] = [{stage.name: stage.recorded(files or {})} for stage in self.stages]
        resolved["tokenize"]["tokenizer"] = tokenizer
        for section, name in _WITHOUT_EFFECT:
            del resolved[section][name]
        if self.tokenize.special_text == "text":  # what it always was, before there was a choice
            del resolved["tokenize"]["special_text"]
        if self.output.index is None:
            del resolved["output"]["index"]
        for entry in resolved["inputs"]:
            root = entry.pop("root")
            entry["paths"] = _below(entry["paths"], root)
        return {key: _without_whole_floats(value) for key, value in resolved.items()}


_WITHOUT_EFFECT = (
    ("tokenize", "backend"),
    ("tokenize", "check_one_in"),
    ("guards", "allow_damaged"),
)
"""Keys that say how it is done or what is accepted, never what comes out."""


def _below(paths: list[str], root: str | None) -> list[str]:
    """Returns the paths from `root` on, or from the deepest folder that they share."""
    parts = [_names(path) for path in paths]
    if root is not None:
        top = _names(root)
        return ["/".join(p[len(top) :] if p[: len(top)] == top else p[-1:]) for p in parts]
    fixed = [_folder(path) for path in parts]
    shared = 0
    while all(len(path) > shared for path in fixed) and len({path[shared] for path in fixed}) == 1:
        shared += 1
    return ["/".join(path[shared:]) for path in parts]


def _names(path: str) -> tuple[str, ...]:
    return tuple(name for name in PurePosixPath(path).parts if name not in ("/", "//", ".."))


def _folder(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the parts before the first wildcard, or all but the last."""
    wild = next((i for i, part in enumerate(parts) if _WILDCARDS & set(part)), len(parts))
    return parts[: min(wild, len(parts) - 1)]


def _without_whole_floats(value: Any) -> Any:
    """Returns the value with floats that are integers as integers: canonical JSON has one form."""
    if isinstance(value, dict):
        return {key: _without_whole_floats(item) for key, item in value.items()}
    return int(value) if isinstance(value, float) and math.floor(value) == value else value
