"""The verdict on a rebuilt version, and the first place where it isn't as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datapipe.dataset import Dataset
from datapipe.engine.rebuild.report import Difference, Verdict

__all__ = ["changed_environment", "compare", "other_bytes"]

_TABLES = ("dropped", "quarantine", "inputs", "signatures")


def compare(recorded: Dataset, rebuilt: Dataset) -> tuple[Verdict, Difference | None]:
    """Returns the verdict, and the first difference where there is one.

    Reads tokens and docmaps only of the first shard that differs.
    """
    if recorded.manifest_sha256 == rebuilt.manifest_sha256:
        return Verdict.IDENTICAL, None
    found = next(_differences(recorded, rebuilt), None)
    if found is None:
        return Verdict.LOGICALLY_IDENTICAL, None
    what, where = found
    cause = _cause(changed_environment(recorded, rebuilt))
    return Verdict.DIFFERENT, Difference(cause=cause, what=what, where=where)


def changed_environment(
    recorded: Dataset, rebuilt: Dataset
) -> dict[str, tuple[str | None, str | None]]:
    """Returns what is another now, by name: the recorded version and the present one."""
    then, now = (
        {**version.manifest.environment, "tokenizer backend": version.manifest.tokenizer.backend}
        for version in (recorded, rebuilt)
    )
    return {
        name: (then.get(name), now.get(name))
        for name in sorted({*then, *now})
        if then.get(name) != now.get(name)
    }


def other_bytes(recorded: Dataset, rebuilt: Dataset) -> tuple[str, ...]:
    """Returns the kinds of objects whose bytes aren't the same."""
    then, now = recorded.manifest.tables, rebuilt.manifest.tables
    # Those two name docmaps by their bytes, and so differ with them.
    kinds = {n for n in {*then, *now} if then.get(n) != now.get(n)} - {"shards", "details"}
    for source in recorded.sources:
        before, after = recorded.shards(source.name), rebuilt.shards(source.name)
        if not np.array_equal(before.docmap_sha256.raw, after.docmap_sha256.raw):
            kinds.add("docmap")
    if not kinds and then != now:
        kinds = {"shards", "details"}
    return tuple(sorted(kinds))


def _cause(environment: Mapping[str, Any]) -> str:
    libraries = set(environment) - {"datapipe"}
    return "code" if "datapipe" in environment or not libraries else "library"


_Found = tuple[str, dict[str, Any]]


def _differences(recorded: Dataset, rebuilt: Dataset) -> Iterator[_Found]:
    """Yields what differs in tokens and rows, likeliest cause of the rest first."""
    names = [[source.name for source in version.sources] for version in (recorded, rebuilt)]
    if names[0] != names[1]:
        yield "other sources", {"recorded": names[0], "rebuilt": names[1]}
        return
    for source in names[0]:
        yield from _in_shards(recorded, rebuilt, source)
    for name in _TABLES:
        yield from _in_table(recorded, rebuilt, name)
    for before, after in zip(
        recorded.manifest.conservation, rebuilt.manifest.conservation, strict=True
    ):
        if before != after:
            yield f"other counts of {before.source}", {}


def _in_shards(recorded: Dataset, rebuilt: Dataset, source: str) -> Iterator[_Found]:
    before, after = recorded.shards(source), rebuilt.shards(source)
    docmaps = recorded.details(source), rebuilt.details(source)
    count = min(len(before), len(after))
    same = np.all(before.raw_sha256.raw[:count] == after.raw_sha256.raw[:count], axis=1)
    logical = [details.docmap_logical_sha256.raw[:count] for details in docmaps]
    same &= np.all(logical[0] == logical[1], axis=1)
    for number in np.flatnonzero(~same).tolist():
        yield _in_shard(recorded, rebuilt, source, number)
    if len(before) != len(after):
        where = {"source": source, "recorded": len(before), "rebuilt": len(after)}
        yield f"{source} has {len(before)} shards recorded and {len(after)} rebuilt", where


def _in_shard(recorded: Dataset, rebuilt: Dataset, source: str, number: int) -> _Found:
    place = {"source": source, "shard": number}
    before, after = (v.docmap(source, number) for v in (recorded, rebuilt))
    found = _first_row(before, after)
    if found is not None:
        row, column, values = found
        where = {**place, "row": row, "doc_id": _doc_id(before, row), "column": column, **values}
        return f"shard {number} of {source} differs from document {row} on, in {column}", where
    tokens = [_tokens(version, source, number) for version in (recorded, rebuilt)]
    position = int(np.flatnonzero(tokens[0] != tokens[1])[0])
    starts = before["token_start"].to_numpy()
    row = int(np.searchsorted(starts, position, side="right")) - 1
    where = {
        **place,
        "row": row,
        "doc_id": _doc_id(before, row),
        "token": position - int(starts[row]),
        "recorded": int(tokens[0][position]),
        "rebuilt": int(tokens[1][position]),
    }
    return f"document {row} in shard {number} of {source} has other tokens", where


def _tokens(version: Dataset, source: str, number: int) -> npt.NDArray[Any]:
    with version.open_shard(source, number) as view:
        data = bytearray(view.size)
        view.read_into(memoryview(data), 0)
    return np.frombuffer(data, dtype=version.token_dtype)


def _in_table(recorded: Dataset, rebuilt: Dataset, name: str) -> Iterator[_Found]:
    digests = [
        [file.logical_sha256 for file in version.manifest.files(name)]
        for version in (recorded, rebuilt)
    ]
    if digests[0] == digests[1]:
        return
    found = _first_row(recorded.whole_table(name), rebuilt.whole_table(name))
    if found is None:
        yield f"the rows of {name} are split into other files", {"table": name}
        return
    row, column, values = found
    yield (
        f"table {name} differs from row {row} on, in {column}",
        {
            "table": name,
            "row": row,
            "column": column,
            **values,
        },
    )


def _first_row(before: pa.Table, after: pa.Table) -> tuple[int, str, dict[str, Any]] | None:
    """Returns the first row that differs, the first column in it, and both values."""
    rows = zip_longest(_rows(before), _rows(after))
    for number, (old, new) in enumerate(rows):
        if old == new:
            continue
        if old is None or new is None:
            return (
                number,
                "number of rows",
                {"recorded": before.num_rows, "rebuilt": after.num_rows},
            )
        column = next(name for name in old if old[name] != new[name])
        return number, column, {"recorded": _shown(old[column]), "rebuilt": _shown(new[column])}
    return None


def _rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(max_chunksize=1024):
        yield from batch.to_pylist()


def _doc_id(docmap: pa.Table, row: int) -> str | None:
    return docmap["doc_id"][row].as_py().hex() if row < docmap.num_rows else None


def _shown(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value if _is_json(value) else str(value)


def _is_json(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
