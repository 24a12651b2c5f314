"""Lineage: which documents a step read, and which steps read a document.

Owns the questions and their answers. Everything follows from the run record, the order and its
inverse; there is no log to search. It must not know the loader, torch or terminals.
"""

from datapipe.lineage.answers import BatchDocuments, DocumentSteps, SampleDocuments, Seen
from datapipe.lineage.batches import documents_of_batch, documents_of_step
from datapipe.lineage.docmaps import DocumentPlace, DocumentSpan
from datapipe.lineage.reading import read_documents, read_sample
from datapipe.lineage.steps import steps_of_document

__all__ = [
    "BatchDocuments",
    "DocumentPlace",
    "DocumentSpan",
    "DocumentSteps",
    "SampleDocuments",
    "Seen",
    "documents_of_batch",
    "documents_of_step",
    "read_documents",
    "read_sample",
    "steps_of_document",
]
