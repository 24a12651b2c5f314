from __future__ import annotations

import base64
import hashlib
import json
from typing import Any, Literal

import msgspec
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from datapipe.dataset import (
    Collector,
    Dataset,
    Repository,
    SigningKey,
    check_signature,
    list_signers,
    retire_versions,
    sign_version,
)
from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.layout import entry_path
from datapipe.dataset.log import encode_entry, read_entry, seal_entry
from datapipe.dataset.signing.envelope import seal_envelope
from datapipe.dataset.signing.statement import describe_version
from datapipe.errors import DamagedError, DatasetError, SignatureError
from tiering.errors import UndecidedError
from tiering.store import Mode
from tiering.testing import FaultyStore


def put(dataset: Dataset, path: str, data: bytes) -> None:
    dataset.repository.store.put(path, data, mode=Mode.OVERWRITE)


def statement_of(dataset: Dataset) -> dict[str, Any]:
    entry, _ = read_entry(dataset.repository.store, dataset.version)
    return describe_version(entry, dataset.manifest)


def test_a_signature_is_checked_by_following_the_specifications(
    appended: Dataset, key: SigningKey
) -> None:
    """Follows docs/format.md, DSSE and in-toto alone: json, base64 and cryptography."""
    signed = sign_version(appended, key)
    store = appended.repository.store
    public = load_pem_public_key(key.public.pem())
    key_id = hashlib.sha256(base64.b64decode(b"".join(key.public.pem().split(b"\n")[1:-2])))
    assert signed.path == f"_signatures/{appended.manifest_sha256}.{key_id.hexdigest()}.json"
    envelope = json.loads(store.get(signed.path))
    assert sorted(envelope) == ["payload", "payloadType", "signatures"]
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    payload = base64.b64decode(envelope["payload"])
    encoded = b"DSSEv1 28 application/vnd.in-toto+json %d %s" % (len(payload), payload)
    (signature,) = envelope["signatures"]
    assert signature["keyid"] == key_id.hexdigest()
    public.verify(base64.b64decode(signature["sig"]), encoded)  # type: ignore[union-attr,call-arg]
    with pytest.raises(InvalidSignature):
        public.verify(base64.b64decode(signature["sig"]), encoded[:-1])  # type: ignore[union-attr,call-arg]

    statement = json.loads(payload)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://datapipe-train/version/v1"
    (subject,) = statement["subject"]
    manifest_bytes = store.get(subject["name"])
    assert hashlib.sha256(manifest_bytes).hexdigest() == subject["digest"]["sha256"]
    manifest = json.loads(manifest_bytes)
    entry = json.loads(store.get(entry_path(2)))
    assert statement["predicate"] == {
        "dataset": json.loads(store.get("format.json"))["id"],
        "version": 2,
        "entry_sha256": entry["entry_sha256"],
        "parents": manifest["parents"],
        "operation": "append",
        "recipe_sha256": manifest["recipe_sha256"],
        "tokenizer": {k: manifest["tokenizer"][k] for k in ("sha256", "vocabulary", "canary")},
        "digests": manifest["digests"],
        "totals": manifest["totals"],
    }


def test_signing_again_changes_nothing(dataset: Dataset, key: SigningKey) -> None:
    first = sign_version(dataset, key)
    before = dataset.repository.store.head(first.path)
    again = sign_version(dataset, key)
    assert (first.created, again.created) == (True, False)
    assert dataset.repository.store.head(first.path) == before


def test_a_dry_run_writes_nothing(dataset: Dataset, key: SigningKey) -> None:
    assert sign_version(dataset, key, dry_run=True).created
    assert list_signers(dataset) == []
    sign_version(dataset, key)
    assert not sign_version(dataset, key, dry_run=True).created


def test_several_keys_sign_one_version(
    dataset: Dataset, key: SigningKey, other_key: SigningKey
) -> None:
    for signer in (key, other_key):
        sign_version(dataset, signer)
        assert check_signature(dataset, signer.public).key_id == signer.public.key_id
    assert list_signers(dataset) == sorted([key.public.key_id, other_key.public.key_id])


def test_a_version_without_a_signature_says_who_signed(
    appended: Dataset, key: SigningKey, other_key: SigningKey
) -> None:
    with pytest.raises(SignatureError, match=r"version 2 of .* isn't signed.*has no signature"):
        check_signature(appended, key.public)
    sign_version(appended, other_key)
    with pytest.raises(SignatureError, match=f"it is by {other_key.public.key_id}"):
        check_signature(appended, key.public)
    sign_version(appended.repository.open(1), key)  # of another version
    with pytest.raises(SignatureError, match="isn't signed"):
        check_signature(appended, key.public)


def test_a_changed_envelope_is_refused_and_not_replaced(dataset: Dataset, key: SigningKey) -> None:
    signed = sign_version(dataset, key)
    good = dataset.repository.store.get(signed.path)
    for place in range(0, len(good), 7):
        changed = bytearray(good)
        changed[place] ^= 1
        put(dataset, signed.path, bytes(changed))
        with pytest.raises(SignatureError, match="doesn't vouch for version 1: it"):
            check_signature(dataset, key.public)
    with pytest.raises(SignatureError, match="was damaged or forged; nothing was signed; delete"):
        sign_version(dataset, key)


def test_a_huge_envelope_is_not_read_whole(dataset: Dataset, key: SigningKey) -> None:
    signed = sign_version(dataset, key)
    put(dataset, signed.path, b" " * (3 << 20))
    with pytest.raises(SignatureError, match="isn't a DSSE envelope"):
        check_signature(dataset, key.public)


def _change(statement: dict[str, Any], *path: Any, value: Any) -> dict[str, Any]:
    inner: Any = statement
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return statement


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("_type",), "https://in-toto.io/Statement/v0.1", "_type is"),
        (("predicateType",), "https://slsa.dev/provenance/v1", "predicateType is"),
        (("subject", 0, "digest", "sha256"), "0" * 64, "sha256 is '0000"),
        (("subject", 0, "digest"), {"md5": "00"}, "digest has no 'sha256'"),
        (("subject",), [], r"subject is \[\]"),
        (("predicate", "version"), 1, "version is 1, this version's is 2"),
        (("predicate", "version"), "2", "version is '2'"),
        (("predicate", "dataset"), "0" * 32, "dataset is"),
        (("predicate", "entry_sha256"), "0" * 64, "entry_sha256 is"),
        (("predicate", "parents"), [], r"parents is \[\]"),
        (("predicate", "totals", "num_tokens"), 1, "num_tokens is 1"),
        (("predicate", "digests"), None, "digests is None"),
        (("predicate",), {}, "predicate has no 'dataset'"),
    ],
)
def test_a_signed_statement_about_something_else_is_refused(
    appended: Dataset, key: SigningKey, path: tuple[Any, ...], value: Any, message: str
) -> None:
    signed = sign_version(appended, key)
    statement = _change(statement_of(appended), *path, value=value)
    put(appended, signed.path, seal_envelope(canonical_json(statement), key))
    with pytest.raises(SignatureError, match=message):
        check_signature(appended, key.public)


def test_a_later_program_may_state_more(dataset: Dataset, key: SigningKey) -> None:
    signed = sign_version(dataset, key)
    statement = statement_of(dataset)
    statement["predicate"]["later"] = {"x": 1}
    statement["subject"][0]["annotations"] = {"y": 2}
    put(dataset, signed.path, seal_envelope(canonical_json(statement), key))
    assert check_signature(dataset, key.public).version == 1


def test_a_payload_that_is_no_statement_is_refused(dataset: Dataset, key: SigningKey) -> None:
    signed = sign_version(dataset, key)
    for payload, message in [(b"", "isn't JSON"), (b"[" * 99_999, "isn't JSON"), (b"7", "is 7")]:
        put(dataset, signed.path, seal_envelope(payload, key))
        with pytest.raises(SignatureError, match=message):
            check_signature(dataset, key.public)


def test_another_log_entry_in_the_same_place_isnt_vouched_for(
    appended: Dataset, key: SigningKey
) -> None:
    """The manifest is the one that was signed, but the log was written anew around it."""
    sign_version(appended, key)
    entry, _ = read_entry(appended.repository.store, 2)
    forged = seal_entry(msgspec.structs.replace(entry, author="somebody else"))
    put(appended, entry_path(2), encode_entry(forged))
    with pytest.raises(SignatureError, match="entry_sha256 is"):
        check_signature(appended, key.public)


def test_a_log_that_changed_since_the_opening_is_damage(
    appended: Dataset, dataset: Dataset, key: SigningKey
) -> None:
    stale = Dataset(
        repository=appended.repository,
        version=2,
        manifest=dataset.manifest,
        manifest_sha256=dataset.manifest_sha256,
    )
    with pytest.raises(DamagedError, match="the log was changed meanwhile"):
        sign_version(stale, key)


@pytest.mark.parametrize("applied", ["before", "after"])
def test_a_lost_answer_is_asked_for_again(
    dataset: Dataset, key: SigningKey, applied: Literal["before", "after"]
) -> None:
    lost = iter([UndecidedError("no answer"), UndecidedError("no answer")])
    fault = lambda verb, _path: next(lost, None) if verb == "put" else None  # noqa: E731
    faulty = FaultyStore(dataset.repository.store, fault=fault, applied=applied)
    sign_version(Repository.over(faulty).open(), key)
    assert check_signature(dataset, key.public).version == 1


def test_no_answer_at_all_is_an_error(dataset: Dataset, key: SigningKey) -> None:
    fault = lambda verb, _path: UndecidedError("no answer") if verb == "put" else None  # noqa: E731
    faulty = FaultyStore(dataset.repository.store, fault=fault)
    with pytest.raises(DatasetError, match="can't be written: no answer"):
        sign_version(Repository.over(faulty).open(), key)


def test_signatures_outlive_every_collection(appended: Dataset, key: SigningKey) -> None:
    first = sign_version(appended.repository.open(1), key)
    newest = sign_version(appended, key)
    collector = Collector(appended.repository, grace_seconds=0)
    entries = collector.retirable(older_than_seconds=0, time_seconds=9e9)
    retire_versions(appended.repository.store, entries, author="a", reason="old", time_seconds=9e9)
    collector.mark(collector.find())
    collector.sweep()
    for signed in (first, newest):
        assert appended.repository.store.head(signed.path).size > 0
    assert check_signature(appended, key.public).version == 2
