"""Moves immutable, content-addressed bytes between tiers.

Knows keys, sizes, digests and leases; knows nothing of documents, tokens or torch.
"""
