"""The stage `fix_text`: text that was decoded with the wrong encoding becomes right (ftfy)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from datapipe.clean.edits import EditStage, edit_texts
from datapipe.documents import StageResult
from datapipe.documents.libraries import optional_library

__all__ = ["FixText", "FixTextOptions"]

_ALL_BUT_ENCODING: Mapping[str, object] = {
    "unescape_html": False,
    "remove_terminal_escapes": False,
    "fix_latin_ligatures": False,
    "fix_character_width": False,
    "uncurl_quotes": False,
    "fix_line_breaks": False,
    "remove_control_chars": False,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class FixTextOptions:
    """What is mended."""

    repair: Literal["encoding", "all"] = "encoding"
    """encoding: mojibake alone; all: also entities, ligatures, widths, quotes, as ftfy does."""


class FixText(EditStage[FixTextOptions]):
    """Mends texts with ftfy, line by line, and drops none; `normalize` sees to Unicode's forms.

    ASCII text can't be mojibake and passes unread with `repair: encoding`.
    """

    name = "fix_text"
    version = 1
    default = FixTextOptions()

    def __init__(self, options: FixTextOptions | None = None) -> None:
        super().__init__(options)
        self._ftfy = optional_library("ftfy", stage=self.name, package="ftfy", extra="web")
        given = _ALL_BUT_ENCODING if self._options.repair == "encoding" else {}
        self._config = self._ftfy.TextFixerConfig(normalization=None, explain=False, **given)

    def apply(self, batch: pa.RecordBatch) -> StageResult:
        """Returns the batch with mended texts."""
        candidates = None
        if self._options.repair == "encoding":
            candidates = pc.invert(pc.string_is_ascii(batch.column("text")))
        return edit_texts(batch, self._edited, stage=self.name, candidates=candidates)

    def _edited(self, text: str) -> str:
        mended: str = self._ftfy.fix_text(text, self._config)
        return mended
