"""The dataset repository: shards, docmaps, tables, manifests and the log, on any store.

Owns what lies on disk or in the bucket (`docs/format.md`) and how versions come to be; knows
nothing of recipes, readers of raw data, tokenizers' insides, sample orders or terminals.
"""

from datapipe.dataset.commit import Committed, commit_version
from datapipe.dataset.draft import SourceCounts, TokenizerRecord, VersionDraft
from datapipe.dataset.hashing import canonical_json, document_hash, hashed_tuple, sha256_hex
from datapipe.dataset.log import LogEntry
from datapipe.dataset.manifest import ConservationRow, Manifest, SourceSummary
from datapipe.dataset.reader import Dataset, ShardTable
from datapipe.dataset.repository import Repository, log_entries, open_dataset
from datapipe.dataset.shards import ShardRecord, token_dtype
from datapipe.dataset.summary import summarize
from datapipe.dataset.transaction import Transaction, begin_transaction
from datapipe.dataset.verify import VerifyReport, verify_dataset

__all__ = [
    "Committed",
    "ConservationRow",
    "Dataset",
    "LogEntry",
    "Manifest",
    "Repository",
    "ShardRecord",
    "ShardTable",
    "SourceCounts",
    "SourceSummary",
    "TokenizerRecord",
    "Transaction",
    "VerifyReport",
    "VersionDraft",
    "begin_transaction",
    "canonical_json",
    "commit_version",
    "document_hash",
    "hashed_tuple",
    "log_entries",
    "open_dataset",
    "sha256_hex",
    "summarize",
    "token_dtype",
    "verify_dataset",
]
