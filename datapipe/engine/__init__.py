"""Runs builds: units, passes, ledger, work folder, executors.

Owns what is done in which order, on which worker, and what is kept of it between runs; knows
nothing of how a format is read, what a stage decides, or who listens to its progress.
"""

from datapipe.engine.api import append, append_dataset, build, build_dataset, plan_build
from datapipe.engine.building import run_build
from datapipe.engine.options import MAX_WORKERS, BuildOptions
from datapipe.engine.report import BuildReport
from datapipe.engine.request import Request
from datapipe.engine.tokenizer_check import check_tokenizer, show_tokenizer
from datapipe.engine.training_text import train_tokenizer

__all__ = [
    "MAX_WORKERS",
    "BuildOptions",
    "BuildReport",
    "Request",
    "append",
    "append_dataset",
    "build",
    "build_dataset",
    "check_tokenizer",
    "plan_build",
    "run_build",
    "show_tokenizer",
    "train_tokenizer",
]
