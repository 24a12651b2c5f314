"""placeholder"""
from __future__ import annotations
import hashlib
def canary_strings(): return ["a"]
def canary_digest(encode):
    ids, offsets = encode(canary_strings())
    return hashlib.sha256(ids.tobytes()).hexdigest()
