"""The stage `pii`: what is done to texts with personal data and secrets.

Texts without a candidate cost one or two scans of the Arrow buffer and are never made a Python
string.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from datapipe.clean.changes import Removal, measured, replaced, without
from datapipe.clean.pii.finders import FINDERS, Finder
from datapipe.clean.pii.plugins import load_plugin
from datapipe.documents import StageResult, with_values

__all__ = ["Pii", "PiiOptions"]

Action: TypeAlias = Literal["mask", "drop", "tag", "keep"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PiiOptions:
    """What is done about each kind.

    mask: its text is replaced; drop: the document goes; tag: signals say where it stands; keep:
    nobody looks for it.
    """

    email: Action = "mask"
    ipv4: Action = "mask"
    """Of the public Internet; not numbers of versions and sections."""
    ipv6: Action = "mask"
    phone: Action = "keep"
    """With a country's code, or North American with separators."""
    iban: Action = "mask"
    card: Action = "mask"
    secrets: Action = "mask"
    """Keys and tokens of known forms, private keys."""
    plugins: Mapping[str, Action] = field(default_factory=dict)
    """Of kinds that installed packages bring along."""
    masks: Mapping[str, str] = field(default_factory=dict)
    """What stands in the place of a kind; else [EMAIL], [IPV4], ..., [SECRET]."""


class _Found(NamedTuple):
    start: int
    end: int
    kind: str


class Pii:
    """Masks, tags or drops by kind; a document goes for the first kind that drops it.

    Signals: `pii.KIND`, how many were found of each kind that isn't kept, and `pii.spans`, a JSON
    list of [kind, start, end] of those to be tagged, in code points of the text that came in.
    """

    name = "pii"
    version = 1

    def __init__(self, options: PiiOptions | None = None) -> None:
        self._options = options or PiiOptions()
        self._actions: dict[str, Action] = {kind: getattr(self._options, kind) for kind in FINDERS}
        finders = {**FINDERS, **{name: load_plugin(name) for name in self._options.plugins}}
        self._actions |= self._options.plugins
        self._finders: dict[str, Finder] = {
            kind: finder for kind, finder in finders.items() if self._actions[kind] != "keep"
        }
        self._priority = {kind: place for place, kind in enumerate(self._finders)}
        self._any = "|".join(f"(?:{finder.may_hold})" for finder in self._finders.values())

    @property
    def options(self) -> Mapping[str, object]:
        """All options, as JSON values."""
        mappings = {"plugins": dict(self._options.plugins), "masks": dict(self._options.masks)}
        return {**asdict(self._options), **mappings}

    def apply(self, batch: pa.RecordBatch) -> StageResult:
        """Returns the documents that stay, their texts masked; the signals tell what was found."""
        if not self._finders:
            return StageResult(*without(batch, [], stage=self.name))
        given, texts = batch, batch.column("text")
        found = {row: spans for row, spans in self._look(texts) if spans}
        changed = {
            row: self._masked(texts[row].as_py(), spans)
            for row, spans in found.items()
            if any(self._actions[span.kind] == "mask" for span in spans)
        }
        batch = with_values(batch, "text", replaced(texts, list(changed), list(changed.values())))
        removals = [
            Removal(row, kinds[0], kinds.count(kinds[0]))
            for row, spans in found.items()
            if (kinds := [s.kind for s in spans if self._actions[s.kind] == "drop"])
        ]
        kept, dropped = without(batch, removals, stage=self.name)
        return StageResult(kept, dropped, self._signals(given, found))

    def _look(self, texts: pa.Array) -> Iterator[tuple[int, list[_Found]]]:
        """Yields the rows that may hold something, ascending, and what they hold."""
        rows = _matching(texts, self._any)
        candidates = texts.take(pa.array(rows))
        kinds = {
            kind: set(_matching(candidates, finder.may_hold).tolist())
            for kind, finder in self._finders.items()
        }
        for place, row in enumerate(rows.tolist()):
            text = candidates[place].as_py()
            yield row, self._spans(text, [kind for kind in kinds if place in kinds[kind]])

    def _spans(self, text: str, kinds: Sequence[str]) -> list[_Found]:
        """Returns what stands in a text, by place, nothing inside something else."""
        spans = [
            _Found(start, end, kind)
            for kind in kinds
            for start, end in self._finders[kind].find(text)
        ]
        spans.sort(key=lambda span: (span.start, self._priority[span.kind], -span.end))
        apart: list[_Found] = []
        for span in spans:
            if not apart or span.start >= apart[-1].end:
                apart.append(span)
        return apart

    def _masked(self, text: str, spans: Sequence[_Found]) -> str:
        parts, end = [], 0
        for span in spans:
            if self._actions[span.kind] == "mask":
                parts += [text[end : span.start], self._mask(span.kind)]
                end = span.end
        return "".join([*parts, text[end:]])

    def _mask(self, kind: str) -> str:
        plain = f"[{'SECRET' if kind == 'secrets' else kind.upper()}]"
        return self._options.masks.get(kind, plain)

    def _signals(
        self, batch: pa.RecordBatch, found: Mapping[int, Sequence[_Found]]
    ) -> pa.RecordBatch:
        columns = {}
        for kind in self._finders:
            counts = np.zeros(batch.num_rows, np.int64)
            for row, spans in found.items():
                counts[row] = sum(span.kind == kind for span in spans)
            columns[f"pii__{kind}"] = pa.array(counts)
        if "tag" in self._actions.values():
            spans_of = [self._tagged(found.get(row, ())) for row in range(batch.num_rows)]
            columns["pii__spans"] = pa.array(spans_of, pa.string())
        return measured(batch, **columns)

    def _tagged(self, spans: Sequence[_Found]) -> str | None:
        tagged = [[s.kind, s.start, s.end] for s in spans if self._actions[s.kind] == "tag"]
        return json.dumps(tagged, separators=(",", ":")) if tagged else None


def _matching(texts: pa.Array, pattern: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    found = pc.match_substring_regex(texts, pattern)
    return np.flatnonzero(found.to_numpy(zero_copy_only=False))
