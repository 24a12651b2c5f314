"""Verification of one version, from its log entry down to token blocks and docmap rows.

Owns what must hold between the objects of a version; reports and never repairs, and never raises
on damage.
"""

from datapipe.dataset.verify.report import VerifyReport
from datapipe.dataset.verify.version import verify_dataset

__all__ = ["VerifyReport", "verify_dataset"]
