"""Stages that take lines and paragraphs out of texts.

Own what a line is and which ones go; know nothing of thresholds on whole documents, which are the
business of quality profiles.
"""

from datapipe.clean.lines.c4 import C4Lines, C4LinesOptions
from datapipe.clean.lines.duplicates import (
    DuplicateLines,
    DuplicateOptions,
    DuplicateParagraphs,
)
from datapipe.clean.lines.refinedweb import RefinedWebLines, RefinedWebLinesOptions
from datapipe.clean.lines.rules import LineRules, LineRulesOptions

__all__ = [
    "C4Lines",
    "C4LinesOptions",
    "DuplicateLines",
    "DuplicateOptions",
    "DuplicateParagraphs",
    "LineRules",
    "LineRulesOptions",
    "RefinedWebLines",
    "RefinedWebLinesOptions",
]
