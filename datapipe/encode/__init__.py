"""Documents to token arrays, through `datapipe_tokenizers`.

Owns where end-of-text tokens go and that ids fit the dataset's dtype; knows nothing of files,
shards or how a text came to be.
"""

from datapipe.encode.documents import check_sample, count_special_text, encode_documents

__all__ = ["check_sample", "count_special_text", "encode_documents"]
