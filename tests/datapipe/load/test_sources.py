from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from datapipe.dataset import Dataset
from datapipe.errors import TokenizerMismatchError, UsageError
from datapipe.load.arguments import check_mixture
from datapipe.load.sources import StreamSources, choose_sources, open_data
from datapipe.order import Phase
from datapipe.testing import make_dataset


def chosen(data: Any, *, split: str = "train", mixture: Any = None) -> StreamSources:
    return choose_sources(open_data(data), split=split, phases=check_mixture(mixture))


def test_sources_of_a_split_form_one_with_shards_numbered_through(streamed: Dataset) -> None:
    sources = chosen(streamed)
    assert [(s.name, s.num_shards) for s in sources.spec] == [("train", 8)]
    parts = [(part.source, part.num_shards) for part in sources.parts[0].parts]
    assert parts == [("crawl", 5), ("books", 3)]
    assert [sources.parts[0].split(shard)[1] for shard in range(8)] == [0, 1, 2, 3, 4, 0, 1, 2]


def test_a_single_source_keeps_its_name_and_order_digest(streamed: Dataset) -> None:
    (source,) = chosen(streamed.url, split="validation").spec
    summary = streamed.sources[2]
    assert (source.name, source.order_digest) == ("crawl@validation", summary.order_digest)


def test_sources_of_several_datasets_are_named_with_theirs(streamed: Dataset) -> None:
    data = {"a": streamed, "b": streamed}
    sources = chosen(data, mixture={"b/books": 1, "a/crawl": 2})
    assert [s.name for s in sources.spec] == ["a/crawl", "b/books"]
    assert [s.parts[0].dataset for s in sources.parts] == [0, 1]


def test_a_source_added_in_a_later_phase_comes_last(streamed: Dataset) -> None:
    phases = [Phase(0, {"crawl": 1}), Phase(100, {"books": 1, "crawl": 1})]
    assert [s.name for s in chosen(streamed, mixture=phases).spec] == ["crawl", "books"]


def test_weights_in_another_order_are_the_same_mixture(streamed: Dataset) -> None:
    one = chosen(streamed, mixture={"crawl": 1, "books": 2})
    assert one == chosen(streamed, mixture={"books": 2, "crawl": 1})


@pytest.mark.parametrize(
    ("split", "mixture", "error", "match"),
    [
        pytest.param("test", None, UsageError, "splits are train, validation", id="no split"),
        pytest.param(
            "train", {"crwal": 1}, UsageError, r"no such source.*mean crawl\?", id="no source"
        ),
        pytest.param(
            "train", {"crawl@validation": 1}, UsageError, "isn't in split 'train'", id="other split"
        ),
    ],
)
def test_what_is_not_there_is_named(
    streamed: Dataset, split: str, mixture: Any, error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        chosen(streamed, split=split, mixture=mixture)


def test_who_asks_for_a_split_hears_how_to_keep_validation_data_apart(streamed: Dataset) -> None:
    what = r"builds no splits.*source of its own.*mixture=\{'SOURCE': 1.0\}.*dataset of its own"
    with pytest.raises(UsageError, match=what):
        chosen(streamed, split="test")


def test_a_dataset_without_tokens_is_called_so(tmp_path: Path) -> None:
    empty = make_dataset(tmp_path / "empty", {"crawl": []})
    with pytest.raises(UsageError, match=r"empty holds no tokens: there is nothing to stream"):
        chosen(empty)


def test_datasets_of_one_name_are_refused(streamed: Dataset) -> None:
    with pytest.raises(UsageError, match="two datasets are named ds"):
        open_data([streamed, streamed])


def test_no_dataset_is_refused() -> None:
    with pytest.raises(UsageError, match="no dataset"):
        open_data([])


def test_datasets_of_two_tokenizers_are_refused(streamed: Dataset, tmp_path: Path) -> None:
    other = make_dataset(tmp_path, {"crawl": [[[5, 0]]]}, vocabulary="ef" * 32)
    with pytest.raises(TokenizerMismatchError, match="one id would mean two things"):
        open_data({"a": streamed, "b": other})
