"""The profiles: named, versioned lists of rules, each with what its name stands for.

A profile is a series of filters. A filter may first change texts to the lines that stay; then its
rules are looked at in order, and the first that fails is the reason a document leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["PROFILES", "Filter", "Lines", "Rule", "with_thresholds"]

Comparison: TypeAlias = Literal["<", ">"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A document fails it if its signal is on the wrong side of the threshold."""

    name: str
    """The reason that the dropped table gives."""
    signal: str
    fails: Comparison
    """"<": below the threshold; ">": above it. Equal passes."""
    threshold: float

    def failing(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Returns which documents fail; one that has no value passes."""
        return values < self.threshold if self.fails == "<" else values > self.threshold


@dataclass(frozen=True, kw_only=True, slots=True)
class Lines:
    """C4's choice of lines."""

    terminal: bool = True
    """Whether a line must end in an end mark."""
    min_words: int = 3
    max_word_chars: int = 1000


@dataclass(frozen=True, slots=True)
class Filter:
    """Rules that one tool applies together."""

    rules: tuple[Rule, ...]
    lines: Lines | None = None
    """The lines that stay, chosen before the rules."""


_TOP = ((2, 0.20), (3, 0.18), (4, 0.16))
_DUP = ((5, 0.15), (6, 0.14), (7, 0.13), (8, 0.12), (9, 0.11), (10, 0.10))


def _ngram_rules(prefix: str, top: str = "top_{}_gram", dup: str = "dup_{}_gram") -> list[Rule]:
    rules = [Rule(top.format(n), f"{prefix}top_{n}_gram_fraction", ">", most) for n, most in _TOP]
    rules += [Rule(dup.format(n), f"{prefix}dup_{n}_gram_fraction", ">", most) for n, most in _DUP]
    return rules


_TROVE_REPETITION = Filter(
    (
        Rule("empty", "chars", "<", 1),
        Rule("dup_para_frac", "dup_para_fraction", ">", 0.3),
        Rule("dup_para_char_frac", "dup_para_char_fraction", ">", 0.2),
        Rule("dup_line_frac", "dup_line_fraction", ">", 0.3),
        Rule("dup_line_char_frac", "dup_line_char_fraction", ">", 0.2),
        *_ngram_rules("en_", dup="duplicated_{}_n_grams"),
    )
)
_TROVE_QUALITY = Filter(
    (
        Rule("gopher_short_doc", "en_non_symbol_words", "<", 50),
        Rule("gopher_long_doc", "en_non_symbol_words", ">", 100_000),
        Rule("gopher_below_avg_threshold", "en_mean_word_length", "<", 3),
        Rule("gopher_above_avg_threshold", "en_mean_word_length", ">", 10),
        Rule("gopher_too_many_hashes", "en_hash_per_word", ">", 0.1),
        Rule("gopher_too_many_ellipsis", "en_ellipsis_per_word", ">", 0.1),
        Rule("gopher_too_many_bullets", "bullet_row_fraction", ">", 0.9),
        Rule("gopher_too_many_end_ellipsis", "ellipsis_row_fraction", ">", 0.3),
        Rule("gopher_below_alpha_threshold", "en_alpha_word_fraction", "<", 0.8),
        Rule("gopher_enough_stop_words", "en_distinct_stop_words", "<", 2),
    )
)


def _c4(*, sentences: int, lines: Lines) -> Filter:
    rules = (
        Rule("lorem_ipsum", "c4_lorem_ipsum", ">", 0),
        Rule("curly_bracket", "c4_curly_bracket", ">", 0),
        Rule("too_few_sentences", "c4_sentences", "<", sentences),
    )
    return Filter(rules, lines)


def _fineweb(char_dup_ratio: float) -> Filter:
    return Filter(
        (
            Rule("empty_lines", "visible_lines", "<", 1),
            Rule("line_punct_ratio", "terminal_line_fraction", "<", 0.12),
            Rule("short_line_ratio", "short_line_fraction", ">", 0.67),
            Rule("char_dup_ratio", "dup_visible_char_fraction", ">", char_dup_ratio),
            Rule("list_ratio", "newlines_per_en_word", ">", 0.3),
        )
    )


def _dolma(version: str) -> Filter:
    return Filter(
        (
            Rule("too_few_words", "words", "<", 50),
            Rule("too_many_words", "words", ">", 100_000),
            Rule("short_words", "median_word_length", "<", 3),
            Rule("long_words", "median_word_length", ">", 10),
            Rule("too_many_symbols", "symbol_word_fraction", ">", 0.1),
            Rule("too_few_alphabetic_words", "alpha_word_fraction", "<", 0.8),
            Rule("too_few_stop_words", "stop_words", "<", 2),
            Rule("too_many_bullets", f"{version}_bullet_line_fraction", ">", 0.9),
            Rule("too_many_ellipses", f"{version}_ellipsis_line_fraction", ">", 0.3),
            Rule("dup_lines", f"{version}_dup_line_fraction", ">", 0.3),
            Rule("dup_line_chars", f"{version}_dup_line_char_fraction", ">", 0.3),
            *_ngram_rules("dolma_"),
        )
    )


_DCLM = Filter(
    (
        Rule("too_few_words", "counted_words", "<", 50),
        Rule("too_many_words", "counted_words", ">", 100_000),
        Rule("short_words", "mean_word_length", "<", 3),
        Rule("long_words", "mean_word_length", ">", 10),
        Rule("too_many_symbols", "symbols_per_word", ">", 0.1),
        Rule("too_many_bullets", "stripped_bullet_line_fraction", ">", 0.9),
        Rule("too_many_ellipses", "stripped_ellipsis_line_fraction", ">", 0.3),
        Rule("too_many_non_alphabetic_words", "non_alpha_word_fraction", ">", 0.2),
        Rule("too_few_stop_words", "stop_words_folded", "<", 2),
        Rule("dup_lines", "stripped_dup_line_fraction", ">", 0.3),
        Rule("dup_paras", "stripped_dup_para_fraction", ">", 0.3),
        Rule("dup_line_chars", "stripped_dup_line_char_fraction", ">", 0.2),
        Rule("dup_para_chars", "stripped_dup_para_char_fraction", ">", 0.2),
        *_ngram_rules("uni_"),
    )
)
_PAPER = Filter(
    (
        Rule("too_few_words", "words", "<", 50),
        Rule("too_many_words", "words", ">", 100_000),
        Rule("short_words", "mean_word_length", "<", 3),
        Rule("long_words", "mean_word_length", ">", 10),
        Rule("too_many_hashes", "hash_per_word", ">", 0.1),
        Rule("too_many_ellipses", "ellipsis_per_word", ">", 0.1),
        Rule("too_many_bullets", "stripped_bullet_line_fraction", ">", 0.9),
        Rule("too_many_end_ellipses", "stripped_ellipsis_line_fraction", ">", 0.3),
        Rule("too_few_alphabetic_words", "alpha_word_fraction", "<", 0.8),
        Rule("too_few_stop_words", "distinct_stop_words_folded", "<", 2),
        Rule("dup_lines", "dup_line_fraction", ">", 0.3),
        Rule("dup_paras", "dup_para_fraction", ">", 0.3),
        Rule("dup_line_chars", "dup_line_char_fraction", ">", 0.2),
        Rule("dup_para_chars", "dup_para_char_fraction", ">", 0.2),
        *_ngram_rules(""),
    )
)
_C4_TROVE = _c4(sentences=5, lines=Lines())
_C4_IN_FINEWEB = _c4(sentences=5, lines=Lines(terminal=False))

PROFILES: Mapping[str, tuple[Filter, ...]] = MappingProxyType(
    {
        "gopher@paper": (_PAPER,),
        "gopher@dolma-1.2": (_dolma("dolma_v1"),),
        "gopher-v2@dolma-1.2": (_dolma("dolma_v2"),),
        "gopher-repetition@datatrove-0.10": (_TROVE_REPETITION,),
        "gopher-quality@datatrove-0.10": (_TROVE_QUALITY,),
        "gopher@datatrove-0.10": (_TROVE_REPETITION, _TROVE_QUALITY),
        "c4@paper": (_c4(sentences=3, lines=Lines(min_words=5)),),
        "c4@datatrove-0.10": (_C4_TROVE,),
        "c4-any-end@datatrove-0.10": (_C4_IN_FINEWEB,),
        "fineweb-lines@datatrove-0.10": (_fineweb(0.01),),
        "fineweb@code": (_TROVE_REPETITION, _TROVE_QUALITY, _C4_IN_FINEWEB, _fineweb(0.01)),
        "fineweb@paper": (_TROVE_REPETITION, _TROVE_QUALITY, _C4_IN_FINEWEB, _fineweb(0.1)),
        "refinedweb@dclm": (_DCLM,),
    }
)
"""Every profile by name."""


def with_thresholds(
    filters: Iterable[Filter], thresholds: Mapping[str, float | None]
) -> tuple[Filter, ...]:
    """Returns the filters with other thresholds; None takes a rule out.

    Raises:
        ValueError: no filter has such a rule.
    """
    given = tuple(filters)
    known = {rule.name for found in given for rule in found.rules}
    unknown = sorted(set(thresholds) - known)
    if unknown:
        raise ValueError(
            f"{unknown[0]} isn't a rule of these profiles; they have {', '.join(sorted(known))}"
        )
    return tuple(_changed(found, thresholds) for found in given)


def _changed(found: Filter, thresholds: Mapping[str, float | None]) -> Filter:
    rules = []
    for rule in found.rules:
        threshold = thresholds.get(rule.name, rule.threshold)
        if threshold is not None:
            rules.append(replace(rule, threshold=threshold))
    return replace(found, rules=tuple(rules))
