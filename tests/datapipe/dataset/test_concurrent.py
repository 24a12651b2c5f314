"""Many processes append at once: every append is a version, and no row is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from datapipe.dataset import Dataset, Repository, log_entries, verify_dataset

APPENDER = """
import sys
from datapipe.dataset import Repository
from datapipe.testing import commit_small, small_draft
url, name, count = sys.argv[1:]
repo = Repository(url)
for number in range(int(count)):
    file = f"{name}-{number}.jsonl"
    draft = small_draft(
        repo, {"web": [[2, 3]], name: [[4]]}, parent=repo.open(), operation="append", file=file,
        seed=1000 * int(name[1:]) + number,
    )
    commit_small(repo, draft, author=name, transaction=f"{name}-{number}")
"""


@pytest.mark.parametrize(
    ("processes", "appends"),
    [(4, 5), pytest.param(8, 20, marks=pytest.mark.slow)],
    ids=["4x5", "8x20"],
)
def test_every_append_of_many_processes_is_a_version(
    dataset: Dataset, processes: int, appends: int
) -> None:
    url, total = dataset.url, processes * appends
    names = [f"p{number}" for number in range(processes)]
    command = [sys.executable, "-c", APPENDER, url]
    running = [subprocess.Popen([*command, name, str(appends)]) for name in names]
    assert [process.wait() for process in running] == [0] * processes
    entries = log_entries(Repository(url))
    assert [entry.version for entry in entries] == list(range(1, total + 2))
    latest = Repository(url).open()
    assert latest.manifest.totals.kept == 4 + 3 * total
    files = latest.inputs()["file"].to_pylist()
    assert {f"{n}-{k}.jsonl" for n in names for k in range(appends)} <= set(files)
    shards = latest.shards("web")
    assert len(shards) == 2 + total
    assert len(set(shards.docmap_sha256)) == 2 + total
    assert verify_dataset(latest).problems == []
    assert list((Path(url) / "_transactions").glob("*")) == []
