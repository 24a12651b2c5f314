from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from datapipe.dataset import Dataset, index_dataset, layout
from datapipe.errors import DamagedError, UnknownReferenceError
from datapipe.lineage.lookup import DocumentAt, find_document, unknown_document
from datapipe.testing import make_dataset
from tiering.store import LocalFiles, ViewFile


class Heard:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.total, self.done, self.phases, self.ended = 0, 0, 0, 0

    def begin(self, phase: str, total: int, unit: str) -> None:
        assert (phase, unit) == ("look up", "documents")
        self.total, self.done = total, 0
        self.phases += 1

    def advance(self, amount: int) -> None:
        self.done += amount

    def end(self) -> None:
        self.ended += 1

    def note(self, message: str) -> None:
        raise AssertionError(message)


def places(dataset: Dataset) -> dict[str, DocumentAt]:
    """The place of each document by doc_id and by record id."""
    found = {}
    for source in dataset.sources:
        for number in range(source.num_shards):
            for row, values in enumerate(dataset.docmap(source.name, number).to_pylist()):
                at = DocumentAt(source.name, number, row)
                found[values["doc_id"].hex()] = found[values["record_id"]] = at
    return found


def test_every_document_is_found_by_both_ids(streamed: Dataset) -> None:
    expected = places(streamed)
    assert len(expected) == 2 * sum(source.num_documents for source in streamed.sources)
    for document in sorted(expected)[::7]:
        assert find_document(streamed, document) == expected[document]


def test_an_index_finds_the_same_documents_without_looking_through(own: Dataset) -> None:
    expected = places(own)
    index_dataset(own.repository, ["doc"], time_seconds=1.0)
    indexed, heard = own.repository.open(), Heard()
    for document in sorted(expected)[::7]:
        if len(document) == 32:
            at = find_document(indexed, document, progress=heard)
            assert at == expected[document]
            assert find_document(indexed, document, source=at.source) == at
    assert heard.phases == 0
    other = next(doc for doc, at in expected.items() if len(doc) == 32 and at.source != "books")
    assert find_document(indexed, other, source="books") is None
    with pytest.raises(UnknownReferenceError, match="no source 'nix'"):
        find_document(indexed, other, source="nix")


@pytest.mark.parametrize("document", ["", "f" * 32, "F" * 31, "nobody", "zz", "\n", "crawl-1"])
def test_what_is_not_there_is_not_found(streamed: Dataset, document: str) -> None:
    assert find_document(streamed, document) is None
    message = str(unknown_document(streamed, document))
    assert "no document of" in message
    assert "\n" not in message


def test_a_source_can_be_asked_for_alone(streamed: Dataset) -> None:
    assert find_document(streamed, "crawl-1-2", source="books") is None
    assert find_document(streamed, "crawl-1-2", source="crawl") == DocumentAt("crawl", 1, 2)
    with pytest.raises(UnknownReferenceError, match="crawls"):
        find_document(streamed, "crawl-1-2", source="crawls")


def test_a_doc_id_ends_the_search_where_it_is(
    streamed: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datapipe.lineage.lookup.os.cpu_count", lambda: 1)
    monkeypatch.setattr("datapipe.lineage.lookup._SHARDS_A_THREAD", 1)
    opened: list[str] = []
    plain = LocalFiles.open

    def noted(self: LocalFiles, path: str) -> Any:
        opened.append(path)
        return plain(self, path)

    monkeypatch.setattr(LocalFiles, "open", noted)
    doc_id = streamed.docmap("crawl", 2)["doc_id"][3].as_py().hex()
    assert find_document(streamed, doc_id) == DocumentAt("crawl", 2, 3)
    digests = streamed.shards("crawl").docmap_sha256
    assert opened == [layout.docmap_path(digests[number]) for number in range(3)]


def test_only_one_column_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = make_dataset(tmp_path / "ds", {"web": [[[0]] * 20_000]})
    size = (tmp_path / "ds" / layout.docmap_path(dataset.shards("web").docmap_sha256[0])).stat()
    read: list[int] = []

    class Noted(ViewFile):
        def readinto(self, buffer: Any, /) -> int:
            read.append(super().readinto(buffer))
            return read[-1]

    monkeypatch.setattr("datapipe.lineage.lookup.ViewFile", Noted)
    doc_id = dataset.docmap("web", 0)["doc_id"][19_999].as_py().hex()
    assert find_document(dataset, doc_id) == DocumentAt("web", 0, 19_999)
    assert 20_000 * 16 <= sum(read) < 0.7 * size.st_size


def test_progress_is_heard_of_in_documents(streamed: Dataset) -> None:
    heard = Heard()
    find_document(streamed, "e" * 32, progress=heard)
    num_documents = sum(source.num_documents for source in streamed.sources)
    assert (heard.total, heard.done) == (num_documents, num_documents)
    assert heard.phases == heard.ended == 2  # by doc_id, then by record id
    found = Heard()
    find_document(streamed, streamed.docmap("crawl", 0)["doc_id"][0].as_py().hex(), progress=found)
    assert found.phases == found.ended == 1


@pytest.mark.parametrize("damage", [b"", b"PAR1", None], ids=["empty", "no Parquet", "missing"])
def test_a_docmap_that_cannot_be_read_is_damage(own: Dataset, damage: bytes | None) -> None:
    path = Path(own.url) / layout.docmap_path(own.shards("books").docmap_sha256[1])
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    with pytest.raises(DamagedError, match=path.name):
        find_document(own, "e" * 32)
