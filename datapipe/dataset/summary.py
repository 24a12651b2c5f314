"""What a version holds, as JSON values: what `datapipe show` prints."""

from __future__ import annotations

from collections import Counter
from typing import Any

from datapipe.dataset.reader import Dataset

__all__ = ["summarize"]


def summarize(dataset: Dataset) -> dict[str, Any]:
    """Returns sources, counts, tokenizer and digests of a version; reads only its manifest."""
    manifest = dataset.manifest
    tokenizer = manifest.tokenizer
    return {
        "dataset": dataset.url,
        "version": dataset.version,
        "operation": manifest.operation,
        "manifest": dataset.manifest_sha256,
        "logical": manifest.digests.logical,
        "content": manifest.digests.content,
        "sources": [
            {
                "source": source.name,
                "licence": manifest.licences.get(source.name),
                "shards": source.num_shards,
                "documents": source.num_documents,
                "tokens": source.num_tokens,
                "text_bytes": source.text_bytes,
            }
            for source in dataset.sources
        ],
        "documents": _counts(dataset),
        "tokens": manifest.totals.num_tokens,
        "bytes_in": manifest.totals.bytes_in,
        "token_dtype": manifest.token_dtype,
        "codec": manifest.codec,
        "tokenizer": {
            "vocabulary": tokenizer.vocabulary,
            "canary": tokenizer.canary,
            "vocab_size": tokenizer.vocab_size,
            "eos_id": tokenizer.eos_id,
            "backend": tokenizer.backend,
        },
        "recipe": manifest.recipe,
        "environment": manifest.environment,
    }


def _counts(dataset: Dataset) -> dict[str, Any]:
    dropped: Counter[str] = Counter()
    quarantined: Counter[str] = Counter()
    for row in dataset.manifest.conservation:
        dropped.update(row.dropped)
        quarantined.update(row.quarantined)
    totals = dataset.manifest.totals
    return {
        "in": totals.documents_in,
        "kept": totals.kept,
        "dropped": dict(sorted(dropped.items())),
        "quarantined": dict(sorted(quarantined.items())),
    }
