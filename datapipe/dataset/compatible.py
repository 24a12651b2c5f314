"""What an append must have in common with the version that it adds to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datapipe.dataset import layout
from datapipe.dataset.draft import VersionDraft
from datapipe.dataset.objects import reading
from datapipe.dataset.parquet import open_table
from datapipe.dataset.reader import Dataset
from datapipe.dataset.shards import token_dtype
from datapipe.dataset.tables import DOCMAP
from datapipe.errors import TokenizerMismatchError, UsageError
from tiering.store import ViewFile

__all__ = ["check_append"]


def check_append(draft: VersionDraft) -> None:
    """Returns if a reader can read the new shards as it reads the parent's.

    Raises:
        TokenizerMismatchError: ids would mean something else, or texts would be cut otherwise.
        UsageError: documents would end otherwise, or be described by other columns.
    """
    if draft.operation != "append" or draft.parent is None:
        return
    _check_tokenizer(draft, draft.parent)
    _check_ends(draft, draft.parent)
    _check_columns(draft.parent)


def _check_tokenizer(draft: VersionDraft, parent: Dataset) -> None:
    ours, theirs = draft.tokenizer, parent.manifest.tokenizer
    dtype = token_dtype(ours.max_id).name
    for what, mine, its in (
        ("vocabulary", ours.vocabulary, theirs.vocabulary),
        ("canary", ours.canary, theirs.canary),
        ("end-of-document token", str(ours.eos_id), str(theirs.eos_id)),
        ("token type", dtype, parent.manifest.token_dtype),
    ):
        if mine != its:
            raise TokenizerMismatchError(
                f"the {what} of this tokenizer is {mine[:12]}, of {parent.url} {its[:12]}: "
                "its ids would mean something else; nothing was committed; append with the "
                "dataset's own tokenizer, or build another dataset"
            )


def _check_ends(draft: VersionDraft, parent: Dataset) -> None:
    ours, theirs = _appends_eos(draft.recipe), _appends_eos(parent.manifest.recipe)
    if ours is not None and theirs is not None and ours != theirs:
        raise UsageError(
            f"documents of {parent.url} end {_with(theirs)}, those of this append {_with(ours)}; "
            f"nothing was committed; set `tokenize: {{append_eos: {str(theirs).lower()}}}` in the "
            "recipe"
        )


def _appends_eos(recipe: Mapping[str, Any]) -> bool | None:
    """Returns what a recipe says; None: nothing."""
    tokenize = recipe.get("tokenize")
    found = tokenize.get("append_eos") if isinstance(tokenize, Mapping) else None
    return found if isinstance(found, bool) else None


def _with(appends: bool) -> str:
    return f"with{'' if appends else 'out'} an end-of-document token"


def _check_columns(parent: Dataset) -> None:
    """Looks at one docmap: all of a dataset have the same columns, because this is checked."""
    source = next((source for source in parent.sources if source.num_shards), None)
    if source is None:
        return
    path = layout.docmap_path(parent.shards(source.name).docmap_sha256[0])
    store = parent.repository.store
    with reading(store, path):
        view = store.open(path)
    with ViewFile(view) as file:
        of = f"a docmap of version {parent.version} of {parent.url}"
        found = open_table(file, DOCMAP, path=path, of=of).schema.names
    if found != DOCMAP.names:
        differing = sorted(set(found).symmetric_difference(DOCMAP.names))
        raise UsageError(
            f"the documents of {parent.url} are described by other columns than this program "
            f"writes: {', '.join(differing) or 'in another order'}; nothing was committed; append "
            "with the version of datapipe-train that made it, or build another dataset"
        )
