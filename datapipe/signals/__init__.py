"""Texts to numbers, and numbers to decisions.

Owns the signals that are computed of a document's text, the profiles of thresholds that keep or
drop it, and the stage `quality`; knows nothing of formats, of other documents, or of tokens.
"""

from datapipe.signals.decide import Decisions, decide_again, rules_of
from datapipe.signals.profiles import PROFILES, Filter, Rule, with_thresholds
from datapipe.signals.stages import STAGES

__all__ = [
    "PROFILES",
    "STAGES",
    "Decisions",
    "Filter",
    "Rule",
    "decide_again",
    "rules_of",
    "with_thresholds",
]
