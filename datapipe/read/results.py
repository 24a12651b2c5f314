"""What reading a range gives, piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from datapipe.dataset.tables import DROPPED, QUARANTINE
from datapipe.read.damage import RAW_LIMIT_BYTES, Fault, StreamDamage

__all__ = ["Origin", "ReadResult", "rest_of_file"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadResult:
    """Some of a range's records, in their order; the results of a range add up to the range."""

    batch: pa.RecordBatch | None
    """Documents, as `documents.DOCUMENTS`; None: none."""
    quarantined: pa.Table
    """What could not be read, as QUARANTINE."""
    dropped: pa.Table = field(default_factory=DROPPED.empty_table)
    """Records that were read and aren't wanted, as DROPPED: responses that aren't text."""
    blank_lines: int = 0
    """What stands between the records: lines of nothing but white space; in an archive, records of
    what isn't content, such as requests."""
    truncated: bool = False
    """The file ends in the middle, or is damaged from somewhere on: there is no more of it."""
    trusted: int | None = None
    """Bytes of the uncompressed stream that are right although the stream is damaged.

    Records behind them, in this result and those before it, may be wrong. None: none are.
    """

    @property
    def num_records(self) -> int:
        """Records met: documents, dropped and quarantined ones."""
        documents = self.batch.num_rows if self.batch is not None else 0
        return int(documents + self.dropped.num_rows + self.quarantined.num_rows)


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """What all records of one range share."""

    source: str
    source_file: str
    licence: str | None = None

    def result(
        self,
        batch: pa.RecordBatch | None = None,
        faults: Sequence[Fault] = (),
        *,
        dropped: pa.Table | None = None,
        blank_lines: int = 0,
        truncated: bool = False,
        trusted: int | None = None,
    ) -> ReadResult:
        """Returns a result of this range."""
        return ReadResult(
            batch=batch if batch is not None and batch.num_rows else None,
            quarantined=self.quarantined(faults),
            dropped=dropped if dropped is not None else DROPPED.empty_table(),
            blank_lines=blank_lines,
            truncated=truncated,
            trusted=trusted,
        )

    def without_documents(
        self, error: str, detail: str, *, offset: int, lengths: range, truncated: bool = False
    ) -> ReadResult:
        """Returns a result of records that share an offset and a fault; their raw bytes are gone.

        Args:
            error: the class that is counted.
            detail: what exactly is wrong, one line.
            offset: of all of them.
            lengths: one a record.
            truncated: see `ReadResult`.
        """
        values = {
            "source": self.source,
            "source_file": self.source_file,
            "source_offset": offset,
            "error": error,
            "detail": detail,
            "raw": b"",
        }
        columns = [
            pa.array(lengths, field.type)
            if field.name == "source_length"
            else _repeated(values[field.name], len(lengths), field.type)
            for field in QUARANTINE
        ]
        table = pa.Table.from_arrays(columns, schema=QUARANTINE)
        return ReadResult(batch=None, quarantined=table, truncated=truncated)

    def quarantined(self, faults: Sequence[Fault]) -> pa.Table:
        """Returns the QUARANTINE rows of some faults, ascending by place."""
        ordered = sorted(faults, key=lambda fault: (fault.offset, fault.length))
        rows = [
            {
                "source": self.source,
                "source_file": self.source_file,
                "source_offset": fault.offset,
                "source_length": fault.length,
                "error": fault.error,
                "detail": fault.detail,
                "raw": fault.raw[:RAW_LIMIT_BYTES],
            }
            for fault in ordered
        ]
        return pa.Table.from_pylist(rows, schema=QUARANTINE)


def _repeated(value: object, count: int, kind: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(kind):
        indices = pa.repeat(pa.scalar(0, kind.index_type), count)
        return pa.DictionaryArray.from_arrays(indices, pa.array([value], kind.value_type))
    return pa.repeat(pa.scalar(value, kind), count)


def rest_of_file(damage: StreamDamage, *, offset: int, beginning: bytes, length: int) -> Fault:
    """Returns the one fault that stands for all that could not be had of a damaged file.

    Args:
        damage: what is wrong.
        offset: where the rest begins in the uncompressed stream.
        beginning: the bytes of a record that was cut, as far as they are kept.
        length: how many there are.
    """
    return Fault(
        error=damage.error,
        detail=damage.detail,
        offset=offset,
        length=length,
        raw=(beginning + damage.raw)[:RAW_LIMIT_BYTES],
    )
