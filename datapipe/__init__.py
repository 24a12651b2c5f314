"""Training-data pipeline: raw documents to versioned token shards to GPU ranks, with lineage."""

__all__: list[str] = []
