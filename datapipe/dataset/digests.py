"""Three digests, three promises; `manifest` is simply the SHA-256 of the manifest's bytes.

content   per source, by shard number, the raw digests of its token shards: equal when documents,
          recipe and tokenizer are, whatever files, listing order, workers and machine
logical   content, the row digests of docmap, dropped and quarantine, and what was conserved: equal
          when also the inputs' relative names and record offsets are
order     of one source: what the sample order needs to be the same
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from datapipe.dataset.hashing import canonical_json, hashed_tuple
from datapipe.dataset.manifest import ConservationRow

__all__ = ["DigestColumn", "content_digest", "logical_digest", "order_digest"]

DigestColumn = npt.NDArray[np.uint8]
"""SHA-256 digests, uint8 [rows, 32]."""


def order_digest(num_tokens: npt.NDArray[np.int64], birth: DigestColumn) -> str:
    """Returns a source's order digest: over (num_tokens int64 LE, raw digest at birth) by number.

    Args:
        num_tokens: int64 [shards].
        birth: uint8 [shards, 32]; what each shard's raw digest was when it was written.
    """
    rows = np.empty((len(num_tokens), 40), dtype=np.uint8)
    rows[:, :8] = np.ascontiguousarray(num_tokens, dtype="<i8").view(np.uint8).reshape(-1, 8)
    rows[:, 8:] = birth
    return hashlib.sha256(rows.data).hexdigest()


def content_digest(sources: Iterable[tuple[str, DigestColumn]]) -> str:
    """Returns the digest over hashed tuples (source, raw digests by number), in manifest order."""
    digest = hashlib.sha256()
    for name, raw in sources:
        digest.update(hashed_tuple(name, raw.tobytes()))
    return digest.hexdigest()


def logical_digest(
    *,
    content: str,
    docmaps: Iterable[tuple[str, DigestColumn]],
    dropped: Sequence[str],
    quarantine: Sequence[str],
    conservation: Sequence[ConservationRow],
) -> str:
    """Returns the digest over everything that a reader can see but bytes of tables.

    Args:
        content: content digest, hex.
        docmaps: per source in manifest order, row digests of its docmaps by number.
        dropped: row digests of the table's files in order, hex.
        quarantine: likewise.
        conservation: in manifest order; byte counts don't enter, because they change with the
            inputs' compression.
    """
    digest = hashlib.sha256(hashed_tuple("content", bytes.fromhex(content)))
    for name, rows in docmaps:
        digest.update(hashed_tuple("docmap", name, rows.tobytes()))
    digest.update(hashed_tuple("dropped", bytes.fromhex("".join(dropped))))
    digest.update(hashed_tuple("quarantine", bytes.fromhex("".join(quarantine))))
    digest.update(hashed_tuple("conservation", canonical_json([_counts(r) for r in conservation])))
    return digest.hexdigest()


def _counts(row: ConservationRow) -> dict[str, object]:
    return {
        "source": row.source,
        "kept": row.kept,
        "dropped": row.dropped,
        "quarantined": row.quarantined,
    }
