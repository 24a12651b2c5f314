from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from datapipe.dataset import Dataset, Repository
from datapipe.errors import DamagedError, UnknownReferenceError, UsageError
from datapipe.lineage import documents_of_batch, read_documents, read_sample
from datapipe.load import TokenStream
from datapipe.testing import commit_small, make_dataset, small_draft
from datapipe_tokenizers import Tokenizer, load

TEXTS = ["the quick brown fox", "jumps over", "a lazy dog while seven wizards", "mix potions 0123"]


@pytest.fixture(scope="module")
def tokenizer(tokenizer_path: Path) -> Tokenizer:
    return load(tokenizer_path)


@pytest.fixture
def dataset(tokenizer: Tokenizer, tmp_path: Path) -> Dataset:
    documents = [[*tokenizer.encode_batch([text])[0], tokenizer.eos_id] for text in TEXTS]
    return make_dataset(
        tmp_path / "ds",
        {"web": [documents[:2], documents[2:3]], "books": [documents[3:]]},
        max_id=tokenizer.max_id,
        eos_id=tokenizer.eos_id,
        tokenizer_files=tokenizer.files,
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({}, TEXTS[:1], id="first"),
        pytest.param({"head": 3}, TEXTS[:3], id="head"),
        pytest.param({"head": 99}, TEXTS, id="all"),
        pytest.param({"head": 0}, [], id="none"),
        pytest.param({"source": "books"}, TEXTS[3:], id="source"),
        pytest.param({"doc": "web-1-0"}, TEXTS[2:3], id="record id"),
    ],
)
def test_texts_come_back_as_they_were(
    dataset: Dataset, options: dict[str, Any], expected: list[str]
) -> None:
    documents = read_documents(dataset, **options)
    assert [document["text"] for document in documents] == expected


def test_a_document_says_where_it_is_from(dataset: Dataset) -> None:
    (document,) = read_documents(dataset.url, doc="web-0-1")
    (again,) = read_documents(dataset, doc=document["doc_id"])
    assert document == again
    assert document["source"] == "web"
    assert document["source_file"] == "web.jsonl"
    assert document["source_offset"] == 100
    assert document["record_id"] == "web-0-1"


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        pytest.param({"doc": "web-7"}, UnknownReferenceError, "no document", id="document"),
        pytest.param({"source": "wbe"}, UnknownReferenceError, "no source 'wbe'", id="source"),
        pytest.param({"head": -1}, UsageError, "head=-1", id="head"),
        pytest.param(
            {"doc": "web-0-0", "source": "books"}, UnknownReferenceError, "no document", id="other"
        ),
    ],
)
def test_what_is_not_there_is_named(
    dataset: Dataset, options: dict[str, Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        read_documents(dataset, **options)


def test_a_record_id_of_several_documents_is_ambiguous(tmp_path: Path) -> None:
    repository = Repository(str(tmp_path / "small"))
    repository.create()
    commit_small(repository, small_draft(repository, {"web": [[3, 4]], "books": [[9, 2]]}))
    with pytest.raises(
        UnknownReferenceError, match=r"several documents have the record id r1: .*books"
    ):
        read_documents(repository.open(), doc="r1")


def test_a_dropped_document_says_why(tmp_path: Path) -> None:
    repository = Repository(str(tmp_path / "small"))
    repository.create()
    commit_small(repository, small_draft(repository, {"web": [[3, 4]]}, dropped=1))
    dataset = repository.open()
    doc_id = dataset.dropped()["doc_id"][0].as_py().hex()
    with pytest.raises(UnknownReferenceError, match="stage dedup_exact removed it by rule dup"):
        read_documents(dataset, doc=doc_id)


def test_no_text_is_shown_of_a_damaged_block(dataset: Dataset) -> None:
    digest = dataset.shards("web").stored_sha256[0]
    path = Path(dataset.url) / "tokens" / digest[:2] / f"{digest}.bin"
    path.chmod(0o644)
    path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(DamagedError, match=r"shard 0 of web .*block 0"):
        read_documents(dataset)


def test_a_sample_is_read_back_with_its_text(dataset: Dataset, tokenizer: Tokenizer) -> None:
    made = TokenStream(dataset, seq_len=4, batch_size=2, run="r")
    for number, batch in enumerate(made):
        for row, sample in enumerate(documents_of_batch(dataset, run="r", batch=number).samples):
            read = read_sample(dataset, sample.sample, run="r")
            real = batch["labels"][row] != -100
            assert read["token_ids"][1:] == batch["labels"][row][real].tolist()
            assert read["text"] == tokenizer.decode(read["token_ids"])
            assert {**sample.to_json(), "run": "r"} == {
                name: value for name, value in read.items() if name not in ("token_ids", "text")
            }


@pytest.mark.parametrize("sample", [-1, 4, 10_000])
def test_samples_that_a_run_does_not_deliver_are_refused(dataset: Dataset, sample: int) -> None:
    made = TokenStream(dataset, seq_len=4, batch_size=2, run="r")
    batches = iter(made)
    next(batches)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    with pytest.raises(UnknownReferenceError, match=f"delivers no sample {sample}"):
        read_sample(dataset, sample, run="r")
