"""Recipes from YAML: every mistake is named with its line and what was probably meant."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from datapipe.errors import RecipeError
from datapipe.recipe.fields import Fields
from datapipe.recipe.model import Guards, Input, Output, Recipe, Tokenize
from datapipe.recipe.own import NO_OWN_STAGES, OWN_STAGES, OwnStage
from datapipe.recipe.problems import reason_of, shortened, shown_value
from datapipe.recipe.stage_options import STAGE_OPTIONS
from datapipe.recipe.yaml_lines import Place, YamlDocument, YamlProblem, read_yaml
from tiering.store import looks_like_url, printable_url

__all__ = ["load_recipe"]

_SECTIONS: dict[str, type[BaseModel]] = {
    "fields": Fields,
    "guards": Guards,
    "inputs": Input,
    "output": Output,
    "tokenize": Tokenize,
}
_LATER = {"decontaminate", "dedup_minhash"}


def load_recipe(
    recipe: str | Path,
    *,
    folder: str | Path | None = None,
    own: Mapping[str, OwnStage] = NO_OWN_STAGES,
) -> Recipe:
    """Returns the recipe in a file, or in a text that has more than one line.

    Args:
        recipe: a path, or YAML.
        folder: what relative paths in it are relative to; default: the file's folder, or of a
            text the current one.
        own: stages that don't come with the program, by name.

    Raises:
        RecipeError: it can't be read, or says something unknown or contradictory.
    """
    is_text = isinstance(recipe, str) and "\n" in recipe
    if not is_text and looks_like_url(str(recipe)) and not Path(recipe).exists():
        raise RecipeError(
            f"the recipe {printable_url(str(recipe))} is a URL, and it is read from a local file; "
            "nothing was done; copy it here and give its path"
        )
    name = "the recipe" if is_text else str(recipe)
    text = str(recipe) if is_text else _read(Path(recipe))
    base = Path(folder) if folder is not None else Path() if is_text else Path(recipe).parent
    try:
        document = read_yaml(text)
    except YamlProblem as problem:
        raise RecipeError(f"{name}, line {problem.line}: {problem}; {problem.remedy}.") from problem
    _refuse_unknown_keys(document, name, own)
    try:
        loaded = Recipe.model_validate(document.value, context={OWN_STAGES: own})
    except ValidationError as error:
        raise RecipeError(_first_problem(error, document, name)) from error
    return _with_paths_from(loaded, base)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecipeError(
            f"{path} isn't a recipe: it isn't UTF-8 text. `datapipe init` writes one to start from."
        ) from error
    except OSError as error:
        raise RecipeError(
            f"the recipe {path} can't be read: {error.strerror}. `datapipe init` writes one to "
            "start from."
        ) from error


def _refuse_unknown_keys(document: YamlDocument, name: str, own: Collection[str]) -> None:
    """Raises RecipeError for the first key, from the top, that no recipe has."""
    value = document.value
    if not isinstance(value, dict):
        raise RecipeError(f"{name} isn't a recipe: it holds no keys. `datapipe init` writes one.")
    for place, keys, known, what in sorted(
        _key_sets(value, own), key=lambda s: document.line(s[0])
    ):
        for key in keys:
            if key not in known:
                line = document.line((*place, key))
                raise RecipeError(f"{name}, line {line}: {_unknown(key, known, what)}")


def _key_sets(
    recipe: dict[str, Any], own: Collection[str]
) -> Iterable[tuple[Place, list[str], list[str], str]]:
    """Yields each mapping of a recipe: its place, its keys, the known ones, what they are."""
    yield (), list(recipe), list(Recipe.model_fields), "key"
    for section, model in _SECTIONS.items():
        for place, value in _mappings(recipe, section):
            yield place, list(value), list(model.model_fields), f"key of `{place_name(place)}`"
    stages = recipe.get("stages")
    for i, stage in enumerate(stages if isinstance(stages, list) else []):
        named = {stage: None} if isinstance(stage, str) else stage
        if not isinstance(named, dict):
            continue
        yield ("stages", i), list(named), [*STAGE_OPTIONS, *own], "stage"
        for name, options in named.items():
            if name in STAGE_OPTIONS and isinstance(options, dict):
                known = list(STAGE_OPTIONS[name].model_fields)
                yield ("stages", i, name), list(options), known, f"option of `{name}`"


def _mappings(recipe: dict[str, Any], section: str) -> Iterable[tuple[Place, dict[str, Any]]]:
    inputs = recipe.get("inputs")
    entries: list[tuple[Place, Any]] = [
        (("inputs", i), entry) for i, entry in enumerate(inputs if isinstance(inputs, list) else [])
    ]
    found: list[tuple[Place, Any]] = [((section,), recipe.get(section))]
    if section == "inputs":
        found = entries
    elif section == "fields":
        found = [((*p, "fields"), e.get("fields")) for p, e in entries if isinstance(e, dict)]
    return ((place, value) for place, value in found if isinstance(value, dict))


def place_name(place: Place) -> str:
    """Returns how a place is called in messages, without positions in lists."""
    return ".".join(key for key in place if isinstance(key, str))


def _unknown(key: str, known: list[str], what: str) -> str:
    if what == "stage" and key in _LATER:
        return f"the stage `{key}` isn't in this version; known: {', '.join(known)}."
    near = get_close_matches(key, known, n=1, cutoff=0.5)
    meant = f"; did you mean `{near[0]}`?" if near else "."
    listed = f" Known: {', '.join(known)}." if known else " It has none."
    return f"`{shortened(key)}` isn't a known {what}{meant}{listed}"


def _first_problem(error: ValidationError, document: YamlDocument, name: str) -> str:
    problems = [(document.line(p["loc"]), p) for p in error.errors(include_url=False)]
    line, problem = min(problems, key=lambda found: found[0])
    place = place_name(tuple(key for key in problem["loc"] if key in _walked(document, problem)))
    if problem["type"] == "missing":
        missing = problem["loc"][-1]
        inside = place_name(problem["loc"][:-1])
        where = f" in `{inside}`" if inside else ""
        return f"{name}, line {line}: the key `{missing}` is missing{where}; add it."
    given = shown_value(problem["input"])
    shown = f" (it is {given})" if given else ""
    return f"{name}, line {line}: `{place or 'recipe'}`{shown}: {reason_of(problem)}."


def _walked(document: YamlDocument, problem: Any) -> set[str | int]:
    """Returns the parts of a problem's place that are written in the document."""
    value, walked = document.value, set()
    for key in problem["loc"]:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            break
        walked.add(key)
    return walked


def _with_paths_from(recipe: Recipe, folder: Path) -> Recipe:
    def placed(path: str) -> str:
        here = folder / path
        is_elsewhere = path.startswith("~") or (looks_like_url(path) and not here.exists())
        return path if is_elsewhere else str(here)

    inputs = [
        entry.model_copy(
            update={
                "paths": [placed(path) for path in entry.paths],
                "root": None if entry.root is None else placed(entry.root),
            }
        )
        for entry in recipe.inputs
    ]
    tokenizer = recipe.tokenize.tokenizer
    if tokenizer is not None and not _names_encoding(tokenizer, folder):
        tokenizer = placed(tokenizer)
    tokenize = recipe.tokenize.model_copy(update={"tokenizer": tokenizer})
    moved = recipe.model_copy(update={"inputs": inputs, "tokenize": tokenize})
    return moved.with_data_files(placed)


def _names_encoding(tokenizer: str, folder: Path) -> bool:
    """Whether this can only be a name such as cl100k_base: no path, and nothing of it is there."""
    return tokenizer.isidentifier() and not (folder / tokenizer).exists()
