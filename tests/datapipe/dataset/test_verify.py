from __future__ import annotations

import dataclasses
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from datapipe.dataset import (
    Dataset,
    Repository,
    ShardRecord,
    SigningKey,
    hold_version,
    layout,
    log_entries,
    retire_versions,
    set_tag,
    sign_version,
    verify_dataset,
)
from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.keep import list_holds
from datapipe.dataset.log import read_entry
from datapipe.dataset.shards import Tokens
from datapipe.dataset.signing.envelope import seal_envelope
from datapipe.dataset.signing.statement import describe_version
from datapipe.dataset.verify.shards import look_at_block
from datapipe.errors import DamagedError
from datapipe.testing import commit_small, small_docmap, small_draft, small_tokens
from tiering.errors import StoreError
from tiering.store import Mode
from tiering.testing import FaultyStore

Damage = Callable[[Path, random.Random], None]


def flip(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def truncate(path: Path, rng: random.Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: rng.randrange(len(data))])


def lengthen(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes() + rng.randbytes(3))


def delete(path: Path, rng: random.Random) -> None:  # noqa: ARG001 (a Damage)
    path.unlink()


def swap(path: Path, rng: random.Random) -> None:
    """Exchanges it with another object of its kind, or any where there is none."""
    root = next(p for p in path.parents if (p / "format.json").exists())
    mine = path.read_bytes()
    others = [p for p in objects(root) if p.read_bytes() != mine]
    near = [p for p in others if kind(root, p) == kind(root, path)]
    other = rng.choice(near or others)
    path.write_bytes(other.read_bytes())
    other.write_bytes(mine)


def kind(root: Path, path: Path) -> tuple[str, ...]:
    folders = path.relative_to(root).parent.parts
    return (*(name for name in folders if len(name) > 2), path.suffix)


def objects(root: Path) -> list[Path]:
    found = (p for p in root.rglob("*") if p.is_file() and ".tiering" not in p.parts)
    return sorted(p for p in found if p.name != "HINT")


DAMAGES: list[Damage] = [flip, truncate, lengthen, delete, swap]


@pytest.fixture(scope="session")
def referred(templates: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions with tags, holds, signatures, and one given up."""
    root = tmp_path_factory.mktemp("referred") / "dataset"
    repo = Repository(str(shutil.copytree(templates / "2", root)))
    words: dict[str, Any] = {"author": "ada", "reason": "why", "time_seconds": 1.0}
    keys = [SigningKey.generate(), SigningKey.generate()]
    for version in (repo.open(1), repo.open(2)):
        set_tag(version, "prod", **words)
        set_tag(version, f"release-{version.version}", **words)
        hold_version(version, **words)
        for key in keys:
            sign_version(version, key)
    retire_versions(repo.store, log_entries(repo)[:1], **words)
    return root


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_any_single_damaged_object_is_named(referred: Path, tmp_path: Path, damage: Damage) -> None:
    root = Path(shutil.copytree(referred, tmp_path / "dataset"))
    appended = Repository(str(root)).open()
    sound = {path: path.read_bytes() for path in objects(root)}
    assert len(sound) > 25
    for seed, path in enumerate(sound):
        damage(path, random.Random(seed))
        problems = verify_dataset(appended, workers=1).problems
        name = str(path.relative_to(root))
        assert any(problem.startswith(name) for problem in problems), (name, problems)
        for changed, data in sound.items():
            changed.write_bytes(data)


@pytest.fixture(scope="session")
def damageable(referred: Path, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Version 2 of a dataset that is restored after each damage."""
    root = tmp_path_factory.mktemp("damageable") / "dataset"
    return Repository(str(shutil.copytree(referred, root))).open()


@st.composite
def damaged_bytes(draw: st.DrawFn, data: bytes) -> bytes | None:
    """Other bytes than `data`, or None: no object."""
    place = draw(st.integers(0, len(data) - 1))
    flipped = bytes([data[place] ^ draw(st.integers(1, 255))])
    return draw(
        st.sampled_from(
            [
                None,
                data[:place],
                data[:place] + flipped + data[place + 1 :],
                data[:place] + data[place + 1 :],
                data + draw(st.binary(min_size=1, max_size=9)),
                data + data,
            ]
        )
    )


@given(data=st.data())
@settings(max_examples=60)
def test_whatever_is_damaged_is_named(damageable: Dataset, data: st.DataObject) -> None:
    root = Path(damageable.url)
    path = data.draw(st.sampled_from(objects(root)))
    sound = path.read_bytes()
    changed = data.draw(damaged_bytes(sound))
    path.unlink() if changed is None else path.write_bytes(changed)
    try:
        problems = verify_dataset(damageable, workers=1).problems
    finally:
        path.write_bytes(sound)
    assert any(problem.startswith(str(path.relative_to(root))) for problem in problems), problems


@given(data=st.data())
@settings(max_examples=30)
def test_two_exchanged_objects_are_both_named(damageable: Dataset, data: st.DataObject) -> None:
    root = Path(damageable.url)
    first = data.draw(st.sampled_from(objects(root)))
    sound = first.read_bytes()
    like = [p for p in objects(root) if kind(root, p) == kind(root, first)]
    second = data.draw(st.sampled_from(like))
    other = second.read_bytes()
    assume(other != sound)
    first.write_bytes(other)
    second.write_bytes(sound)
    try:
        problems = verify_dataset(damageable, workers=1).problems
    finally:
        first.write_bytes(sound)
        second.write_bytes(other)
    for path in (first, second):
        assert any(problem.startswith(str(path.relative_to(root))) for problem in problems)


def test_a_sound_dataset_with_references_has_no_problems(referred: Path) -> None:
    report = verify_dataset(Repository(str(referred)).open())
    assert report.problems == []
    assert report.objects == len(objects(referred))


def test_a_sound_version_has_no_problems(appended: Dataset, dataset: Dataset) -> None:
    for version in (dataset, appended):
        report = verify_dataset(version)
        assert report.problems == []
    stored = [p for p in objects(Path(appended.url)) if ".tiering" not in p.parts]
    assert report.objects == len(stored)
    assert report.bytes > 10_000


def test_a_damaged_block_is_named(repo: Repository) -> None:
    lengths = [1 << 19, 1 << 19, 1 << 19, 7]
    commit_small(repo, small_draft(repo, {"web": [lengths]}))
    dataset = repo.open()
    path = layout.tokens_path(dataset.shards("web").stored_sha256[0])
    data = bytearray((Path(repo.url) / path).read_bytes())
    data[(2 << 20) + 5] ^= 1
    (Path(repo.url) / path).write_bytes(data)
    (problem,) = verify_dataset(dataset).problems
    assert problem.startswith(f"{path}: SHA-256 ")
    assert "blocks of 1 MiB that differ: 2 (shard 0 of web)" in problem


@pytest.mark.parametrize("hint", [b"7", b"x", b""], ids=repr)
def test_a_hint_that_can_not_be_is_named(appended: Dataset, hint: bytes) -> None:
    (Path(appended.url) / "_log/HINT").write_bytes(hint)
    (problem,) = verify_dataset(appended).problems
    assert problem.startswith("_log/HINT: it ")


@pytest.mark.parametrize("hint", [b"1", None], ids=repr)
def test_a_stale_or_absent_hint_is_no_problem(appended: Dataset, hint: bytes | None) -> None:
    path = Path(appended.url) / "_log/HINT"
    path.unlink() if hint is None else path.write_bytes(hint)
    assert verify_dataset(appended).problems == []


def test_an_old_version_is_checked_as_it_was(dataset: Dataset, appended: Dataset) -> None:
    path = layout.tokens_path(appended.shards("code").stored_sha256[0])
    (Path(appended.url) / path).unlink()
    assert verify_dataset(dataset).problems == []
    assert len(verify_dataset(appended).problems) == 1


def test_an_unreadable_store_is_reported(dataset: Dataset) -> None:
    def fault(verb: str, path: str) -> Exception | None:
        return StoreError("broken disk") if verb == "open" and path.startswith("tokens") else None

    store = FaultyStore(dataset.repository.store, fault=fault)
    problems = verify_dataset(Repository.over(store).open()).problems
    assert len(problems) == 3
    assert all("it can't be read: broken disk" in problem for problem in problems)


@pytest.mark.parametrize(("sample", "shards"), [(0.0, 0), (1.0, 40)])
def test_sampling_reads_a_part_of_the_shards(repo: Repository, sample: float, shards: int) -> None:
    commit_small(repo, small_draft(repo, {"web": [[2, n] for n in range(1, 41)]}))
    dataset = repo.open()
    whole = verify_dataset(dataset).objects
    assert verify_dataset(dataset, sample=sample).objects == whole - 2 * (40 - shards)
    assert whole - 80 < verify_dataset(dataset, sample=0.5).objects < whole


def test_a_sample_is_a_fraction(dataset: Dataset) -> None:
    with pytest.raises(ValueError, match="sample is 5"):
        verify_dataset(dataset, sample=5)


def test_progress_hears_of_shards(dataset: Dataset) -> None:
    heard: list[tuple[Any, ...]] = []

    class Listener:
        def begin(self, phase: str, total: int, unit: str) -> None:
            heard.append((phase, total, unit))

        def advance(self, amount: int) -> None:
            heard.append((amount,))

        def end(self) -> None:
            heard.append(("end",))

        def note(self, message: str) -> None: ...

    verify_dataset(dataset, progress=Listener())
    assert heard[0] == ("verify", 42, "bytes")
    assert sum(step[0] for step in heard[1:-1]) == 42
    assert heard[-1] == ("end",)


# -- what digests can't see: a writer that was wrong


def written(
    repo: Repository,
    tokens: Tokens,
    docmap: pa.Table,
    *,
    recipe: dict[str, Any] | None = None,
    **changes: Any,
) -> list[str]:
    """Commits one shard as it is given, and returns what verification says."""
    record = repo.write_shard(tokens, source="web", number=0, docmap=docmap, text_bytes=20)
    draft = small_draft(repo, {"web": [[3, 4]]}, recipe=recipe)
    commit_small(repo, dataclasses.replace(draft, shards=[dataclasses.replace(record, **changes)]))
    return verify_dataset(repo.open()).problems


TOKENS = small_tokens([3, 4])
DOCUMENTS = small_docmap([3, 4], source="web")


def with_token(position: int, token: int) -> Tokens:
    tokens = TOKENS.copy()
    tokens[position] = token
    return tokens


@pytest.mark.parametrize(
    ("position", "token", "expected"),
    [
        (1, 0, "end-of-document token 0 stands 3 times, it must close each of 2"),
        (6, 5, "end-of-document token 0 stands 1 times, it must close each of 2"),
        (1, 1000, "it holds id 1000, the tokenizer's largest is 999"),
    ],
    ids=["inside", "not closed", "beyond the vocabulary"],
)
def test_wrong_ids_are_found(repo: Repository, position: int, token: int, expected: str) -> None:
    (problem,) = written(repo, with_token(position, token), DOCUMENTS)
    assert expected in problem
    assert problem.startswith("tokens/")


@given(data=st.data())
@settings(max_examples=100)
def test_ends_are_counted_wherever_they_stand(data: st.DataObject) -> None:
    dtype: np.dtype[Any] = data.draw(st.sampled_from([np.dtype("<u2"), np.dtype("<u4")]))
    tokens = np.array(data.draw(st.lists(st.integers(0, 6), max_size=12)), dtype=dtype)
    eos_id = data.draw(st.integers(0, 7))
    places = st.lists(st.integers(0, len(tokens) - 1), max_size=6) if len(tokens) else st.just([])
    ends = np.array(sorted(data.draw(places)), dtype=np.int64)
    before = tokens.copy()
    found = look_at_block(tokens, ends, eos_id=eos_id)
    assert found.num_ends == before.tolist().count(eos_id)
    assert found.num_closed == before[ends].tolist().count(eos_id)
    assert found.max_id == max(before.tolist(), default=0)
    assert tokens.tolist() == before.tolist()


def test_a_recipe_without_end_tokens_is_not_asked_for_them(repo: Repository) -> None:
    recipe = {"tokenize": {"append_eos": False}}
    assert written(repo, with_token(6, 5), DOCUMENTS, recipe=recipe) == []


def test_a_wrong_doc_id_is_found(repo: Repository) -> None:
    docmap = small_docmap([3, 4], source="other")
    (problem,) = written(repo, TOKENS, docmap)
    assert problem.startswith("docmap/")
    assert "2 rows have a doc_id that isn't the hash of their origin" in problem


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"docmap_logical_sha256": "0" * 64}, "the digest of its rows is"),
        ({"block_checksums": (7,)}, "the details table has other checksums for blocks 0"),
        ({"block_checksums": ()}, "doesn't have shard 0 of web where it must be"),
    ],
    ids=["row digest", "checksum", "no checksum"],
)
def test_wrong_details_are_found(repo: Repository, changes: dict[str, Any], expected: str) -> None:
    problems = written(repo, TOKENS, DOCUMENTS, **changes)
    assert any(expected in problem for problem in problems)


def test_a_docmap_of_another_shard_is_found(repo: Repository) -> None:
    other: ShardRecord = repo.write_shard(
        small_tokens([5, 4]),
        source="web",
        number=0,
        docmap=small_docmap([5, 4], source="web"),
        text_bytes=20,
    )
    changes: dict[str, Any] = {
        "docmap_sha256": other.docmap_sha256,
        "docmap_logical_sha256": other.docmap_logical_sha256,
    }
    problems = written(repo, TOKENS, DOCUMENTS, **changes)
    assert any("the tokens it covers is 9, 7 expected" in problem for problem in problems)


def test_wrong_numbers_in_a_manifest_are_found(dataset: Dataset) -> None:
    manifest = dataset.manifest
    zero = "0" * 64
    changes: list[tuple[dict[str, Any], str]] = [
        ({"recipe_sha256": zero}, "recipe_sha256 is 000"),
        ({"totals": msgspec.structs.replace(manifest.totals, kept=9)}, "totals is Totals"),
        ({"token_dtype": "uint32"}, "token_dtype is uint32, uint16 expected"),
        ({"conservation": manifest.conservation[:1]}, "conservation's sources is"),
        (
            {"digests": msgspec.structs.replace(manifest.digests, content=zero)},
            "content digest is 000",
        ),
        (
            {"digests": msgspec.structs.replace(manifest.digests, logical=zero)},
            "logical digest is 000",
        ),
        (
            {"tokenizer": msgspec.structs.replace(manifest.tokenizer, sha256=zero)},
            "the digest of the tokenizer's files is 000",
        ),
    ]
    for change, expected in changes:
        wrong = Dataset(
            repository=dataset.repository,
            version=1,
            manifest=msgspec.structs.replace(manifest, **change),
            manifest_sha256=dataset.manifest_sha256,
        )
        assert expected in " ".join(verify_dataset(wrong, workers=1).problems)


def test_rows_against_the_conservation_table(dataset: Dataset) -> None:
    web, books = dataset.manifest.conservation
    web = msgspec.structs.replace(web, dropped={"a.b": 2}, quarantined={"invalid_json": 3})
    wrong = Dataset(
        repository=dataset.repository,
        version=1,
        manifest=msgspec.structs.replace(dataset.manifest, conservation=(web, books)),
        manifest_sha256=dataset.manifest_sha256,
    )
    text = " ".join(verify_dataset(wrong, workers=1).problems)
    assert "rows in table dropped of web: a.b: 2 counted, 0 written" in text
    assert "rows in table quarantine of web: invalid_json: 3 counted, 1 written" in text


def test_tokens_are_read_in_blocks_of_whole_ids(repo: Repository) -> None:
    lengths = [(1 << 19) + 3, (1 << 18) + 1]
    tokens = small_tokens(lengths)
    assert np.count_nonzero(tokens == 0) == 2
    commit_small(repo, small_draft(repo, {"web": [lengths]}))
    assert verify_dataset(repo.open()).problems == []


@pytest.mark.parametrize(
    ("change", "match"),
    [
        pytest.param({}, None, id="sound"),
        pytest.param({"moves": 7}, "isn't what a tag has there", id="no moves"),
        pytest.param({"manifest": "0" * 64}, "the manifest of version 1 is 0000", id="other"),
        pytest.param({"version": 9}, "00000000000000000009.json is missing", id="no version"),
    ],
)
def test_a_damaged_tag_is_named(dataset: Dataset, change: dict[str, Any], match: str) -> None:
    set_tag(dataset, "prod", author="ada", reason="", time_seconds=1.0)
    path = Path(dataset.url) / "_refs/tags/prod.json"
    tag = msgspec.json.decode(path.read_bytes())
    if "moves" in change:
        tag.update(change)
    else:
        tag["moves"][0].update(change)
    path.write_bytes(msgspec.json.encode(tag))
    problems = verify_dataset(dataset).problems
    assert any(match in problem for problem in problems) if match else problems == []


@pytest.mark.parametrize("name", ["holds/00000000000000000001.json", "retired.json"])
def test_damaged_holds_and_retirements_are_named(dataset: Dataset, name: str) -> None:
    path = Path(dataset.url) / "_refs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b'{"format":1}')
    problems = verify_dataset(dataset).problems
    assert f"_refs/{name} isn't what a dataset has there" in " ".join(problems)


# -- names that say something else than what they hold, and strangers


def test_a_hold_under_the_name_of_another_version_is_named(appended: Dataset) -> None:
    hold_version(appended, author="ada", reason="why", time_seconds=1.0)
    folder = Path(appended.url) / "_refs/holds"
    (folder / f"{2:020d}.json").rename(folder / f"{1:020d}.json")
    text = " ".join(verify_dataset(appended).problems)
    assert f"_refs/holds/{1:020d}.json is the hold of version 2" in text
    assert f"_refs/holds/{2:020d}.json: it is missing" in text
    with pytest.raises(DamagedError, match=r"0001.json is the hold of version 2.*restore it"):
        list_holds(appended.repository.store)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("_refs/tags/a/b.json", "isn't named as a tag is"),
        ("_refs/tags/note.txt", "isn't named as a tag is"),
        ("_refs/other.json", "isn't registered"),
        ("_signatures/note.json", "isn't named as a signature is"),
    ],
)
def test_strangers_are_named(dataset: Dataset, path: str, problem: str) -> None:
    set_tag(dataset, "prod", author="ada", reason="", time_seconds=1.0)
    dataset.repository.store.put(path, b"{}")
    problems = verify_dataset(dataset).problems
    assert any(found.startswith(path) and problem in found for found in problems), problems


def _refused_signature(dataset: Dataset, data: bytes, *, manifest: str, key_id: str) -> str:
    """Returns what is said of an envelope at a place, the register left aside."""
    path = layout.signature_path(manifest, key_id)
    dataset.repository.store.put(path, data, mode=Mode.OVERWRITE)
    problems = verify_dataset(dataset).problems
    return " ".join(p for p in problems if p.startswith(path) and "registered" not in p)


def test_signatures_of_something_else_are_named(appended: Dataset, dataset: Dataset) -> None:
    key, zeros = SigningKey.generate(), "0" * 64
    signed = sign_version(appended, key)
    data = appended.repository.store.get(signed.path)
    first, own = dataset.manifest_sha256, key.public.key_id
    told = _refused_signature(appended, data, manifest=first, key_id=own)
    assert f"it is of version 2, whose manifest is {appended.manifest_sha256}" in told
    told = _refused_signature(appended, data, manifest=signed.manifest, key_id=zeros)
    assert f"its signature is by key '{own}', {zeros} expected" in told
    entry, _ = read_entry(appended.repository.store, 2)
    lost = describe_version(msgspec.structs.replace(entry, version=9), appended.manifest)
    data = seal_envelope(canonical_json(lost), key)
    told = _refused_signature(appended, data, manifest=signed.manifest, key_id=own)
    assert "it is of version 9, which the log doesn't have" in told
    other = describe_version(msgspec.structs.replace(entry, dataset="0" * 32), appended.manifest)
    data = seal_envelope(canonical_json(other), key)
    told = _refused_signature(appended, data, manifest=signed.manifest, key_id=own)
    assert "dataset is '000" in told


def test_a_removed_signature_is_named(dataset: Dataset) -> None:
    path = sign_version(dataset, SigningKey.generate()).path
    dataset.repository.store.delete(path)
    assert verify_dataset(dataset).problems == [f"{path}: it is missing"]
