"""Stages of users: found in files and installed packages, made, and checked in everything they do.

Owns what such code must keep to; knows nothing of what it is for. Code is only ever loaded because
a user's recipe or command names it, never because a dataset does.
"""

from datapipe.engine.own.checked import CheckedStage
from datapipe.engine.own.find import GROUP, installed_stages, make_own_stage, stages_of_files
from datapipe.engine.own.recorded import refuse_other_code

__all__ = [
    "GROUP",
    "CheckedStage",
    "installed_stages",
    "make_own_stage",
    "refuse_other_code",
    "stages_of_files",
]
