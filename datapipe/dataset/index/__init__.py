"""Indexes: from the hash of a document's id, URL or domain to the row that describes it.

Owns the files of an index, their making in bounded memory and looking a hash up. An index is
derived from docmaps and dropped rows: it never changes what a version holds, and is whole or
absent. It must not know how texts become hashes, beyond what stands in the tables.
"""

from datapipe.dataset.index.covered import TableName
from datapipe.dataset.index.entries import domain_key, id_key
from datapipe.dataset.index.lookup import Index, IndexedRow

__all__ = ["Index", "IndexedRow", "TableName", "domain_key", "id_key"]
