"""Stages that change a document's text, or drop it for what its text is.

Owns the stages of a recipe that look at one document at a time; knows nothing of where documents
come from, of other documents, or of tokens.
"""

from datapipe.clean.drop_empty import DropEmpty
from datapipe.clean.fix_text import FixText, FixTextOptions
from datapipe.clean.html import ExtractHtml, ExtractHtmlOptions
from datapipe.clean.language import Language, LanguageOptions
from datapipe.clean.normalize import Normalize, NormalizeOptions
from datapipe.clean.stages import STAGES

__all__ = [
    "STAGES",
    "DropEmpty",
    "ExtractHtml",
    "ExtractHtmlOptions",
    "FixText",
    "FixTextOptions",
    "Language",
    "LanguageOptions",
    "Normalize",
    "NormalizeOptions",
]
