"""How a stream delivers: planned batches become tensors, from files that it holds open."""

from __future__ import annotations

from typing import Any

from datapipe.load.block_check import BlockCheck
from datapipe.load.gather import Gather
from datapipe.load.labels import TensorMaker
from datapipe.load.plan import StreamPlan
from datapipe.load.sequence import PlannedBatch
from datapipe.load.shard_files import ShardFiles

__all__ = ["Batch", "Delivery"]

Batch = dict[str, Any]
"""`input_ids` and `labels` [batch_size, seq_len], `sample_end` int."""


class Delivery:
    """The open files and buffers of one pass, in one process. Not for several threads at once."""

    def __init__(self, plan: StreamPlan, *, check: BlockCheck) -> None:
        """Opens nothing yet; `check` knows which blocks this process has compared."""
        options = plan.options
        self._files = ShardFiles(plan.index)
        self._gather = Gather(
            plan.index,
            files=self._files,
            check=check,
            num_rows=options.rows,
            seq_len=options.seq_len,
            eos_id=plan.named[0].dataset.eos_id,
        )
        self._maker = TensorMaker(self._gather.tokens, labels=options.labels, dtype=options.dtype)
        self._is_single = options.batch_size is None

    def tensors(self, batch: PlannedBatch) -> Batch:
        """Returns a batch in tensors that nothing else writes.

        Raises:
            DamagedError: a shard is missing, cut or not what its checksums say.
            LoadError: it can't be read.
        """
        rows = batch.rows
        self._gather.read(rows)
        inputs, labels = self._maker.make(rows.num_pairs, is_short=rows.is_short)
        if self._is_single:
            inputs, labels = inputs[0], labels[0]
        return {"input_ids": inputs, "labels": labels, "sample_end": batch.sample_end}

    def close(self) -> None:
        """Closes the files."""
        self._files.close()
