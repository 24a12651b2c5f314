from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from datapipe.dataset import Dataset, open_dataset
from datapipe.testing import make_dataset


def _shards(sizes: list[int], *, seed: int) -> list[list[list[int]]]:
    """Documents of random ids, 1 to 40 tokens long, each closed by 0; a few in every shard."""
    rng = np.random.default_rng(seed)
    return [
        [[*rng.integers(1, 999, rng.integers(0, 40)).tolist(), 0] for _ in range(count)]
        for count in sizes
    ]


@pytest.fixture(scope="session")
def streamed(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A dataset of two training sources and a validation one; keep it as it is (`runs=`)."""
    sources = {
        "crawl": _shards([20, 7, 30, 12, 5], seed=1),
        "books": _shards([11, 25, 16], seed=2),
        "crawl@validation": _shards([9], seed=3),
    }
    return make_dataset(tmp_path_factory.mktemp("streamed") / "ds", sources)


@pytest.fixture
def own(streamed: Dataset, tmp_path: Path) -> Dataset:
    """A copy of `streamed` that a test may change."""
    shutil.copytree(streamed.url, tmp_path / "own")
    return open_dataset(str(tmp_path / "own"))
