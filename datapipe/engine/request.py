"""What a user asks for, by paths or by recipe, turned into a recipe and a tokenizer."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datapipe.dataset import Dataset
from datapipe.engine.own import installed_stages, refuse_other_code, stages_of_files
from datapipe.errors import InputError, RecipeError, UsageError
from datapipe.recipe import (
    Fields,
    Guards,
    Input,
    Recipe,
    bare_recipe,
    load_recipe,
    refusing,
)
from datapipe_tokenizers import Tokenizer, load, load_files
from tiering.store import looks_like_url, printable_url

__all__ = ["DEFAULT_SOURCE", "Request", "check_text"]

DEFAULT_SOURCE = "documents"
_RECIPE_SUFFIXES = {".yaml", ".yml"}


def check_text(text: str | None, what: str) -> None:
    """Raises: UsageError: text can't be recorded, for it isn't UTF-8."""
    try:
        (text or "").encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{what} isn't UTF-8 text ({text!a}), so it can't be recorded; nothing was done. Write "
            "it in UTF-8; a file or folder has to be renamed"
        ) from error


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What is given to `build` or `append`."""

    inputs: tuple[str, ...]
    """One recipe (*.yaml), or files, folders and patterns."""
    tokenizer: str | None = None
    eos: str | None = None
    text_field: str | None = None
    source: str | None = None
    max_quarantined_fraction: float | None = None
    max_dropped_fraction: float | None = None
    allow_damaged: bool = False
    stages: tuple[str, ...] = ()
    """Python files that define stages."""

    def __post_init__(self) -> None:
        if not self.inputs:
            raise UsageError("no input is given; name a recipe, or files, folders or patterns")
        given = {"--tokenizer": self.tokenizer, "--eos": self.eos, "--text-field": self.text_field}
        given |= {"--source": self.source}
        given |= {f"--stages {number}": path for number, path in enumerate(self.stages, 1)}
        given |= {f"input {number}": path for number, path in enumerate(self.inputs, 1)}
        for name, value in given.items():
            if value is not None and not value.strip():
                raise UsageError(f"{name} is empty ({value!r}); nothing was done; give a name")
            check_text(value, name)
        fractions = {
            "--max-quarantined": self.max_quarantined_fraction,
            "--max-dropped": self.max_dropped_fraction,
        }
        for name, fraction in fractions.items():
            if fraction is not None and not 0 <= fraction <= 1:
                raise UsageError(f"{name} is {fraction}; give a share of 1, from 0 to 1")

    def recipe(self, base: Dataset | None) -> Recipe:
        """Returns the recipe that is meant; of an append to `base` by paths, that of `base`.

        Raises:
            UsageError: options that don't go together; RecipeError: the recipe is wrong.
        """
        self._refuse_odd_names()
        if self._is_recipe:
            self._refuse_options()
            own = {**installed_stages(), **stages_of_files(self.stages)}
            recipe = load_recipe(Path(self.inputs[0]), own=own)
        elif base is not None:
            with refusing({"text": "the text field"}):
                recipe = self._like(base)
        elif self.stages:
            raise UsageError(
                f"--stages {self.stages[0]} is given without a recipe, so nothing says where its "
                "stages run; nothing was done; write them into a recipe (`datapipe init`)"
            )
        else:
            recipe = bare_recipe(
                self.inputs,
                tokenizer=self.tokenizer,
                eos=self.eos,
                source=DEFAULT_SOURCE if self.source is None else self.source,
                text_field="text" if self.text_field is None else self.text_field,
            )
        return recipe.model_copy(update={"guards": self._guards(recipe.guards)})

    def load_tokenizer(self, recipe: Recipe, base: Dataset | None) -> Tokenizer:
        """Returns the tokenizer: the recipe's or the given one, of an append the dataset's own.

        Raises:
            UsageError: none is given.
            TokenizerError: it can't be loaded.
        """
        path, settings = self.tokenizer or recipe.tokenize.tokenizer, recipe.tokenize
        backend, special_text = settings.backend, settings.special_text
        if path is not None:
            if looks_like_url(path) and not Path(path).exists():
                raise UsageError(
                    f"the tokenizer {printable_url(path)} is a URL, and it is read from a local "
                    "file; nothing was done; copy it here and give its path"
                )
            eos = self.eos or settings.eos
            return load(path, eos=eos, backend=backend, special_text=special_text)
        if base is not None:
            files, number = base.tokenizer_files(), base.eos_id
            return load_files(files, eos=number, backend=backend, special_text=special_text)
        raise UsageError(
            "no tokenizer is given, and a build needs one. Give --tokenizer (a tokenizer's "
            "file or folder, or an encoding's name such as cl100k_base; in a recipe `tokenize: "
            "{tokenizer: ...}`), or make one: datapipe tokenizer train PATH... -o tokenizer.json"
        )

    @property
    def _is_recipe(self) -> bool:
        recipes = [path for path in self.inputs if Path(path).suffix in _RECIPE_SUFFIXES]
        if recipes and len(self.inputs) > 1:
            raise UsageError(
                f"{printable_url(recipes[0])} is a recipe, and {len(self.inputs) - 1} more inputs "
                "are given; give either one recipe or paths, or list the paths in the recipe"
            )
        return bool(recipes)

    def _refuse_odd_names(self) -> None:
        for path in self.inputs:
            try:
                path.encode()
            except UnicodeEncodeError as error:
                raise InputError(
                    f"the name of {os.fsencode(path)!r} isn't UTF-8, so it can't be recorded; "
                    "rename it."
                ) from error

    def _refuse_options(self) -> None:
        given = {
            "--text-field": self.text_field,
            "--source": self.source,
            "--eos": self.eos if self.tokenizer is None else None,
        }
        named = [name for name, value in given.items() if value is not None]
        if named:
            raise UsageError(
                f"{', '.join(named)} can't be given beside a recipe, which says it already: "
                f"change it in {printable_url(self.inputs[0])}"
            )

    def _guards(self, guards: Guards) -> Guards:
        given = {
            "max_quarantined_fraction": self.max_quarantined_fraction,
            "max_dropped_fraction_per_source": self.max_dropped_fraction,
            "allow_damaged": self.allow_damaged or None,
        }
        return guards.model_copy(update={k: v for k, v in given.items() if v is not None})

    def _like(self, base: Dataset) -> Recipe:
        source = self._source(base)
        entry = Input(source=source, paths=list(self.inputs), **self._settings(base, source))
        try:
            own = stages_of_files(self.stages)
            refuse_other_code(base, own, remedy="append with a recipe, or give --stages FILE.py")
            recipe = Recipe.from_resolved(base.manifest.recipe, inputs=[entry], own=own)
        except (KeyError, TypeError, AttributeError) as error:
            raise RecipeError(
                f"the recipe that {base.url} keeps can't be understood ({type(error).__name__}: "
                f"{error}); nothing was done; append with the program that made it, or with a "
                "recipe of your own"
            ) from error
        output = recipe.output.model_copy(update={"index": None})  # what is there is kept up
        recipe = recipe.model_copy(update={"output": output})
        if recipe.data_files:
            raise UsageError(
                f"stages of {base.url} read the files {', '.join(recipe.data_files)}, of which a "
                "dataset keeps the digests alone; append with a recipe, which says where they are"
            )
        return recipe

    def _settings(self, base: Dataset, source: str) -> dict[str, Any]:
        """Returns fields and licence as the source was read before; defaults of a new one.

        The format is found out anew: it is seen from name and content.
        """
        table = base.inputs()
        columns = (table[name].to_pylist() for name in ("source", "fields", "licence"))
        known = {
            (self._with_text_field(Fields.model_validate_json(fields)), licence)
            for name, fields, licence in set(zip(*columns, strict=True))
            if name == source
        }
        if len(known) > 1:
            raise UsageError(
                f"the inputs of source {source} in {base.url} were read with different fields or "
                "licences, so it isn't clear which the new ones have; say with --text-field where "
                "the text is, or, if more differs, append with a recipe"
            )
        fields, licence = known.pop() if known else (self._with_text_field(Fields()), None)
        return {"fields": fields, "licence": licence}

    def _with_text_field(self, fields: Fields) -> Fields:
        if self.text_field is None:
            return fields
        return Fields.model_validate({**fields.model_dump(), "text": self.text_field})

    def _source(self, base: Dataset) -> str:
        names = [source.name for source in base.sources]
        if self.source is not None:
            return self.source
        if len(names) == 1:
            return names[0]
        raise UsageError(
            f"{base.url} has the sources {', '.join(names)}; say with --source which one the new "
            "documents belong to, or give a new name"
        )
