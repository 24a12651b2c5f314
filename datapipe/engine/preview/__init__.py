"""What a recipe would do, seen on a sample of its inputs.

Owns choosing the sample, running the stages over it with their decisions noted, and estimating the
whole from it; writes nothing.
"""

from datapipe.engine.preview.api import PreviewOptions, preview_recipe
from datapipe.engine.preview.report import Example, PreviewReport, RuleReport, StageReport

__all__ = [
    "Example",
    "PreviewOptions",
    "PreviewReport",
    "RuleReport",
    "StageReport",
    "preview_recipe",
]
