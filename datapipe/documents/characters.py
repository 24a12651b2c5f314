"""What a code point is: one table of bits, made from this Python's Unicode data.

White space and line ends are exactly those of `str.split` and `str.splitlines`, letters and digits
those of `str.isalpha` and `str.isalnum`; a test compares them over every code point. Sets that only
some tool has are listed here by code point: datatrove's two of punctuation, and the classes that
spaCy's English rules are written in.
"""

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np
import numpy.typing as npt

__all__ = [
    "ALNUM",
    "ALPHA",
    "CURRENCY",
    "EN_AFFIX",
    "EN_ICON",
    "EN_LOWER",
    "EN_POINT",
    "EN_PREFIX",
    "EN_QUOTE",
    "EN_SUFFIX",
    "EN_UPPER",
    "PUNCTUATION",
    "ROW_END",
    "SENTENCE_END",
    "SPACE",
    "TERMINAL",
    "TROVE_PUNCTUATION",
    "WB_EXTEND",
    "WB_JOIN",
    "WB_KATAKANA",
    "WB_LETTER",
    "WB_MID_BOTH",
    "WB_MID_LETTER",
    "WB_MID_NUMBER",
    "WB_NUMBER",
    "WB_SHIFT",
    "WB_SINGLE",
    "character_classes",
    "unicode_version",
]

SPACE = 1
ROW_END = 1 << 1
ALPHA = 1 << 2
ALNUM = 1 << 3
PUNCTUATION = 1 << 4
TERMINAL = 1 << 5
TROVE_PUNCTUATION = 1 << 6
SENTENCE_END = 1 << 7
EN_LOWER = 1 << 8
EN_UPPER = 1 << 9
EN_PREFIX = 1 << 10
EN_SUFFIX = 1 << 11
EN_QUOTE = 1 << 12
EN_ICON = 1 << 13
EN_POINT = 1 << 14
CURRENCY = 1 << 15
EN_AFFIX = EN_PREFIX | EN_SUFFIX | EN_ICON | CURRENCY

WB_SHIFT = 16
WB_OTHER, WB_LETTER, WB_NUMBER, WB_EXTEND, WB_JOIN = range(5)
WB_MID_LETTER, WB_MID_NUMBER, WB_MID_BOTH, WB_KATAKANA, WB_SINGLE = range(5, 10)

_SIZE = 0x110000
_CATEGORIES = (
    *(
        "Cc",
        "Cf",
        "Cn",
        "Co",
        "Cs",
        "Ll",
        "Lm",
        "Lo",
        "Lt",
        "Lu",
        "Mc",
        "Me",
        "Mn",
        "Nd",
        "Nl",
        "No",
    ),
    *("Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "Sc", "Sk", "Sm", "So", "Zl", "Zp", "Zs"),
)
_SPACES = "9-d 1c-20 85 a0 1680 2000-200a 2028-2029 202f 205f 3000"
_ROW_ENDS = "a-d 1c-1e 85 2028-2029"
_TERMINAL = (
    "21 2e 3f 589 61d-61f 6d4 700-702 7f9 837 839 83d-83e 964-965 104a-104b 1362 1367-1368 166e "
    "1735-1736 17d4-17d6 17d9-17da 1803 1809 1944-1945 1aa8-1aab 1b5a-1b5b 1b5e-1b5f 1b7d-1b7e "
    "1c3b-1c3c 1c7e-1c7f 203c-203d 2047-2049 2e2e 2e3c 2e53-2e54 3002 a4ff a60e-a60f a6f3 "
    "a6f7 a876-a877 a8ce-a8cf a92f a9c8-a9c9 aa5d-aa5f aaf0-aaf1 abeb fe52 fe56-fe57 ff01 ff0e "
    "ff1f ff61 10a56-10a57 10f55-10f59 10f86-10f89 11047-11048 110be-110c1 11141-11143 "
    "111c5-111c6 111cd 111de-111df 11238-11239 1123b-1123c 112a9 1144b-1144c 115c2-115c3 "
    "115c9-115d7 11641-11642 1173c-1173e 11944 11946 11a42-11a43 11a9b-11a9c 11c41-11c42 "
    "11ef7-11ef8 11f43-11f44 16a6e-16a6f 16af5 16b37-16b38 16b44 16e98 1bc9f 1da88"
)
_NOT_SENTENCE_END = (
    "61d-61e 837 839 83d-83e 17d4-17d6 17d9-17da 1b7d-1b7e 2e53-2e54 10f55-10f59 "
    "10f86-10f89 11944 11946 11ef7-11ef8 11f43-11f44 16e98"
)
_TROVE_PUNCTUATION = (
    "0-8 b-1f 22-2d 2f 3a-3e 40 5b-60 7b-9f ab b4 bb 2013-2014 2019 201c-201e 2026 2236 2501 "
    "25ba 3001 3008-300d 3010-3011 ff05 ff08-ff09 ff0c ff11 ff1a-ff1b ff5e"
)
_EN_UNCASED = (
    "591-5f4 620-64a 66e-6d5 6e5-6ff 750-77f 8a0-8bd 900-9ff b80-cff d80-dff 1100-137f "
    "2e80-2fdf 2ff0-30ff 31c0-31ef 3200-4dbf 4e00-9fff ac00-d7af f900-faff fb1d-fbb1 fbd3-fd3d "
    "fd50-fdc7 fdf0-fdfb fe30-fe4f fe70-fefc 1ee00-1eebb 1f200-1f2ff 20000-2a6df 2a700-2ebef "
    "2f800-2fa1f"
)
_EN_CASED = "41-5a 61-7a aa-24f 250-2af 386-3ff 400-45f 1d00-1eff 2c60-2c7f a722-a7ff ab30-ab64 "
_EN_CASED += "ff21-ff3a ff41-ff5a"
_EN_PUNCTUATION = "\u2026,:;!?\u00bf\u061f\u00a1()[]{}<>_#*&"
_EN_PUNCTUATION += (
    "\u3002\uff1f\uff01\uff0c\u3001\uff1b\uff1a\uff5e\u00b7\u0964\u060c\u06d4\u061b\u066a"
)
_EN_QUOTES = "'\"\u201d\u201c`\u2018\u00b4\u2019\u201a,\u201e\u00bb\u00ab"
_EN_QUOTES += "\u300c\u300d\u300e\u300f\uff08\uff09\u3014\u3015\u3010\u3011\u300a\u300b\u3008\u3009"
_EN_QUOTES += "\u2329\u232a\u27e6\u27e7"
_CURRENCY = "$\u00a3\u20ac\u00a5\u0e3f\ufdfc"
_EN_ICONS_SINCE = (
    "166d 2b97 2bc9 2bff 2e50-2e51 32ff fd40-fd4f fdcf fdfe-fdff 1f16c-1f16f 1f1ad 1f6d5-1f6d7 "
    "1f6dd-1f6df 1f6fa-1f6fc 1f7e0-1f7eb 1f7f0 1f90c-1f90f 1f93f 1f971-1f972 1f977-1f979 1f97b "
    "1f9a3-1f9af 1f9ba-1f9bf 1f9c3-1f9cf 1fa00-1fa53 1fa70-1fbff"
)
_IDEOGRAPHS = "2e80-2fdf 3005-3007 3021-3029 3041-3096 309d-309f 3400-4dbf 4e00-9fff f900-faff "
_IDEOGRAPHS += "1b001 1b11f-1b122 1b150-1b152 1f200 20000-3ffff"
_KATAKANA = "3031-3035 309b-309c 30a0-30fa 30fc-30ff 31f0-31ff 32d0-32fe 3300-3357 ff66-ff9d "
_KATAKANA += "1aff0-1affe 1b000 1b120-1b121 1b164-1b167"
_BY_CLUSTER = (
    "e01-e3a e40-e4e e81-eae eb0-ec6 edc-edf 1000-103f 1050-108f 109a-109f 1780-17d3 17d7 "
)
_BY_CLUSTER += (
    "17dc 1950-1974 1980-19c9 19da 19de-19df 1a20-1aad a9e0-a9ef a9fa-a9fe aa60-aac2 aadb-aadf"
)


def unicode_version() -> str:
    """Returns the version of the Unicode data that the table is made from."""
    return unicodedata.unidata_version


@cache
def character_classes() -> npt.NDArray[np.uint32]:
    """Returns the bits of every code point, uint32 [0x110000]; made once, in about 0.2 s."""
    table = np.zeros(_SIZE, dtype=np.uint32)
    category = _categories()
    _mark(table, _SPACES, SPACE)
    _mark(table, _ROW_ENDS, ROW_END)
    _mark(table, _TERMINAL, TERMINAL | TROVE_PUNCTUATION | SENTENCE_END)
    _clear(table, _NOT_SENTENCE_END, SENTENCE_END)
    _mark(table, _TROVE_PUNCTUATION, TROVE_PUNCTUATION)
    table[_of(category, "L")] |= ALPHA | ALNUM
    table[_of(category, "N")] |= ALNUM
    table[_of(category, "P")] |= PUNCTUATION
    _add_english(table, category)
    table |= _word_break(category) << np.uint32(WB_SHIFT)
    table.flags.writeable = False
    return table


def _categories() -> npt.NDArray[np.uint8]:
    number = {name: i for i, name in enumerate(_CATEGORIES)}
    names = map(unicodedata.category, map(chr, range(_SIZE)))
    return np.frombuffer(bytes(map(number.__getitem__, names)), dtype=np.uint8)


def _of(category: npt.NDArray[np.uint8], name: str) -> npt.NDArray[np.bool_]:
    """Returns which code points are of a category, or of those that begin with a letter."""
    chosen = np.array([found.startswith(name) for found in _CATEGORIES])
    return chosen[category]


def _add_english(table: npt.NDArray[np.uint32], category: npt.NDArray[np.uint8]) -> None:
    cased = np.zeros(_SIZE, dtype=np.uint32)
    _mark(cased, _EN_CASED, 1)
    table[(cased == 1) & _of(category, "Ll")] |= EN_LOWER
    table[(cased == 1) & _of(category, "Lu")] |= EN_UPPER
    _mark(table, _EN_UNCASED, EN_LOWER | EN_UPPER)
    table[_of(category, "So")] |= EN_ICON
    _clear(table, _EN_ICONS_SINCE, EN_ICON)
    for character in _EN_PUNCTUATION:
        table[ord(character)] |= EN_PREFIX | EN_SUFFIX | EN_POINT
    for character in _EN_QUOTES:
        table[ord(character)] |= EN_PREFIX | EN_SUFFIX | EN_QUOTE | EN_POINT
    for character in "\u00a7%=\u2014\u2013":
        table[ord(character)] |= EN_PREFIX
    for character in "\u2014\u2013":
        table[ord(character)] |= EN_SUFFIX
    for character in "%\u00b2-+|":
        table[ord(character)] |= EN_POINT
    for character in _CURRENCY:
        table[ord(character)] |= CURRENCY
    table[0x20A0:0x20C0] |= CURRENCY


def _word_break(category: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    """Returns the class that decides where Unicode words end; see `unicode_words`."""
    found = np.full(_SIZE, WB_OTHER, dtype=np.uint32)
    found[_of(category, "L") | _of(category, "Nl")] = WB_LETTER
    _set(found, _BY_CLUSTER, WB_SINGLE)
    _set(found, _IDEOGRAPHS, WB_SINGLE)
    _set(found, _KATAKANA, WB_KATAKANA)
    found[_of(category, "Nd")] = WB_NUMBER
    found[_of(category, "M") | _of(category, "Cf")] = WB_EXTEND
    found[_of(category, "Pc")] = WB_JOIN
    _set(found, "3a b7 387 55f 5f4 2027 fe13 fe55 ff1a", WB_MID_LETTER)
    _set(found, "2c 3b 37e 589 60c-60d 66c 7f8 2044 fe10 fe14 fe50 fe54 ff0c ff1b", WB_MID_NUMBER)
    _set(found, "27 2e 2018-2019 2024 fe52 ff07 ff0e", WB_MID_BOTH)
    return found


def _ranges(ranges: str) -> list[slice]:
    pairs = [part.split("-") for part in ranges.split()]
    return [slice(int(pair[0], 16), int(pair[-1], 16) + 1) for pair in pairs]


def _mark(table: npt.NDArray[np.uint32], ranges: str, bits: int) -> None:
    for part in _ranges(ranges):
        table[part] |= np.uint32(bits)


def _clear(table: npt.NDArray[np.uint32], ranges: str, bits: int) -> None:
    for part in _ranges(ranges):
        table[part] &= ~np.uint32(bits)


def _set(table: npt.NDArray[np.uint32], ranges: str, value: int) -> None:
    for part in _ranges(ranges):
        table[part] = value
