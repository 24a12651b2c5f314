"""Documents on the move: the batch, its hashes and identities.

Owns the schema that readers fill and stages change; knows nothing of input formats, of what
stages decide, or of tokens.
"""

from datapipe.documents.batch import (
    DOCUMENTS,
    batch_from_columns,
    named,
    with_values,
)
from datapipe.documents.dropped import dropped_rows
from datapipe.documents.hashes import content_hashes, doc_ids
from datapipe.documents.stages import Stage, StageResult, Threshold, thresholds_of
from datapipe.documents.urls import domains, url_hashes

__all__ = [
    "DOCUMENTS",
    "Stage",
    "StageResult",
    "Threshold",
    "batch_from_columns",
    "content_hashes",
    "doc_ids",
    "domains",
    "dropped_rows",
    "named",
    "thresholds_of",
    "url_hashes",
    "with_values",
]
