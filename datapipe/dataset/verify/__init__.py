"""Verification of one version, from its log entry down to token blocks and docmap rows.

Owns what must hold between the objects of a version, and restoring objects from another copy of
it; never raises on damage, and never writes bytes that the version doesn't name by digest.
"""

from datapipe.dataset.verify.origin import Origin
from datapipe.dataset.verify.report import Repaired, VerifyReport
from datapipe.dataset.verify.version import verify_dataset, verify_reference

__all__ = ["Origin", "Repaired", "VerifyReport", "verify_dataset", "verify_reference"]
