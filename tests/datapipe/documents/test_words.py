from __future__ import annotations

import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe.documents.characters import character_classes
from datapipe.documents.english_rules import english_rules
from datapipe.documents.english_words import rule_table
from datapipe.documents.split import split_texts, text_buffers
from datapipe.documents.words import Cutter, cut_words, word_sequence


def cut(text: str, cutter: Cutter) -> list[str]:
    data, offsets = text_buffers(pa.array([text], pa.large_string()))
    classes, rules = character_classes(), english_rules()
    split = split_texts(data, offsets, 0, 1, classes)
    table = rule_table(rules.rows)
    words = cut_words(data, split.kinds, classes, table, rules.begins, int(cutter))
    sequence, _ = word_sequence(split.doc_words, split.word_kind, words.first, words.word)
    starts, sizes = words.kinds.start, words.kinds.num_bytes
    return [bytes(data[starts[k] : starts[k] + sizes[k]]).decode() for k in sequence]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop.", "Do n't stop ."),
        ('(She\'ll say "no"!)', '( She \'ll say " no " ! )'),
        ("cannot gonna CANNOT", "can not gon na CANNOT"),
        ("the U.S. and Mr. Fox, etc.", "the U.S. and Mr. Fox , etc ."),
        ("10km 5,000 3.14 $5 100%", "10 km 5,000 3.14 $ 5 100 %"),
        ("well-known a--b x=y and/or", "well - known a -- b x = y and/or"),
        ("see http://a.org/b-c?d=e, or a@b.com.", "see http://a.org/b-c?d=e , or a@b.com ."),
        ("wait... what\u2026?", "wait ... what \u2026 ?"),
        ("nice:) and <3 :-(", "nice :) and <3 :-("),
        ("dogs' James's it\u2019s", "dogs ' James 's it \u2019s"),
        ("end.Start 8am C++ 25\u00b0C.", "end . Start 8 am C++ 25 \u00b0 C ."),
        ("", ""),
    ],
    ids=lambda value: value[:12],
)
def test_english_words(text: str, words: str) -> None:
    assert cut(text, Cutter.ENGLISH) == words.split()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("can't stop, e.g. 3.14 or 1,000!", "can't stop e.g 3.14 or 1,000"),
        ("snake_case x-y a:b", "snake_case x y a:b"),
        ("\u4e2d\u6587\u5b57 abc", "\u4e2d \u6587 \u5b57 abc"),
        ("\u30ab\u30bf\u30ab\u30ca\u3068", "\u30ab\u30bf\u30ab\u30ca \u3068"),
        ("\u0e01\u0e34\u0e19", "\u0e01\u0e34 \u0e19"),
        ("\u0939\u093f\u0928\u094d\u0926\u0940", "\u0939\u093f\u0928\u094d\u0926\u0940"),
        (
            "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd",
            "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd",
        ),
        ("\U0001f600\U0001f600 !!! --", ""),
        ("e\u0301te\u0301", "e\u0301te\u0301"),
    ],
    ids=["latin", "joined", "han", "kana", "thai", "hindi", "arabic", "emoji", "marks"],
)
def test_unicode_words(text: str, words: str) -> None:
    assert cut(text, Cutter.UNICODE) == words.split()


@settings(max_examples=150, deadline=None)
@given(st.text(st.characters(codec="utf-8")))
def test_english_words_put_together_are_the_text_without_white_space(text: str) -> None:
    assert "".join(cut(text, Cutter.ENGLISH)) == "".join(text.split())


@settings(max_examples=150, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_categories=("Pc", "M", "Cf", "Cs"))))
def test_unicode_words_hold_every_letter_and_begin_with_one(text: str) -> None:
    words = cut(text, Cutter.UNICODE)
    assert all(word[0].isalnum() for word in words)
    left = iter("".join(words))
    letters = [c for c in text if unicodedata.category(c)[0] == "L"]
    assert all(any(found == letter for found in left) for letter in letters)
