"""The records of a run: what each of its files holds, decoded strictly, sealed by a checksum."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec

from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.manifest import Digest
from datapipe.dataset.parts import SourceParts
from datapipe.dataset.seals import check_seal, seal_of
from datapipe.errors import DamagedError, DatasetError

__all__ = [
    "RUN_FORMAT",
    "DatasetUse",
    "RunRecord",
    "RunSegment",
    "SegmentEnd",
    "SegmentProgress",
    "decode_record",
    "encode_record",
]

RUN_FORMAT = 1
"""Written into every file; newer ones are refused."""

_SEAL = "record_sha256"

_MOST = (1 << 53) - 1  # what every reader of JSON holds exactly

_Count = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]
_Positive = Annotated[int, msgspec.Meta(ge=1, le=_MOST)]
_Format = Annotated[int, msgspec.Meta(ge=1)]


class DatasetUse(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset that a run reads; the manifest digest finds it wherever it is moved to."""

    name: str | None
    """What the run calls it; None: it is the only one."""
    url: str
    version: _Positive
    manifest: Digest


class RunSegment(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of a run: what was planned when it began. See `docs/lineage.md`."""

    spec: Digest
    """Of the order."""
    sources: tuple[SourceParts, ...]
    """What the spec's sources are made of, in its order."""
    datasets: tuple[DatasetUse, ...]
    split: str
    first_batch: _Count
    first_step: _Count
    first_sample: _Count
    global_batch_size: _Positive
    dp_world_size: _Positive
    batches_per_step: _Positive
    end_sample: _Positive | None
    """One after the last sample number of the stream; None: it has no end."""
    last: Literal["drop", "repeat"]
    started_seconds: float
    """Since the epoch, by the clock of the rank that wrote it."""
    format: _Format = RUN_FORMAT

    def __post_init__(self) -> None:
        """Raises ValueError for what can't be: a dataset that isn't listed, unequal ranks."""
        if not self.sources or not self.datasets:
            raise ValueError("it has no source or no dataset")
        if self.global_batch_size % self.dp_world_size:
            raise ValueError(
                f"{self.dp_world_size} ranks can't share batches of {self.global_batch_size}"
            )
        for source in self.sources:
            for part in source.parts:
                if not 0 <= part.dataset < len(self.datasets) or part.num_shards < 0:
                    raise ValueError(
                        f"source {source.name} has {part.num_shards} shards of dataset "
                        f"{part.dataset}, of {len(self.datasets)} datasets"
                    )


class SegmentEnd(msgspec.Struct, frozen=True, kw_only=True):
    """Where a segment ended."""

    next_batch: _Count
    """Every batch below it was delivered, and none from it on."""
    reason: Literal["finished", "closed", "failed"]
    """The stream's end, the reader stopped, or an error."""
    format: _Format = RUN_FORMAT


class SegmentProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a segment certainly came: the last state of it that was saved and noted."""

    next_sample: _Count
    """Every batch of the segment that ends at or below this sample number was delivered."""
    format: _Format = RUN_FORMAT


RunRecord = RunSegment | SegmentEnd | SegmentProgress

_Kind = TypeVar("_Kind", bound=RunRecord)


def encode_record(record: RunRecord) -> bytes:
    """Returns a record's canonical JSON with `record_sha256`, the SHA-256 of the rest of it."""
    fields = msgspec.to_builtins(record)
    return canonical_json({**fields, _SEAL: seal_of(fields, name=_SEAL)})


def decode_record(data: bytes, kind: type[_Kind], *, path: str) -> _Kind:
    """Returns the record in a file.

    Raises:
        DamagedError: it isn't what was written: other bytes, a missing field, a wrong type.
        DatasetError: a newer format.
    """
    try:
        fields = msgspec.json.decode(data, type=dict[str, Any])
        version = fields.get("format")
        if isinstance(version, int) and version > RUN_FORMAT:
            raise DatasetError(
                f"{path} has format {version}, this program reads up to {RUN_FORMAT}; the run "
                "can't be read; install a newer datapipe-train"
            )
        check_seal(fields, name=_SEAL)
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DamagedError(
            f"{path} isn't what a run record has there: {error}; what the run read can't be known; "
            "restore the file from a copy"
        ) from error
