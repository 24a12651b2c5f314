"""Options of the stages that change texts, or drop them for what they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)

from datapipe.recipe.sizes import Size
from datapipe.recipe.strict import DataFile, Strict

__all__ = ["CLEANING_OPTIONS"]

Phrase = Annotated[str, StringConstraints(min_length=1)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Action = Literal["mask", "drop", "tag", "keep"]
PluginName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
Count = Annotated[int, Field(ge=0, lt=1 << 53)]


class ExtractHtmlSpec(Strict):
    """Options of the stage `extract_html`."""

    engine: Literal["resiliparse", "plain", "trafilatura"] = "resiliparse"
    media_type: Literal["html", "any"] = "html"
    list_bullets: bool = True
    alt_texts: bool = False
    links: bool = False
    tables: bool = True
    comments: bool = True
    max_bytes: Annotated[Size, Field(ge=1024, le=1 << 30)] = 16 << 20
    max_depth: Annotated[int, Field(ge=1, le=10_000)] = 512
    max_attributes: Annotated[int, Field(ge=1, le=100_000)] = 256
    max_elements: Annotated[int, Field(ge=1, le=100_000_000)] = 500_000


class NormalizeSpec(Strict):
    """Options of the stage `normalize`."""

    unicode: Literal["NFC", "NFKC", "none"] = "NFC"
    control_characters: Literal["strip", "keep"] = "strip"
    zero_width: Literal["keep", "strip"] = "keep"
    line_ends: Literal["plain", "all"] = "plain"
    trailing_spaces: Literal["keep", "strip"] = "keep"

    @model_serializer(mode="wrap")
    def _as_recorded(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leaves out what says what was always done: recorded recipes stay as they are."""
        later = {"zero_width": "keep", "line_ends": "plain", "trailing_spaces": "keep"}
        return {name: value for name, value in dump(self).items() if later.get(name) != value}


class FixTextSpec(Strict):
    """Options of the stage `fix_text`."""

    repair: Literal["encoding", "all"] = "encoding"


class LanguageSpec(Strict):
    """Options of the stage `language`."""

    keep: list[Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}$")]] = Field(
        default_factory=list
    )
    min_score: Share = 0.65
    per: Literal["document", "line"] = "document"


class C4LinesSpec(Strict):
    """Options of the stage `c4_lines`."""

    terminal_punctuation: bool = True
    min_words: Count = 3
    max_word_chars: Count = 1000
    citations: bool = True
    javascript: bool = True
    policies: bool = True
    lorem_ipsum: bool = True
    curly_brackets: bool = True


class RefinedWebLinesSpec(Strict):
    """Options of the stage `refinedweb_lines`."""

    max_uppercase_fraction: Share = 0.5
    max_removed_fraction: Share = 0.05


class LineRulesSpec(Strict):
    """Options of the stage `line_rules`."""

    min_words: Count = 0
    min_chars: Count = 0
    max_chars: Count = 0
    ends: list[Phrase] = Field(default_factory=list)
    containing: list[Phrase] = Field(default_factory=list)
    boilerplate: bool = True
    block_lines: DataFile | None = None
    max_removed_fraction: Share = 1.0


class DuplicatesSpec(Strict):
    """Options of the stages `duplicate_lines` and `duplicate_paragraphs`."""

    min_chars: Count = 1
    max_removed_fraction: Share = 1.0


class PiiSpec(Strict):
    """Options of the stage `pii`."""

    email: Action = "mask"
    ipv4: Action = "mask"
    ipv6: Action = "mask"
    phone: Action = "keep"
    iban: Action = "mask"
    card: Action = "mask"
    secrets: Action = "mask"
    plugins: dict[PluginName, Action] = Field(default_factory=dict)
    masks: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _masks_of_kinds(self) -> PiiSpec:
        own = {*type(self).model_fields}
        taken = sorted(own & {*self.plugins})
        if taken:
            raise ValueError(
                f"{taken[0]!r} in plugins is an option already; rename the entry point"
            )
        kinds = {*own, *self.plugins} - {"plugins", "masks"}
        other = sorted({*self.masks} - kinds)
        if other:
            raise ValueError(f"{other[0]!r} isn't a kind; masks are of {', '.join(sorted(kinds))}")
        return self


class UrlFilterSpec(Strict):
    """Options of the stage `url_filter`."""

    block_domains: DataFile | None = None
    block_hosts: DataFile | None = None
    block_urls: DataFile | None = None
    hard_words: list[Phrase] = Field(default_factory=list)
    soft_words: list[Phrase] = Field(default_factory=list)
    max_soft_words: Count = 1
    parts: list[Phrase] = Field(default_factory=list)
    missing: Literal["keep", "drop"] = "keep"


CLEANING_OPTIONS: Mapping[str, type[BaseModel]] = {
    "extract_html": ExtractHtmlSpec,
    "normalize": NormalizeSpec,
    "fix_text": FixTextSpec,
    "language": LanguageSpec,
    "c4_lines": C4LinesSpec,
    "refinedweb_lines": RefinedWebLinesSpec,
    "line_rules": LineRulesSpec,
    "duplicate_lines": DuplicatesSpec,
    "duplicate_paragraphs": DuplicatesSpec,
    "pii": PiiSpec,
    "url_filter": UrlFilterSpec,
}
"""By the names that recipes give the stages."""
