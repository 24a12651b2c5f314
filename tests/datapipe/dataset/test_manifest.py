from __future__ import annotations

import json
from typing import Any

import pytest

from datapipe.dataset import Dataset, Repository, canonical_json, sha256_hex
from datapipe.dataset.manifest import decode_manifest, encode_manifest
from datapipe.errors import DamagedError, DatasetError
from datapipe.testing import commit_small, small_draft

KEYS = [
    "codec", "conservation", "digests", "environment", "format", "licences", "operation",
    "parents", "recipe", "recipe_sha256", "sources", "tables", "token_dtype", "tokenizer", "totals",
]  # fmt: skip


DEEP = b'{"format":1,"recipe":' + b'{"a":' * 5000


def stored(dataset: Dataset) -> tuple[bytes, dict[str, Any]]:
    data = dataset.repository.store.get(f"_manifests/{dataset.manifest_sha256}.json")
    return data, json.loads(data)


def test_the_keys_of_the_format(dataset: Dataset) -> None:
    _, manifest = stored(dataset)
    assert sorted(manifest) == KEYS
    assert sorted(manifest["tables"]) == [
        "details", "dropped", "inputs", "quarantine", "shards", "signatures"
    ]  # fmt: skip
    assert sorted(manifest["tables"]["shards"][0]) == ["bytes", "logical_sha256", "rows", "sha256"]
    assert sorted(manifest["tokenizer"]) == [
        "backend", "canary", "eos_id", "files", "max_id", "sha256", "vocab_size", "vocabulary"
    ]  # fmt: skip
    assert sorted(manifest["digests"]) == ["content", "logical"]


def test_the_values_of_the_format(dataset: Dataset) -> None:
    _, manifest = stored(dataset)
    assert (manifest["format"], manifest["operation"], manifest["parents"]) == (1, "build", [])
    assert (manifest["token_dtype"], manifest["codec"]) == ("uint16", "raw")
    assert manifest["conservation"] == [
        {
            "source": "web",
            "kept": 3,
            "text_bytes": 30,
            "bytes_in": 1000,
            "blank_lines": 0,
            "dropped": {"dedup_exact.duplicate": 2},
            "quarantined": {"invalid_json": 1},
        },
        {
            "source": "books",
            "kept": 1,
            "text_bytes": 10,
            "bytes_in": 1000,
            "blank_lines": 0,
            "dropped": {},
            "quarantined": {},
        },
    ]
    assert manifest["totals"] == {
        "documents_in": 7,
        "kept": 4,
        "dropped": 2,
        "quarantined": 1,
        "num_shards": 3,
        "num_tokens": 21,
        "text_bytes": 40,
        "bytes_in": 2000,
    }


def test_it_is_canonical_and_named_by_its_digest(dataset: Dataset) -> None:
    data, manifest = stored(dataset)
    assert canonical_json(manifest) == data == encode_manifest(dataset.manifest)
    assert sha256_hex(data) == dataset.manifest_sha256
    assert manifest["recipe_sha256"] == sha256_hex(canonical_json(manifest["recipe"]))


def test_its_size_does_not_grow_with_shards(repo: Repository) -> None:
    sizes = []
    for version, num_shards in enumerate((2, 60)):
        draft = small_draft(repo, {"web": [[2, 3]] * num_shards}, parent=repo.latest())
        commit_small(repo, draft, transaction=str(version))
        sizes.append(len(stored(repo.open())[0]))
    assert sizes[1] < sizes[0] + 150  # some digits, and the parent's digest


def test_unknown_keys_are_ignored(dataset: Dataset) -> None:
    _, manifest = stored(dataset)
    manifest["later"] = {"tables": []}
    manifest["tables"]["index"] = []
    assert decode_manifest(json.dumps(manifest).encode(), path="m").sources == dataset.sources


def test_a_newer_format_is_refused(dataset: Dataset) -> None:
    _, manifest = stored(dataset)
    newer = json.dumps({"format": 2, "other": manifest}).encode()
    with pytest.raises(
        DatasetError, match=r"m has format 2: it was made by a newer datapipe.*upgrade"
    ) as caught:
        decode_manifest(newer, path="m")
    assert not isinstance(caught.value, DamagedError)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format", "1"),
        ("sources", [{}]),
        ("tables", {"shards": []}),
        ("recipe_sha256", "../../../etc/passwd"),
        ("codec", "zstd"),
        ("token_dtype", "int64"),
        ("parents", ["x"]),
    ],
)
def test_wrong_values_are_damage(dataset: Dataset, key: str, value: object) -> None:
    _, manifest = stored(dataset)
    data = json.dumps({**manifest, key: value}).encode()
    with pytest.raises(DamagedError, match="m isn't what a dataset has there"):
        decode_manifest(data, path="m")


@pytest.mark.parametrize("name", ["../../secret", "/etc/passwd", "", "a/../b"])
def test_file_names_that_leave_the_dataset_are_damage(dataset: Dataset, name: str) -> None:
    _, manifest = stored(dataset)
    manifest["tokenizer"]["files"] = {name: "0" * 64}
    with pytest.raises(DamagedError, match="can't be an object's path"):
        decode_manifest(json.dumps(manifest).encode(), path="m")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b"{}", DEEP])
def test_what_is_not_json_is_damage(data: bytes) -> None:
    with pytest.raises(DamagedError, match="m isn't what a dataset has there"):
        decode_manifest(data, path="m")
