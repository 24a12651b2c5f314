"""Lineage: which documents a step read, which steps read a document, what became of a record.

Owns the questions and their answers. What was read follows from the run record, the order and its
inverse, what became of a record from the tables of the versions; there is no log to search. It must
not know the loader, torch or terminals.
"""

from datapipe.lineage.answers import BatchDocuments, DocumentSteps, SampleDocuments, Seen
from datapipe.lineage.batches import documents_of_batch, documents_of_step
from datapipe.lineage.docmaps import DocumentPlace, DocumentSpan
from datapipe.lineage.reading import read_documents, read_sample
from datapipe.lineage.sql import open_sql, rows_where
from datapipe.lineage.steps import steps_of_document
from datapipe.lineage.why import Fate, why_document, why_record, why_url

__all__ = [
    "BatchDocuments",
    "DocumentPlace",
    "DocumentSpan",
    "DocumentSteps",
    "Fate",
    "SampleDocuments",
    "Seen",
    "documents_of_batch",
    "documents_of_step",
    "open_sql",
    "read_documents",
    "read_sample",
    "rows_where",
    "steps_of_document",
    "why_document",
    "why_record",
    "why_url",
]
