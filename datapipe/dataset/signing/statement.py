"""What is signed of a version: an in-toto Statement v1 about its manifest.

It follows from the manifest and the log entry alone, so whoever has both can say what a signature
must state.
"""

from __future__ import annotations

from typing import Any

import msgspec

from datapipe.dataset.layout import manifest_path
from datapipe.dataset.log import LogEntry
from datapipe.dataset.manifest import Manifest

__all__ = ["PREDICATE_TYPE", "STATEMENT_TYPE", "describe_version", "find_difference"]

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://datapipe-train/version/v1"


def describe_version(entry: LogEntry, manifest: Manifest) -> dict[str, Any]:
    """Returns the statement about a version as JSON values."""
    tokenizer = manifest.tokenizer
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": manifest_path(entry.manifest), "digest": {"sha256": entry.manifest}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "dataset": entry.dataset,
            "version": entry.version,
            "entry_sha256": entry.entry_sha256,
            "parents": list(manifest.parents),
            "operation": manifest.operation,
            "recipe_sha256": manifest.recipe_sha256,
            "tokenizer": {
                "sha256": tokenizer.sha256,
                "vocabulary": tokenizer.vocabulary,
                "canary": tokenizer.canary,
            },
            "digests": msgspec.to_builtins(manifest.digests),
            "totals": msgspec.to_builtins(manifest.totals),
        },
    }


def find_difference(payload: bytes, expected: dict[str, Any]) -> str | None:
    """Returns what a signed statement says other than it must, None where it says just that.

    Keys that this program doesn't know are ignored, as in-toto wants it; none may be missing.
    """
    try:
        found = msgspec.json.decode(payload)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        return f"it isn't JSON: {error}"
    return _difference("the statement", found, expected)


def _difference(name: str, found: Any, expected: Any) -> str | None:
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            if key not in found:
                return f"{name} has no {key!r}"
            difference = _difference(key, found[key], value)
            if difference is not None:
                return difference
        return None
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = zip(found, expected, strict=True)
        return next((d for d in (_difference(name, a, b) for a, b in pairs) if d is not None), None)
    if type(found) is type(expected) and found == expected:
        return None
    return f"{name} is {_shown(found)}, this version's is {_shown(expected)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:100] + "..."
