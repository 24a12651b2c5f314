from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datapipe.documents import StageResult, batch_from_columns
from datapipe.recipe.stage_options import QualitySpec
from datapipe.signals import PROFILES, STAGES, decide_again, with_thresholds
from datapipe.signals.quality import Quality, QualityOptions

EVERY_PROFILE = tuple(PROFILES)
ODD = {
    "empty": "",
    "white space": " \n\t\u2003\n\n",
    "one character": "x",
    "one letter without case": "\u4e2d",
    "punctuation": "!?;,.()" * 50,
    "right to left": "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd\u200f " * 30,
    "NUL": "\0a\0 \0\0\n" * 40,
    "emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467\U0001f1e9\U0001f1ea" * 30,
    "marks only": "\u0301" * 60,
    "line ends": "\r\n\n\r\u2028\x85" * 30,
}


def run(texts: list[str], *profiles: str, **thresholds: float | None) -> StageResult:
    rows = list(range(len(texts)))
    batch = batch_from_columns(
        texts, source="s", source_file="f", offsets=rows, lengths=[1] * len(rows)
    )
    return Quality(QualityOptions(profile=profiles, thresholds=thresholds)).apply(batch)


def reasons(result: StageResult) -> list[str]:
    return result.dropped["rule"].to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("text", "reason", "value"),
    [
        ("International organisations are here today.", "top_2_gram", 27 / 43),
        ("a bc de fg h abc de f g h", "top_3_gram", None),
        ("a a a a a a", "top_2_gram", None),
        ("", "empty", 0.0),
    ],
    ids=["single 2-gram", "shifted", "one word again", "empty"],
)
def test_a_dropped_document_says_value_and_threshold(
    text: str, reason: str, value: float | None
) -> None:
    result = run([text], "gopher@datatrove-0.10")
    (row,) = result.dropped.to_pylist()
    assert (row["stage"], row["rule"]) == ("quality", reason)
    assert value is None or math.isclose(row["value"], value)
    assert row["threshold"] is not None


def test_n_grams_of_the_same_characters_are_repeats() -> None:
    off = dict.fromkeys(("top_2_gram", "top_3_gram", "top_4_gram"))
    result = run(["a bc de fg h abc de f g h"], "gopher@datatrove-0.10", **off)
    (row,) = result.dropped.to_pylist()
    assert row["rule"] == "duplicated_5_n_grams"
    assert math.isclose(row["value"], 8 / 25)


def test_one_repeated_line_of_sixty_drops_a_page_only_by_the_code() -> None:
    lines = [f"Line number {i} of this page has its own words {i}{i} here." for i in range(60)]
    text = "\n".join([*lines, lines[7]])
    assert reasons(run([text], "fineweb-lines@datatrove-0.10")) == ["char_dup_ratio"]
    assert reasons(run([text], "fineweb-lines@datatrove-0.10", char_dup_ratio=0.1)) == []


@pytest.mark.parametrize("profile", EVERY_PROFILE)
@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_odd_documents_have_a_result(text: str, profile: str) -> None:
    result = run([text, text], profile)
    assert result.batch.num_rows + result.dropped.num_rows == 2
    assert result.signals is not None
    first, second = (row.values() for row in result.signals.drop_columns("doc_id").to_pylist())
    assert list(first) == list(second)
    assert all(value is None or math.isfinite(value) for value in first)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8")), max_size=6))
def test_documents_in_are_those_kept_and_dropped(texts: list[str]) -> None:
    result = run(texts, *EVERY_PROFILE)
    assert result.batch.num_rows + result.dropped.num_rows == len(texts)
    assert result.signals is not None
    assert result.signals.num_rows == len(texts)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1, max_size=6))
def test_a_document_is_measured_the_same_alone_and_among_others(texts: list[str]) -> None:
    together = run(texts, "refinedweb@dclm", "gopher@datatrove-0.10", "gopher@dolma-1.2").signals
    assert together is not None
    for row, text in enumerate(texts):
        alone = run([text], "refinedweb@dclm", "gopher@datatrove-0.10", "gopher@dolma-1.2").signals
        assert alone is not None
        columns = together.schema.names[1:]
        assert [together[name][row].as_py() for name in columns] == [
            alone[name][0].as_py() for name in columns
        ]


def test_signals_are_kept_of_every_document_in_order() -> None:
    page = "The way of the world is to be and to have that with you. " * 3
    result = run([page, "", page], "fineweb@code", "gopher@dolma-1.2")
    assert result.signals is not None
    values = result.signals["quality.dup_line_fraction"].to_pylist()
    assert values == [0.0, 0.0, 0.0]
    assert result.signals["quality.chars"].to_pylist() == [len(page), 0, len(page)]
    assert result.signals["quality.words"].to_pylist() == [None, None, None]


def test_stored_signals_are_decided_again_with_other_thresholds() -> None:
    texts = [f"{'word ' * n}of the" for n in range(40, 60)]
    profile = "gopher-quality@datatrove-0.10"
    signals = run(texts, profile).signals
    changed = with_thresholds(PROFILES[profile], {"gopher_short_doc": 45})
    decisions = decide_again(signals, changed)
    again = run(texts, profile, gopher_short_doc=45)
    assert int((decisions.failed < 0).sum()) == again.batch.num_rows


def test_a_threshold_for_no_rule_is_refused_with_the_rules_there_are() -> None:
    with pytest.raises(ValueError, match=r"nonsense isn't a rule.*gopher_short_doc"):
        run(["x"], "gopher@datatrove-0.10", nonsense=1)


def test_c4_keeps_lines_and_gives_the_changed_text_to_what_follows() -> None:
    lines = [f"This is sentence number {i} of a page." for i in range(6)]
    text = "\n".join(["Menu", *lines, "Please enable JavaScript now."])
    result = run([text], "c4@datatrove-0.10")
    assert result.batch["text"].to_pylist() == ["\n".join(lines)]


def test_recipes_may_name_exactly_the_profiles_there_are() -> None:
    for name in EVERY_PROFILE:
        spec = QualitySpec.model_validate({"profile": name})
        assert STAGES["quality"](spec.model_dump()).options["profile"] == [name]
    with pytest.raises(ValueError, match="profile"):
        QualitySpec.model_validate({"profile": "fineweb"})


def test_texts_of_a_sliced_batch_are_those_of_the_slice() -> None:
    texts = ["", "x " * 60, "the of and " * 30]
    rows = list(range(3))
    batch = batch_from_columns(
        pa.array(texts, pa.large_string()), source="s", source_file="f", offsets=rows, lengths=rows
    )
    stage = Quality(QualityOptions(profile=("gopher@dolma-1.2",)))
    whole, part = stage.apply(batch).signals, stage.apply(batch.slice(1)).signals
    assert whole is not None
    assert part is not None
    assert whole.slice(1).to_pydict() == part.to_pydict()


def test_thresholds_name_the_column_that_each_rule_looks_at() -> None:
    profiles = ("c4@datatrove-0.10", "gopher@paper", "c4@paper", "gopher@dolma-1.2")
    stage = Quality(QualityOptions(profile=profiles))
    texts = ["One sentence stands here. Another one follows. " * 30, "short", "{", "# # # #"]
    measured = run(texts, *profiles).signals
    assert measured is not None
    columns = {threshold.signal for threshold in stage.thresholds.values()}
    assert columns <= set(measured.schema.names)
    assert any(column.endswith(".2") for column in columns)
