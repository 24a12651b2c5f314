"""Input files of which something may be lost that nobody can see: cut or damaged ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from datapipe.engine.known import KnownInputs
from datapipe.engine.ledger import Ledger
from datapipe.engine.sources import SourceInputs
from datapipe.errors import FailedError
from datapipe.read import DAMAGE_ERRORS

__all__ = [
    "DamagedFile",
    "apart_from_damage",
    "damage_in",
    "damaged_files",
    "refuse_unreadable",
    "skipped_damage",
]

_PLAIN_LINES = "jsonl"  # that one ends inside a record is worth a warning: it may be a sample
_RESUMED = ("warc", "arrow")  # of these what is behind a damaged stretch is read
_SHOWN = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class DamagedFile:
    """One cut or damaged input; what is whole of it was read."""

    source: str
    file: str
    lost: str
    """What can't be had, and why."""
    records: int | None
    """How many records that are; None: nobody knows."""
    is_whole: bool
    """No record of it could be read."""

    def __str__(self) -> str:
        return f"{self.file} is damaged: {self.lost}"

    def to_json(self) -> dict[str, Any]:
        """Returns the facts as JSON values."""
        return asdict(self)


def damaged_files(inputs: pa.Table, quarantine: pa.Table) -> tuple[DamagedFile, ...]:
    """Returns the damaged ones of some input files, in their order.

    Args:
        inputs: INPUTS rows.
        quarantine: the QUARANTINE rows of at least these files.
    """
    rows = inputs.filter(inputs["truncated"]).to_pylist()
    damaged = [row for row in rows if row["format"] != _PLAIN_LINES]
    if not damaged:
        return ()
    faults = quarantine.filter(_is_damage(quarantine))
    return tuple(_damaged(row, faults) for row in damaged)


def apart_from_damage(quarantine: pa.Table) -> pa.Table:
    """Returns the QUARANTINE rows of records that are wrong by themselves, whole as they are."""
    return quarantine.filter(pc.invert(_is_damage(quarantine)))


def _is_damage(quarantine: pa.Table) -> pa.ChunkedArray:
    return pc.match_substring_regex(quarantine["error"].cast(pa.string()), DAMAGE_ERRORS.pattern)


def _damaged(row: Mapping[str, Any], faults: pa.Table) -> DamagedFile:
    is_ours = pc.and_(
        pc.equal(faults["source"].cast(pa.string()), row["source"]),
        pc.equal(faults["source_file"].cast(pa.string()), row["file"]),
    )
    faults = faults.filter(is_ours)
    reason = faults["detail"][0].as_py() if faults.num_rows else "it was damaged when it was read"
    is_whole = bool(row["num_records"] <= faults.num_rows)
    is_known = row["format"] == "parquet" and (faults.num_rows > 1 or not is_whole)
    records = faults.num_rows if is_known else None
    if is_whole:
        lost = f"nothing of it can be used ({reason})"
    elif row["format"] == "parquet":
        groups = faults["source_offset"].unique().to_pylist()
        lost = f"{records:,} rows of {_row_groups(groups)} can't be read ({reason})"
    elif str(row["format"]).startswith(_RESUMED) and faults.num_rows:
        count = faults.num_rows
        lost = (
            f"{count:,} {'stretch' if count == 1 else 'stretches'} of it can't be read ({reason})"
        )
    else:
        places = faults["source_offset"].to_pylist()
        start = f" of its content from byte {places[0]:,} on" if places else " behind"
        lost = f"nothing{start} can be used ({reason})"
    return DamagedFile(
        source=row["source"], file=row["file"], lost=lost, records=records, is_whole=is_whole
    )


def _row_groups(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    more = f" and {len(numbers) - _SHOWN:,} more" if len(numbers) > _SHOWN else ""
    return f"row group{'s' if len(numbers) > 1 else ''} {shown}{more}"


def skipped_damage(
    known: KnownInputs | None,
    listed: Sequence[SourceInputs],
    read: Sequence[SourceInputs],
    digests: Mapping[str, str],
) -> tuple[DamagedFile, ...]:
    """Returns the files that were not read because the base has them, damaged as they are."""
    if known is None:
        return ()
    given = _contents(listed, digests) - _contents(read, digests)
    inputs = known.table
    pairs = zip(inputs["source"].to_pylist(), inputs["sha256"].to_pylist(), strict=True)
    skipped = inputs.filter(pa.array([pair in given for pair in pairs], pa.bool_()))
    if not pc.any(skipped["truncated"]).as_py():
        return ()
    return damaged_files(skipped, known.base.quarantine())


def _contents(
    sources: Sequence[SourceInputs], digests: Mapping[str, str]
) -> set[tuple[str, bytes]]:
    return {
        (source.source, bytes.fromhex(digests[file.path]))
        for source in sources
        for file, _ in source.files
    }


def refuse_unreadable(
    damaged: Sequence[DamagedFile],
    sources: Sequence[SourceInputs],
    ledgers: Sequence[Ledger],
    *,
    allowed: bool,
) -> None:
    """Stops a build that would hold nothing of a damaged file that was named, or nothing at all.

    Raises:
        FailedError: names the file and what is wrong with it.
    """
    named = {
        (source.source, file.relative)
        for source in sources
        for file, _ in source.files
        if file.named
    }
    unread = [item for item in damaged if item.is_whole and (item.source, item.file) in named]
    if unread and not allowed:
        raise FailedError(
            f"{unread[0]}; nothing was committed. Replace the file or leave it out, or accept the "
            "loss with --allow-damaged (recipe `guards: {allow_damaged: true}`)"
        )
    if damaged and not any(ledger.kept or ledger.num_known for ledger in ledgers):
        raise FailedError(
            f"{damage_in(damaged)}, and no document is left; nothing was committed. Replace the "
            "damaged input and run the same command again"
        )


def damage_in(damaged: Sequence[DamagedFile]) -> str:
    """Returns which files are damaged, the first ones by name, for a message of one line."""
    more = len(damaged) - _SHOWN
    rest = f"; {more:,} more input files are damaged" if more > 0 else ""
    return "; ".join(map(str, damaged[:_SHOWN])) + rest
