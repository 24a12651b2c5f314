"""The ledger: every record met is kept, dropped or quarantined; and the guards that look at it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from datapipe.dataset import SourceCounts
from datapipe.engine.passes import Scanned
from datapipe.engine.scan import count_rules
from datapipe.engine.sources import SourceInputs
from datapipe.engine.survivors import Removal
from datapipe.errors import ConservationError, GuardError
from datapipe.read import DAMAGE_ERRORS
from datapipe.recipe import Guards

__all__ = ["GUARD_FROM_DOCUMENTS", "Ledger", "add_up", "check_guards", "check_kept"]

GUARD_FROM_DOCUMENTS = 10
"""Fewer bad or dropped documents than this never stop a build."""

_EXACT_DUPLICATE = "dedup_exact.duplicate"  # its text stays in the dataset, so nothing is lost
_ALREADY_IN = "append.already_in"
_AS_READ = "read."


@dataclass(slots=True)
class Ledger:
    """Counts of one source, added up from its units."""

    source: str
    records: int = 0
    kept: int = 0
    tokens: int = 0
    text_bytes: int = 0
    bytes_in: int = 0
    blank_lines: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    quarantined: Counter[str] = field(default_factory=Counter)

    def drop(self, rules: Mapping[str, int]) -> None:
        """Adds documents that "stage.rule" removed."""
        self.dropped.update(rules)

    def add_scan(self, record: Mapping[str, Any]) -> None:
        """Adds what a unit's scan met and took out."""
        self.records += sum(counts["records"] for counts in record["files"].values())
        self.blank_lines += sum(counts["blank_lines"] for counts in record["files"].values())
        self.drop(record["dropped"])
        self.quarantined.update(record["quarantined"])

    def add_encoded(self, record: Mapping[str, Any]) -> None:
        """Adds what is left of a unit after encoding."""
        self.kept += record["rows"]
        self.tokens += record["tokens"]
        self.text_bytes += record["text_bytes"]
        self.drop(record["dropped"])

    @property
    def num_unwanted(self) -> int:
        """Documents that were dropped as they were read: they aren't text, so no stage lost any."""
        return sum(count for rule, count in self.dropped.items() if rule.startswith(_AS_READ))

    @property
    def num_known(self) -> int:
        """Documents that were dropped because their text is in already."""
        return self.dropped[_EXACT_DUPLICATE] + self.dropped[_ALREADY_IN]

    def check(self) -> None:
        """Raises: ConservationError: the records met aren't the sum of what became of them."""
        dropped, quarantined = self.dropped.total(), self.quarantined.total()
        if self.records != self.kept + dropped + quarantined:
            raise ConservationError(
                f"source {self.source}: {self.records:,} records in, but {self.kept:,} kept + "
                f"{dropped:,} dropped + {quarantined:,} quarantined; nothing was committed. This "
                "is a fault of datapipe: please report it with the recipe"
            )

    def counts(self) -> SourceCounts:
        """Returns the counts as the dataset keeps them."""
        return SourceCounts(
            source=self.source,
            kept=self.kept,
            text_bytes=self.text_bytes,
            bytes_in=self.bytes_in,
            blank_lines=self.blank_lines,
            dropped=dict(sorted(self.dropped.items())),
            quarantined=dict(sorted(self.quarantined.items())),
        )


def add_up(
    sources: Sequence[SourceInputs],
    scanned: Sequence[Scanned],
    removals: Sequence[Removal],
    encoded: Sequence[Mapping[str, Any]],
) -> list[Ledger]:
    """Returns one ledger a source.

    Args:
        sources: the inputs, in the recipe's order.
        scanned: the units after their scan.
        removals: of every unit what deduplication took out.
        encoded: of every unit its record after encoding; empty before that pass, and what is left
            then counts as kept.
    """
    ledgers = {source.source: Ledger(source.source) for source in sources}
    for source in sources:
        ledgers[source.source].bytes_in += sum(file.size_bytes for file, _ in source.files)
    for number, (item, removal) in enumerate(zip(scanned, removals, strict=True)):
        ledger = ledgers[item.unit.source]
        ledger.add_scan(item.record)
        ledger.drop(count_rules(removal.left))
        if encoded:
            ledger.add_encoded(encoded[number])
        else:
            ledger.kept += item.record["rows"] - removal.left.num_rows
    for ledger in ledgers.values():
        ledger.check()
    return list(ledgers.values())


def check_guards(ledgers: Sequence[Ledger], guards: Guards, *, examples: Iterable[str]) -> None:
    """Stops a build that lost more than its recipe allows.

    Args:
        ledgers: one a source.
        guards: the recipe's limits.
        examples: some quarantined records as "file:offset error", for the message.

    Raises:
        GuardError: names the numbers, the limit and how to raise it.
    """
    _check_quarantined(ledgers, guards, examples)
    for ledger in ledgers:
        _check_dropped(ledger, guards)


def _check_quarantined(ledgers: Sequence[Ledger], guards: Guards, examples: Iterable[str]) -> None:
    # What damage took is told by file (`damage.py`), whether its records can be counted or not.
    found = sum((ledger.quarantined for ledger in ledgers), Counter[str]())
    errors = {name: count for name, count in found.items() if not DAMAGE_ERRORS.match(name)}
    bad = sum(errors.values())
    records = sum(ledger.records for ledger in ledgers) - (found.total() - bad)
    if bad < GUARD_FROM_DOCUMENTS or bad <= guards.max_quarantined_fraction * records:
        return
    listed = ", ".join(f"{error} {count}" for error, count in sorted(errors.items()))
    raise GuardError(
        f"{bad:,} of {records:,} records could not be read ({listed}), more than "
        f"max_quarantined_fraction {guards.max_quarantined_fraction} allows; nothing was "
        f"committed. First ones: {'; '.join(examples)}. Mend the input, leave such files out "
        "with a pattern, or raise the limit (recipe `guards: {max_quarantined_fraction: ...}` "
        "or --max-quarantined)"
    )


def _check_dropped(ledger: Ledger, guards: Guards) -> None:
    lost = ledger.dropped.total() - ledger.num_known - ledger.num_unwanted
    documents = ledger.kept + lost
    if lost < GUARD_FROM_DOCUMENTS or lost <= guards.max_dropped_fraction_per_source * documents:
        return
    listed = ", ".join(f"{rule} {count:,}" for rule, count in sorted(ledger.dropped.items()))
    raise GuardError(
        f"source {ledger.source} would lose {lost:,} of {documents:,} documents ({listed}), more "
        f"than max_dropped_fraction_per_source {guards.max_dropped_fraction_per_source} allows; "
        "nothing was committed. Look at the rules, or raise the limit (recipe `guards: "
        "{max_dropped_fraction_per_source: ...}` or --max-dropped)"
    )


def check_kept(ledgers: Sequence[Ledger], *, examples: Iterable[str]) -> None:
    """Stops a build that could read nothing at all: a handful of bad records may be all there are.

    Raises:
        GuardError: records could not be read, and no document was kept or was in already.
    """
    bad = sum(ledger.quarantined.total() for ledger in ledgers)
    if bad and not any(ledger.kept or ledger.num_known for ledger in ledgers):
        raise GuardError(
            f"{bad:,} of {sum(ledger.records for ledger in ledgers):,} records could not be read "
            f"and no document was kept; nothing was committed. First ones: {'; '.join(examples)}. "
            "Mend the input, or say what it is (recipe `format:` and `fields:`, or --text-field)"
        )
