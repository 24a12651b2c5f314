"""The words that English tokenizing treats as a whole or takes apart by rule.

Contractions are made from pronouns, question words and verbs with their endings, with and without
apostrophe; the rest are abbreviations, emoticons and times. They are the cases of spaCy's
`blank("en")`; `benchmarks/clean` holds the two together. Units of measure, which part from a number
in front of them, are here too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["WORD_COLUMN", "EnglishRules", "english_cases", "english_rules"]

WORD_COLUMN = 8
"""Column of a row of rules where the word itself begins."""

_PRONOUNS = {
    "i": "m ma ll ll+ve d d+ve ve",
    "you": "ll ll+ve d d+ve ve re",
    "he": "ll ll+ve d d+ve s",
    "she": "ll ll+ve d d+ve s",
    "it": "ll ll+ve d d+ve s",
    "we": "ll ll+ve d d+ve ve re",
    "they": "ll ll+ve d d+ve ve re",
}
_ASKING = "who what when where why how there"
_SINGULAR = "that this"
_PLURAL = "these those"
_NEGATED = "ca could do does did had may might must need ought sha should wo would"
_NEGATED_ONLY = "ai are is was were have has dare"
_CONDITIONAL = "could might must should would"
_SAME_AS_OTHER_WORDS = (
    "Ill ill Its its Hell hell Shell shell Shed shed were Were Well well Whore whore"
)
_TAKEN_APART = (
    "y'|all y|all how|'d|'y How|'d|'y not|'ve not|ve Not|'ve Not|ve can|not Can|not gon|na Gon|na "
    "got|ta Got|ta \u00b0|C|. \u00b0|F|. \u00b0|K|. \u00b0|c|. \u00b0|f|. \u00b0|k|. "
    "let|'s Let|'s c'm|on C'm|on"
)
_WHOLE = (
    "'S 's \u2018S \u2018s and/or w/o 're 'Cause 'cause 'cos 'Cos 'coz 'Coz 'cuz 'Cuz 'bout 'd "
    "'ll 'em 'nuff em ll nuff ma'am Ma'am o'clock O'clock ' '' a.m. p.m. e.g. E.g. E.G. i.e. "
    "I.e. I.E. C++ Adm. Bros. co. Co. Corp. D.C. Dr. Gen. Gov. Inc. Jr. Ltd. Md. Messrs. Mo. "
    "Mont. Mr. Mrs. Ms. Ph.D. Prof. Rep. Rev. Sen. St. vs. v.s. Mt. Ak. Ala. Apr. Ariz. Ark. "
    "Aug. Calif. Colo. Conn. Dec. Del. Feb. Fla. Ga. Ia. Id. Ill. Ind. Jan. Jul. Jun. Kan. "
    "Kans. Ky. La. Mar. Mass. Mich. Minn. Miss. N.C. N.D. N.H. N.J. N.M. N.Y. Neb. Nebr. Nev. "
    'Nov. Oct. Okla. Ore. Pa. S.C. Sep. Sept. Tenn. Va. Wash. Wis. <space> \\n \\t \\") '
    "\u2014 \u00e4. \u00f6. \u00fc."
)
_CLIPPED = "lovin havin doin goin nothin nuthin somethin ol"
_EMOTICONS = (
    ":) :-) :)) :-)) :))) :-))) (: (-: =) (= :] :-] [: [-: [= ]= :o) (o: :} :-} 8) 8-) (-8 ;) "
    ";-) (; (-; :( :-( :(( :-(( :((( :-((( ): )-: =( >:( :') :'-) :'( :'-( :/ :-/ =/ =| :| :-| "
    ":1 :P :-P :p :-p :O :-O :o :-o :0 :-0 :* :-* :3 :-3 =3 :> :-> :X :-X :x :-x :D :-D ;D ;-D "
    "=D xD XD xDD XDD 8D :() =[ =] >:o "
    "8-D ^_^ ^__^ ^___^ >.< >.> <.< ._. ;_; -_- -__- v.v V.V v_v V_V o_o o_O O_o O_O 0_o o_0 "
    "0_0 o.O O.o O.O o.o 0.0 o.0 0.o @_@ <3 <33 <333 </3 (^_^) (-_-) (._.) (>_<) (*_*) "
    "(\u00ac_\u00ac) \u0ca0_\u0ca0 \u0ca0\ufe35\u0ca0 (\u0ca0_\u0ca0) \u00af\\(\u30c4)/\u00af "
    "(\u256f\u00b0\u25a1\u00b0\uff09\u256f\ufe35\u253b\u2501\u253b ><(((*>"
)
_UNITS = (
    "km km\u00b2 km\u00b3 m m\u00b2 m\u00b3 dm dm\u00b2 dm\u00b3 cm cm\u00b2 cm\u00b3 mm "
    "mm\u00b2 mm\u00b3 ha \u00b5m nm yd in ft kg g mg \u00b5g t lb oz m/s km/h kmh mph hPa Pa "
    "mbar mb MB kb KB gb GB tb TB T G M K % \u043a\u043c \u043a\u043c\u00b2 \u043a\u043c\u00b3 "
    "\u043c \u043c\u00b2 \u043c\u00b3 \u0434\u043c \u0441\u043c \u0441\u043c\u00b2 "
    "\u0441\u043c\u00b3 \u043c\u043c \u043d\u043c \u043a\u0433 \u0433 \u043c\u0433 "
    "\u043c/\u0441 \u043a\u043c/\u0447 \u043a\u041f\u0430 \u041f\u0430 "
    "\u043c\u0431\u0430\u0440 \u041a\u0431 \u041a\u0411 \u043a\u0431 \u041c\u0431 \u041c\u0411 "
    "\u043c\u0431 \u0413\u0431 \u0413\u0411 \u0433\u0431 \u0422\u0431 \u0422\u0411"
)


class EnglishRules(NamedTuple):
    """The rules as arrays that a kernel can look words up in."""

    rows: npt.NDArray[np.uint8]
    """uint8 [words, 4 + 4 + bytes]: 1, its length, 1 for a unit, number of parts; lengths of the
    parts; its UTF-8."""
    begins: npt.NDArray[np.bool_]
    """bool [2, bytes + 1, 256]: whether a case (a unit) of a length begins with a byte."""


@cache
def english_cases() -> Mapping[str, tuple[str, ...]]:
    """Returns the parts of every word that is a case of its own."""
    cases: dict[str, tuple[str, ...]] = {word: (word,) for word in _WHOLE.split()}
    cases |= {f"{letter}.": (f"{letter}.",) for letter in "abcdefghijklmnopqrstuvwxyz"}
    for word in _CLIPPED.split():
        for form in (word, word.title()):
            cases |= {form: (form,), form + "'": (form + "'",)}
    cases |= {word: (word,) for word in _EMOTICONS.split()}
    cases |= {"".join(parts): parts for parts in _contractions()}
    cases |= {"".join(parts): parts for parts in map(_parts, _TAKEN_APART.split())}
    for hour in range(1, 13):
        for period in ("a.m.", "am", "p.m.", "pm"):
            cases[f"{hour}{period}"] = (str(hour), period)
    curly = {
        word.replace("'", "\u2019"): tuple(part.replace("'", "\u2019") for part in parts)
        for word, parts in cases.items()
    }
    excluded = set(_SAME_AS_OTHER_WORDS.split())
    return {word: parts for word, parts in (cases | curly).items() if word not in excluded}


def _parts(word: str) -> tuple[str, ...]:
    return tuple(word.split("|"))


def _contractions() -> Iterator[tuple[str, ...]]:
    for word, endings in _PRONOUNS.items():
        yield from _with_endings(word, endings)
    for word in _ASKING.split():
        yield from _with_endings(word, "s ll ll+ve re ve d d+ve")
    for word in _SINGULAR.split():
        yield from _with_endings(word, "s ll ll+ve d d+ve")
    for word in _PLURAL.split():
        yield from _with_endings(word, "ll ll+ve re ve d d+ve")
    for word in _CONDITIONAL.split():
        yield from _with_endings(word, "ve")
    for word in _NEGATED.split():
        for form in (word, word.title()):
            yield from ((form, "n't"), (form, "nt"), (form, "n't", "'ve"), (form, "nt", "ve"))
    for word in _NEGATED_ONLY.split():
        for form in (word, word.title()):
            yield from ((form, "n't"), (form, "nt"))


def _with_endings(word: str, endings: str) -> Iterator[tuple[str, ...]]:
    for form in (word, word.title()):
        for ending in endings.split():
            if ending == "ma":
                yield from ((form, "'m", "a"), (form, "m", "a"))
                continue
            parts = ending.split("+")
            yield (form, *(f"'{part}" for part in parts))
            yield (form, *parts)


@cache
def english_rules() -> EnglishRules:
    """Returns the cases and units as arrays, cases first, each in code point order."""
    cases = english_cases()
    entries: list[tuple[str, tuple[str, ...]]] = [(word, cases[word]) for word in sorted(cases)]
    entries += [(unit, ()) for unit in sorted(set(_UNITS.split()))]
    most = max(len(word.encode()) for word, _ in entries)
    rows = np.zeros((len(entries), WORD_COLUMN + most), dtype=np.uint8)
    begins = np.zeros((2, most + 1, 256), dtype=np.bool_)
    for row, (word, parts) in zip(rows, entries, strict=True):
        text, sizes = word.encode(), [len(part.encode()) for part in parts]
        row[:4] = 1, len(text), not parts, len(parts)
        row[4 : 4 + len(sizes)] = sizes
        row[WORD_COLUMN : WORD_COLUMN + len(text)] = list(text)
        begins[int(not parts), len(text), text[0]] = True
    return EnglishRules(rows, begins)
