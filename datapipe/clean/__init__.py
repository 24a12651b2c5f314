"""Stages that change a document's text, or drop it for what its text is.

Owns the stages of a recipe that look at one document at a time; knows nothing of where documents
come from, of other documents, or of tokens.
"""

from datapipe.clean.drop_empty import DropEmpty
from datapipe.clean.dropped import dropped_rows
from datapipe.clean.normalize import Normalize, NormalizeOptions
from datapipe.clean.stages import Stage, document_stage, is_document_stage

__all__ = [
    "DropEmpty",
    "Normalize",
    "NormalizeOptions",
    "Stage",
    "document_stage",
    "dropped_rows",
    "is_document_stage",
]
