"""What the real tools decided and measured; `benchmarks/clean` made the vectors by running them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from datapipe.documents import batch_from_columns
from datapipe.signals.measure import measure
from datapipe.signals.quality import Quality, QualityOptions

VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())["vectors"]
TEXTS = [vector["text"] for vector in VECTORS]
DOLMA_NAMES = {
    "word_count": "words",
    "median_word_length": "median_word_length",
    "symbol_to_word_ratio": "symbol_word_fraction",
    "fraction_of_words_with_alpha_character": "alpha_word_fraction",
    "required_word_count": "stop_words",
    "character_count": "chars",
    **{
        f"fraction_of_characters_in_most_common_{n}grams": f"dolma_top_{n}_gram_fraction"
        for n in (2, 3, 4)
    },
    **{
        f"fraction_of_characters_in_duplicate_{n}grams": f"dolma_dup_{n}_gram_fraction"
        for n in range(5, 11)
    },
}
DOLMA_LINES = {
    "fraction_of_lines_starting_with_bullet_point": "bullet_line_fraction",
    "fraction_of_lines_ending_with_ellipsis": "ellipsis_line_fraction",
    "fraction_of_duplicate_lines": "dup_line_fraction",
    "fraction_of_characters_in_duplicate_lines": "dup_line_char_fraction",
}


def decided(profile: str) -> tuple[list[str | None], dict[int, str]]:
    """Returns the reason of each text, None where it stays, and the texts that stay."""
    rows = list(range(len(TEXTS)))
    batch = batch_from_columns(
        TEXTS, source="s", source_file="f", offsets=rows, lengths=[1] * len(rows)
    )
    result = Quality(QualityOptions(profile=(profile,))).apply(batch)
    reasons: list[str | None] = [None] * len(rows)
    left = zip(
        result.dropped["source_offset"].to_pylist(), result.dropped["rule"].to_pylist(), strict=True
    )
    for row, rule in left:
        reasons[row] = rule.replace("empty_lines", "empty")
    kept = result.batch.to_pydict()
    return reasons, dict(zip(kept["source_offset"], kept["text"], strict=True))


@pytest.mark.parametrize("profile", list(VECTORS[0]["datatrove"]))
def test_datatrove_gives_the_same_reasons_and_texts(profile: str) -> None:
    reasons, texts = decided(profile)
    wanted: list[dict[str, Any]] = [vector["datatrove"][profile] for vector in VECTORS]
    answered = [want["reason"] != "ZeroDivisionError" for want in wanted]
    differing = {
        row: (reason, want["reason"])
        for row, (reason, want) in enumerate(zip(reasons, wanted, strict=True))
        if answered[row] and reason != want["reason"]
    }
    assert differing == {}
    for row, want in enumerate(wanted):
        if "sha256" in want:
            assert hashlib.sha256(texts[row].encode()).hexdigest()[:16] == want["sha256"]


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_dolma_measures_the_same(version: str) -> None:
    names = DOLMA_NAMES | {tool: f"dolma_{version}_{ours}" for tool, ours in DOLMA_LINES.items()}
    found = measure(pa.array(TEXTS, pa.large_string()), names.values())
    for tool, ours in names.items():
        wanted = [vector["dolma"][f"gopher_{version}"].get(tool, 0.0) for vector in VECTORS]
        np.testing.assert_allclose(found[ours], wanted, atol=1e-6, rtol=0, err_msg=tool)


def test_nearly_every_reason_of_datatrove_is_among_the_vectors() -> None:
    seen = {found["reason"] for vector in VECTORS for found in vector["datatrove"].values()}
    rules = {
        rule.name
        for name in VECTORS[0]["datatrove"]
        for found in Quality(QualityOptions(profile=(name,)))._passes
        for rule in found.rules
    }
    assert rules - seen <= {
        "empty_lines",
        "gopher_long_doc",
        "duplicated_6_n_grams",
        "duplicated_8_n_grams",
    }
