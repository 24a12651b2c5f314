"""The columns of the next batch of documents, and what goes with it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
import pyarrow as pa

from datapipe.dataset.tables import DROPPED
from datapipe.documents import batch_from_columns, dropped_rows
from datapipe.read.damage import RAW_LIMIT_BYTES, Fault, StreamDamage
from datapipe.read.dates import parse_dates
from datapipe.read.records import Record, RecordError
from datapipe.read.results import Origin, ReadResult, rest_of_file

__all__ = ["Gathered"]

STAGE = "read"
"""What drops records that could be read and aren't text."""


@dataclass(slots=True)
class _Rows:
    offsets: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    ids: list[str | None] = field(default_factory=list)
    urls: list[str | None] = field(default_factory=list)


@dataclass(slots=True)
class _Unwanted(_Rows):
    """Records that one rule drops."""

    payloads: list[bytes] = field(default_factory=list)
    values: list[float | None] = field(default_factory=list)


@dataclass(slots=True)
class Gathered(_Rows):
    """Documents, faults and counts since the last result."""

    texts: list[str] = field(default_factory=list)
    dates: list[str | None] = field(default_factory=list)
    languages: list[str | None] = field(default_factory=list)
    media_types: list[str | None] = field(default_factory=list)
    """One a document, or none at all."""
    unwanted: dict[tuple[str, float | None], _Unwanted] = field(default_factory=dict)
    """By rule and threshold."""
    faults: list[Fault] = field(default_factory=list)
    blank_lines: int = 0
    truncated: bool = False
    trusted: int | None = None
    size_bytes: int = 0

    def add(
        self, record: Record, *, offset: int, length: int, media_type: str | None = None
    ) -> None:
        """Takes a document in."""
        self.texts.append(record.text)
        self.ids.append(record.id)
        self.urls.append(record.url)
        self.dates.append(record.date)
        self.languages.append(record.language)
        self.offsets.append(offset)
        self.lengths.append(length)
        if media_type is not None:
            self.media_types += [None] * (len(self.texts) - 1 - len(self.media_types))
            self.media_types.append(media_type)

    def drop(
        self,
        rule: str,
        payload: bytes,
        *,
        offset: int,
        length: int,
        id: str | None,
        url: str | None,
        value: float | None = None,
        threshold: float | None = None,
    ) -> None:
        """Takes in a record that is whole and isn't a text; its bytes give its content hash."""
        rows = self.unwanted.setdefault((rule, threshold), _Unwanted())
        rows.offsets.append(offset)
        rows.lengths.append(length)
        rows.ids.append(id)
        rows.urls.append(url)
        rows.payloads.append(payload)
        rows.values.append(value)
        self.size_bytes += len(payload)

    def refuse(self, raw: bytes, error: RecordError, *, offset: int, length: int = -1) -> None:
        """Takes in a record that can't be read; `length` where `raw` isn't all of it."""
        fault = Fault(
            error=error.error,
            detail=error.detail,
            offset=offset,
            length=len(raw) if length < 0 else length,
            raw=raw[:RAW_LIMIT_BYTES],
        )
        self.faults.append(fault)
        self.size_bytes += len(fault.raw)

    def end_with(
        self, damage: StreamDamage, *, offset: int, beginning: bytes = b"", length: int = 0
    ) -> None:
        """Takes in that there is no more of the file; see `rest_of_file`."""
        rest = rest_of_file(damage, offset=offset, beginning=beginning, length=length)
        self.faults.append(rest)
        self.truncated = damage.truncated
        self.trusted = damage.trusted

    def result(self, origin: Origin) -> ReadResult:
        """Returns all of it, in the order of the stream."""
        missing = len(self.texts) - len(self.media_types)
        batch = batch_from_columns(
            self.texts,
            source=origin.source,
            source_file=origin.source_file,
            offsets=self.offsets,
            lengths=self.lengths,
            record_id=pa.array(self.ids, pa.string()),
            url=pa.array(self.urls, pa.string()),
            licence=origin.licence,
            language=pa.array(self.languages, pa.string()),
            crawled_at=parse_dates(self.dates),
            media_type=[*self.media_types, *[None] * missing] if self.media_types else None,
        )
        return origin.result(
            _in_order(batch),
            self.faults,
            dropped=self._dropped(origin),
            blank_lines=self.blank_lines,
            truncated=self.truncated,
            trusted=self.trusted,
        )

    def clear(self) -> None:
        """Starts anew."""
        fresh = Gathered()
        for each in fields(self):
            setattr(self, each.name, getattr(fresh, each.name))

    def _dropped(self, origin: Origin) -> pa.Table:
        tables = [
            _dropped(rows, origin, rule=rule, threshold=threshold)
            for (rule, threshold), rows in self.unwanted.items()
        ]
        return pa.concat_tables(tables).unify_dictionaries() if tables else DROPPED.empty_table()


def _dropped(rows: _Unwanted, origin: Origin, *, rule: str, threshold: float | None) -> pa.Table:
    batch = batch_from_columns(
        pa.array(rows.payloads, pa.large_binary()).view(pa.large_string()),  # only hashed
        source=origin.source,
        source_file=origin.source_file,
        offsets=rows.offsets,
        lengths=rows.lengths,
        record_id=pa.array(rows.ids, pa.string()),
        url=pa.array(rows.urls, pa.string()),
        licence=origin.licence,
    )
    values = pa.array(rows.values, pa.float64())
    return dropped_rows(batch, stage=STAGE, rule=rule, value=values, threshold=threshold)


def _in_order(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the rows by place; the exactly read ones of a block were added behind its others."""
    offsets = batch.column("source_offset").to_numpy()
    if (offsets[1:] > offsets[:-1]).all():
        return batch
    return batch.take(pa.array(np.argsort(offsets)))
