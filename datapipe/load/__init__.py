"""The streaming loader: batches of tokens for one data-parallel rank, resumed by one number.

Owns how shards become tensors: ranks, gather, labels, state, and the record of what a run read. It
must not know how datasets are built, and decides no order: `datapipe.order` does. The only part of
the product that imports torch.
"""

from datapipe.load.report import SourceReport, StreamReport
from datapipe.load.sources import Data
from datapipe.load.stream import TokenStream
from datapipe.order import Phase

__all__ = ["Data", "Phase", "SourceReport", "StreamReport", "TokenStream"]
