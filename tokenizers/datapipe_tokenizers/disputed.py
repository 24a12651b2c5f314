"""Code points that libraries read differently: letters, digits and marks new in Unicode 17.

gigatoken 0.10 knows them; Hugging Face's tokenizers 0.23 and tiktoken 0.14 take them for unassigned
(seen by encoding every code point with both). A text that has one is the reference's to encode.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["DISPUTED", "disputed_rows"]

DISPUTED = (
    *((0x88F, 0x88F), (0xC5C, 0xC5C), (0xCDC, 0xCDC), (0x1ACF, 0x1ADD), (0x1AE0, 0x1AEB)),
    *((0xA7CE, 0xA7CF), (0xA7D2, 0xA7D2), (0xA7D4, 0xA7D4), (0xA7F1, 0xA7F1)),
    *((0x10940, 0x1095F), (0x10EC5, 0x10EC7), (0x10EFA, 0x10EFB), (0x11B60, 0x11B67)),
    *((0x11DB0, 0x11DE9), (0x16EA0, 0x16ED3), (0x16FF2, 0x16FF6), (0x187F8, 0x187FF)),
    *((0x18D09, 0x18D1E), (0x18D80, 0x18DF2), (0x1E6C0, 0x1E6FF), (0x2B73A, 0x2B73F)),
    *((0x2CEA2, 0x2CEAD), (0x323B0, 0x33479)),
)
"""First and last of each range."""

_PATTERN = "[" + "".join(f"\\x{{{low:X}}}-\\x{{{high:X}}}" for low, high in DISPUTED) + "]"
_LEADS = sorted({chr(low).encode()[:1] for low, _ in DISPUTED})  # few texts have any of them


def disputed_rows(texts: pa.LargeStringArray) -> npt.NDArray[np.int64]:
    """Returns which texts have such a code point, ascending.

    Looks for the first bytes that they have in UTF-8 (4 GB/s), then at the texts that have one.
    """
    _, offsets, characters = texts.buffers()
    if characters is None or not len(texts):
        return np.empty(0, dtype=np.int64)
    starts = np.frombuffer(offsets, np.int64, count=len(texts) + 1, offset=8 * texts.offset)
    data = bytes(memoryview(characters)[int(starts[0]) : int(starts[-1])])
    starts = starts - starts[0]
    maybe = np.array(sorted({row for lead in _LEADS for row in _rows_with(data, lead, starts)}))
    if not len(maybe):
        return np.empty(0, dtype=np.int64)
    found = pc.match_substring_regex(texts.take(pa.array(maybe)), _PATTERN)
    return np.asarray(maybe[found.to_numpy(zero_copy_only=False)], dtype=np.int64)


def _rows_with(data: bytes, lead: bytes, starts: npt.NDArray[np.int64]) -> Iterator[int]:
    place = data.find(lead)
    while place >= 0:
        row = int(np.searchsorted(starts, place, side="right")) - 1
        yield row
        place = data.find(lead, int(starts[row + 1]))
