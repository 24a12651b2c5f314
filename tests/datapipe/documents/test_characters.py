from __future__ import annotations

import numpy as np
import pytest

from datapipe.documents.characters import (
    ALNUM,
    ALPHA,
    ROW_END,
    SPACE,
    character_classes,
)

CODE_POINTS = [chr(i) for i in range(0x110000) if not 0xD800 <= i < 0xE000]


@pytest.mark.parametrize(
    ("bit", "is_one"),
    [
        (SPACE, str.isspace),
        (ALPHA, str.isalpha),
        (ALNUM, str.isalnum),
        (ROW_END, lambda character: len(f"a{character}b".splitlines()) == 2),
    ],
    ids=["space", "alpha", "alnum", "row end"],
)
def test_classes_are_those_of_str_for_every_code_point(bit: int, is_one) -> None:  # type: ignore[no-untyped-def]
    table = character_classes()
    wrong = [
        hex(ord(character))
        for character in CODE_POINTS
        if bool(table[ord(character)] & bit) != is_one(character)
    ]
    assert wrong == []


def test_table_can_not_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        character_classes()[0] = np.uint32(1)
