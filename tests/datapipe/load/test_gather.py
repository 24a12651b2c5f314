"""Shards that aren't what the dataset says, and descriptors that are few."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from datapipe.dataset import Dataset
from datapipe.errors import DamagedError, LoadError
from datapipe.load import TokenStream
from datapipe.load import shard_files as shard_files_module
from datapipe.load.shard_files import ShardFiles
from datapipe.load.shard_index import ShardIndex
from datapipe.load.sources import choose_sources, open_data


def stream(dataset: Dataset, **options: Any) -> TokenStream:
    return TokenStream(dataset, **{"seq_len": 16, "batch_size": 4, **options})


def shard_path(dataset: Dataset, source: str = "crawl", number: int = 2) -> Path:
    digest = dataset.shards(source).stored_sha256[number]
    path = Path(dataset.url) / "tokens" / digest[:2] / f"{digest}.bin"
    path.chmod(0o644)
    return path


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize(
    ("damage", "match"),
    [
        pytest.param(flip, r"shard 2 of crawl .*block 0 .*xxh3 \w{16}, \w{16} expected", id="flip"),
        pytest.param(cut, r"shard 2 of crawl .*578 bytes, 1156 expected", id="cut"),
        pytest.param(Path.unlink, r"shard 2 of crawl .*missing", id="missing"),
    ],
)
def test_a_damaged_shard_stops_the_stream_and_is_named(
    own: Dataset, damage: Any, match: str
) -> None:
    path = shard_path(own)
    damage(path)
    with pytest.raises(DamagedError, match=match) as caught:
        list(stream(own))
    assert own.shards("crawl").raw_sha256[2][:16] in str(caught.value)


def test_no_token_of_a_damaged_shard_is_delivered(own: Dataset, streamed: Dataset) -> None:
    flip(shard_path(own))
    whole = [batch["input_ids"].tolist() for batch in stream(streamed, batch_size=1)]
    delivered: list[Any] = []
    with pytest.raises(DamagedError):
        delivered.extend(batch["input_ids"].tolist() for batch in stream(own, batch_size=1))
    assert delivered == whole[: len(delivered)]
    assert len(delivered) < len(whole)


def test_a_shard_cut_while_it_is_open_is_noticed(own: Dataset) -> None:
    batches = iter(stream(own, batch_size=1, window_shards=8, epochs=3))
    for _ in range(174):
        next(batches)
    cut(shard_path(own))
    with pytest.raises(DamagedError, match=r"shard 2 of crawl .* is cut: .* bytes read at byte"):
        list(batches)


class Failing:
    """A view that isn't a local file; fails if told to."""

    def __init__(self, view: Any, error: OSError | None) -> None:
        self._view, self._error, self.size = view, error, view.size

    def fileno(self) -> None:
        return None

    def read_into(self, buffer: memoryview, offset: int) -> int:
        if self._error is not None:
            raise self._error
        count: int = self._view.read_into(buffer, offset)
        return count

    def close(self) -> None:
        self._view.close()


def test_shards_that_are_no_local_files_are_read_through_their_views(
    streamed: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [batch["labels"].tolist() for batch in stream(streamed)]
    opened = Dataset.open_shard
    monkeypatch.setattr(Dataset, "open_shard", lambda *key: Failing(opened(*key), None))
    assert [batch["labels"].tolist() for batch in stream(streamed)] == expected


def test_a_read_that_fails_is_a_load_error(
    streamed: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "preadv", fail)
    with pytest.raises(LoadError, match=r"Input/output error.*resume from its last state"):
        next(iter(stream(streamed)))


# -- descriptors


@pytest.fixture
def index(streamed: Dataset) -> ShardIndex:
    sources = choose_sources(open_data(streamed), split="train", phases=None)
    return ShardIndex(sources.parts, datasets=[streamed])


@pytest.fixture
def files(index: ShardIndex) -> Iterator[ShardFiles]:
    made = ShardFiles(index, max_open=3)
    yield made
    made.close()


def test_no_more_shards_are_open_than_allowed(files: ShardFiles) -> None:
    for shard in [0, 1, 2, 3, 0, 4, 5]:
        (descriptor,) = files.descriptors(np.array([shard]))
        assert os.fstat(descriptor).st_size == files.view(shard).size
        assert len(files._views) <= 3


def test_the_shard_used_longest_ago_is_closed_first(files: ShardFiles) -> None:
    for shard in [0, 1, 2, 0, 3]:
        files.descriptors(np.array([shard]))
    assert sorted(files._views) == [0, 2, 3]


def test_a_batch_of_more_shards_than_allowed_is_served(files: ShardFiles) -> None:
    descriptors = files.descriptors(np.array([7, 1, 2, 3, 1]))
    assert len(set(descriptors)) == 4
    files.descriptors(np.array([0]))
    assert len(files._views) <= 3


def open_files(dataset: Dataset) -> int:
    links = (link for link in Path("/proc/self/fd").iterdir() if link.is_symlink())
    return sum(str(link.readlink()).startswith(dataset.url) for link in links)


def test_a_stream_keeps_few_files_open_and_closes_them(
    own: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_files_module, "DEFAULT_MAX_OPEN", 2)
    batches = iter(stream(own, batch_size=3))
    for _ in range(50):
        next(batches)
        assert 1 <= open_files(own) <= 3
    batches.close()  # type: ignore[attr-defined]
    assert open_files(own) == 0
