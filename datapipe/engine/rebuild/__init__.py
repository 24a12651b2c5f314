"""Doing a version again: the recorded recipe on the recorded inputs, and what came of it.

Owns finding the inputs, the throw-away dataset in which a step is repeated, and the verdict; runs
builds through the engine as any other, reads the original and never writes to it.
"""

from datapipe.engine.rebuild.report import Difference, RebuildReport, Step, Verdict
from datapipe.engine.rebuild.steps import RebuildOptions, rebuild_dataset

__all__ = [
    "Difference",
    "RebuildOptions",
    "RebuildReport",
    "Step",
    "Verdict",
    "rebuild_dataset",
]
