"""The dataset repository: shards, docmaps, tables, manifests and the log, on any store.

Owns what lies on disk or in the bucket (`docs/format.md`) and how versions come to be; knows
nothing of recipes, readers of raw data, tokenizers' insides, sample orders or terminals.
"""

from datapipe.dataset.commit import Committed, commit_version, remake_version
from datapipe.dataset.diff import VersionDiff, diff_versions
from datapipe.dataset.draft import SourceCounts, TokenizerRecord, VersionDraft
from datapipe.dataset.garbage import Collector, Garbage, Swept
from datapipe.dataset.hashing import canonical_json, document_hash, hashed_tuple, sha256_hex
from datapipe.dataset.history import version_history
from datapipe.dataset.index.making import index_dataset
from datapipe.dataset.keep import Hold, drop_hold, hold_version, list_holds
from datapipe.dataset.log import LogEntry
from datapipe.dataset.manifest import ConservationRow, Manifest, SourceSummary
from datapipe.dataset.reader import Dataset, ShardTable
from datapipe.dataset.repository import (
    Repository,
    log_entries,
    note_committed,
    open_dataset,
    rollback_check,
)
from datapipe.dataset.retired import retire_versions
from datapipe.dataset.seen import SeenVersions
from datapipe.dataset.shards import ShardRecord, token_dtype
from datapipe.dataset.signing import (
    Signed,
    Signer,
    SigningKey,
    VerifyingKey,
    check_signature,
    check_signers,
    list_signers,
    read_signing_key,
    read_verifying_key,
    sign_version,
    write_key_pair,
)
from datapipe.dataset.summary import summarize
from datapipe.dataset.tags import Tag, delete_tag, list_tags, read_tag, set_tag
from datapipe.dataset.transaction import Transaction, begin_transaction
from datapipe.dataset.verify import Repaired, VerifyReport, verify_dataset, verify_reference

__all__ = [
    "Collector",
    "Committed",
    "ConservationRow",
    "Dataset",
    "Garbage",
    "Hold",
    "LogEntry",
    "Manifest",
    "Repaired",
    "Repository",
    "SeenVersions",
    "ShardRecord",
    "ShardTable",
    "Signed",
    "Signer",
    "SigningKey",
    "SourceCounts",
    "SourceSummary",
    "Swept",
    "Tag",
    "TokenizerRecord",
    "Transaction",
    "VerifyReport",
    "VerifyingKey",
    "VersionDiff",
    "VersionDraft",
    "begin_transaction",
    "canonical_json",
    "check_signature",
    "check_signers",
    "commit_version",
    "delete_tag",
    "diff_versions",
    "document_hash",
    "drop_hold",
    "hashed_tuple",
    "hold_version",
    "index_dataset",
    "list_holds",
    "list_signers",
    "list_tags",
    "log_entries",
    "note_committed",
    "open_dataset",
    "read_signing_key",
    "read_tag",
    "read_verifying_key",
    "remake_version",
    "retire_versions",
    "rollback_check",
    "set_tag",
    "sha256_hex",
    "sign_version",
    "summarize",
    "token_dtype",
    "verify_dataset",
    "verify_reference",
    "version_history",
    "write_key_pair",
]
