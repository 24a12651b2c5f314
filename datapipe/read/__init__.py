"""Input files to documents: which files, what they are, where to cut them, what is in them.

Owns input formats, compressions and the quarantine of what can't be read; knows nothing of
cleaning, of tokens, or of who reads which range. The one place that opens input files.
"""

from datapipe.read.check import check_fields
from datapipe.read.cutting import CutError, can_cut, cut_input
from datapipe.read.damage import DAMAGE_ERRORS
from datapipe.read.formats import KNOWN_FORMATS, Format, detect_format
from datapipe.read.input_file import InputFile
from datapipe.read.inputs import ensure_distinct, list_inputs
from datapipe.read.ranges import (
    BATCH_BYTES,
    MAX_RECORD_BYTES,
    FileRange,
    Place,
    plan_ranges,
    read_range,
)
from datapipe.read.results import ReadResult
from datapipe.read.streams import input_sha256

__all__ = [
    "BATCH_BYTES",
    "DAMAGE_ERRORS",
    "KNOWN_FORMATS",
    "MAX_RECORD_BYTES",
    "CutError",
    "FileRange",
    "Format",
    "InputFile",
    "Place",
    "ReadResult",
    "can_cut",
    "check_fields",
    "cut_input",
    "detect_format",
    "ensure_distinct",
    "input_sha256",
    "list_inputs",
    "plan_ranges",
    "read_range",
]
