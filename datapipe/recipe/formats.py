"""The names that a recipe has for formats of input."""

from __future__ import annotations

from typing import Literal, get_args

__all__ = ["FORMATS", "FormatName"]

FormatName = Literal[
    "jsonl",
    "json",
    "csv",
    "tsv",
    "parquet",
    "arrow",
    "text",
    "html",
    "warc",
    "arc",
    "tar",
    "wikipedia",
]

FORMATS: tuple[FormatName, ...] = get_args(FormatName)
"""What `format:` may say."""
