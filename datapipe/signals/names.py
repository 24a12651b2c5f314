"""The signals by name: what each says, and which family of kernels computes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntFlag
from types import MappingProxyType

__all__ = ["SIGNALS", "Family", "families_of"]


class Family(IntFlag):
    """Signals that are computed together."""

    PLAIN = 1
    """Words between white space."""
    TROVE = 2
    """datatrove's Gopher quality: English words, rows."""
    TROVE_REPEATS = 4
    """datatrove's n-grams of English words."""
    FINEWEB = 8
    """FineWeb's line rules."""
    DOLMA = 16
    """Dolma's lines."""
    PLAIN_NGRAMS = 32
    """n-grams of words between white space: Dolma's and the paper's."""
    DCLM = 64
    """DCLM's lines and paragraphs."""
    UNICODE_NGRAMS = 128
    """DCLM's n-grams of Unicode words."""
    C4 = 256
    """What C4's lines left, and why."""
    SIZE = 512
    """Code points."""
    DUPLICATES = 1024
    """Lines and paragraphs that stood in the document before."""


_TOP, _DUP = range(2, 5), range(5, 11)

_NAMES: dict[Family, tuple[str, ...]] = {
    Family.PLAIN: (
        *("words", "word_chars", "mean_word_length", "median_word_length"),
        *("alpha_word_fraction", "non_alpha_word_fraction", "symbol_word_fraction", "stop_words"),
        *("stop_words_folded", "distinct_stop_words_folded", "hash_per_word", "ellipsis_per_word"),
        *("symbols_per_word", "counted_words"),
    ),
    Family.TROVE: (
        *("en_words", "en_non_symbol_words", "en_mean_word_length", "en_hash_per_word"),
        *("en_ellipsis_per_word", "bullet_row_fraction", "ellipsis_row_fraction"),
        *("en_alpha_word_fraction", "en_distinct_stop_words"),
    ),
    Family.TROVE_REPEATS: (
        *(f"en_top_{n}_gram_fraction" for n in _TOP),
        *(f"en_dup_{n}_gram_fraction" for n in _DUP),
    ),
    Family.FINEWEB: (
        *("visible_lines", "terminal_line_fraction", "short_line_fraction"),
        *("dup_visible_char_fraction", "newlines_per_en_word"),
    ),
    Family.DOLMA: tuple(
        f"{version}_{name}"
        for version in ("dolma_v1", "dolma_v2")
        for name in (
            *("bullet_line_fraction", "ellipsis_line_fraction"),
            *("dup_line_fraction", "dup_line_char_fraction"),
        )
    ),
    Family.PLAIN_NGRAMS: (
        *(f"dolma_top_{n}_gram_fraction" for n in _TOP),
        *(f"dolma_dup_{n}_gram_fraction" for n in _DUP),
        *(f"top_{n}_gram_fraction" for n in _TOP),
        *(f"dup_{n}_gram_fraction" for n in _DUP),
    ),
    Family.DCLM: (
        *("stripped_lines", "stripped_bullet_line_fraction", "stripped_ellipsis_line_fraction"),
        *("stripped_dup_line_fraction", "stripped_dup_line_char_fraction"),
        *("stripped_dup_para_fraction", "stripped_dup_para_char_fraction"),
    ),
    Family.UNICODE_NGRAMS: (
        "uni_words",
        *(f"uni_top_{n}_gram_fraction" for n in _TOP),
        *(f"uni_dup_{n}_gram_fraction" for n in _DUP),
    ),
    Family.C4: (
        *("c4_lorem_ipsum", "c4_curly_bracket", "c4_kept_lines", "c4_lines", "c4_sentences"),
    ),
    Family.SIZE: ("chars",),
    Family.DUPLICATES: (
        *("dup_para_fraction", "dup_para_char_fraction"),
        *("dup_line_fraction", "dup_line_char_fraction"),
    ),
}

SIGNALS: Mapping[str, Family] = MappingProxyType(
    {name: family for family, names in _NAMES.items() for name in names}
)
"""Every signal with its family, in the order of the columns that `measure` gives."""


def families_of(signals: Iterable[str]) -> Family:
    """Returns the families that compute some signals."""
    found = Family(0)
    for name in signals:
        found |= SIGNALS[name]
    return found
