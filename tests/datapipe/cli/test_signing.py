from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from datapipe.dataset import Dataset, Repository
from datapipe.testing import commit_small, small_draft

pytest.importorskip("cryptography", reason="cryptography isn't installed")

Command = Callable[..., Any]


@pytest.fixture
def key(command: Command, tmp_path: Path) -> Path:
    made = command("key", "new", tmp_path / "me", "--json")
    assert made.json() == {
        "private": f"{tmp_path}/me",
        "public": f"{tmp_path}/me.pub",
        "key_id": made.json()["key_id"],
    }
    assert re.fullmatch("[0-9a-f]{64}", made.json()["key_id"])
    return tmp_path / "me"


@pytest.fixture
def small(tmp_path: Path) -> Dataset:
    """A version that verification finds nothing wrong with."""
    repository = Repository(str(tmp_path / "small"))
    repository.create()
    commit_small(repository, small_draft(repository, {"web": [[3, 4], [5]]}))
    return repository.open()


def one_line(ended: Any, code: int, message: str) -> None:
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.count("\n") == 1
    assert re.search(message, ended.err), ended.err


def test_key_new_leaves_existing_files(command: Command, key: Path) -> None:
    before = key.read_bytes()
    one_line(command("key", "new", key), 2, "me is there already and was left as it is")
    assert key.read_bytes() == before


def test_sign_and_verify(command: Command, key: Path, small: Dataset) -> None:
    one_line(command("verify", small.url, "--key", f"{key}.pub", "-q"), 1, "has no signature")
    planned = command("sign", small.url, "--key", key, "--dry-run")
    assert "would be signed with key" in planned.out
    signed = command("sign", f"{small.url}@1", "--key", key, "--json").json()
    assert (signed["version"], signed["created"], signed["manifest"]) == (
        1, True, small.manifest_sha256,
    )  # fmt: skip
    assert "is signed with key" in command("sign", small.url, "--key", key).out
    checked = command("verify", small.url, "--key", f"{key}.pub", "-q", "--json").json()
    assert (checked["signed_with"], checked["problems"]) == (signed["key_id"], [])
    assert (
        f"signed with key {signed['key_id']}"
        in command("verify", small.url, "--key", f"{key}.pub", "-q").out
    )
    assert command("verify", small.url, "-q", "--json").json()["signed_with"] is None


def test_what_verify_refuses(command: Command, key: Path, small: Dataset, tmp_path: Path) -> None:
    command("sign", small.url, "--key", key)
    command("key", "new", tmp_path / "other")
    other = command("verify", small.url, "--key", tmp_path / "other.pub", "-q")
    one_line(other, 1, "isn't signed with key .*; it is by ")
    one_line(command("verify", small.url, "--key", key, "-q"), 2, "holds a private key")
    one_line(command("verify", small.url, "--key", tmp_path / "no", "-q"), 2, "can't be read")
    (envelope,) = (Path(small.url) / "_signatures").iterdir()
    envelope.write_bytes(envelope.read_bytes().replace(b"payload", b"payloaf", 1))
    one_line(command("verify", small.url, "--key", f"{key}.pub", "-q"), 1, "doesn't vouch for")


def test_the_chain_below_a_signature_is_verified(
    command: Command, key: Path, small: Dataset
) -> None:
    command("sign", small.url, "--key", key)
    shard = next((Path(small.url) / "tokens").rglob("*.bin"))
    shard.chmod(0o644)
    shard.write_bytes(b"\1\0" + shard.read_bytes()[2:])
    damaged = command("verify", small.url, "--key", f"{key}.pub", "-q")
    assert damaged.code == 1
    assert shard.stem in damaged.err


def test_an_encrypted_key_needs_its_password(
    command: Command, key: Path, small: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cryptography.hazmat.primitives import serialization as ser

    plain = ser.load_pem_private_key(key.read_bytes(), password=None)
    locked = ser.BestAvailableEncryption("p\u00e4ss".encode())
    key.write_bytes(plain.private_bytes(ser.Encoding.PEM, ser.PrivateFormat.PKCS8, locked))
    one_line(command("sign", small.url, "--key", key), 2, "is encrypted; .*DATAPIPE_KEY_PASSWORD")
    monkeypatch.setenv("DATAPIPE_KEY_PASSWORD", "wrong")
    one_line(command("sign", small.url, "--key", key), 2, "or has another password")
    monkeypatch.setenv("DATAPIPE_KEY_PASSWORD", "p\u00e4ss")
    assert command("sign", small.url, "--key", key).code == 0
    assert command("verify", small.url, "--key", f"{key}.pub", "-q").code == 0


def test_builds_and_appends_are_signed(
    command: Command, key: Path, tokenizer_path: Path, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(f'{{"text": "the fox {name}"}}\n')
    out = tmp_path / "ds"
    options = ("-j", 1, "-q", "--sign-key", key)
    assert (
        command("build", tmp_path / "a.jsonl", "-t", tokenizer_path, "-o", out, *options).code == 0
    )
    assert command("append", out, tmp_path / "b.jsonl", *options).code == 0
    for version in (1, 2):
        checked = command("verify", f"{out}@{version}", "--key", f"{key}.pub", "-q", "--json")
        assert checked.json()["version"] == version
    missing = command("append", out, tmp_path / "a.jsonl", "--sign-key", tmp_path / "no")
    one_line(missing, 2, "no can't be read")


def test_what_was_made_of_damaged_input_is_signed_too(
    command: Command, key: Path, tokenizer_path: Path, tmp_path: Path
) -> None:
    whole = gzip.compress(b'{"text": "the fox"}\n' * 5_000 + b'{"text": "at last"}\n', mtime=0)
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[:-20])
    build = ("build", tmp_path / "cut.jsonl.gz", "-t", tokenizer_path, "-o", tmp_path / "ds")
    made = command(*build, "-j", 1, "--max-dropped", 1, "--sign-key", key)
    assert (made.code, "was committed and signed with key" in made.err) == (3, True), made.err
    assert command("verify", tmp_path / "ds", "--key", f"{key}.pub", "-q").code == 0


def test_a_build_that_cant_be_signed_is_there(
    command: Command, key: Path, tokenizer_path: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "the fox"}\n')
    out = tmp_path / "ds"
    build = ("build", tmp_path / "a.jsonl", "-t", tokenizer_path, "-o", out, "-j", 1, "-q")
    command(*build)
    (out / "_signatures").write_text("in the way")
    failed = command(*build, "--sign-key", key)
    assert failed.code == 1
    assert re.search(r"version 1 is committed but not signed: .*`datapipe sign .*@1`", failed.err)


def test_show_and_log_say_who_signed(
    command: Command, key: Path, small: Dataset, tmp_path: Path
) -> None:
    assert command("show", small.url, "--json").json()["signers"] == []
    key_id = command("sign", small.url, "--key", key, "--json").json()["key_id"]
    other = command("key", "new", tmp_path / "other", "--json").json()["key_id"]
    command("sign", small.url, "--key", tmp_path / "other")
    for words in (("show", small.url), ("log", small.url)):
        plain = command(*words).out
        assert f"signed by {key_id}\n" in plain
        checked = command(*words, "--key", f"{key}.pub").out
        assert f"signed by {key_id} (verified)" in checked
        assert f"signed by {other} (not checked)" in checked
        expected = [{"key_id": key_id, "verified": True}, {"key_id": other, "verified": None}]
        found = command(*words, "--key", f"{key}.pub", "--json").json()
        found = found[0] if isinstance(found, list) else found
        assert found["signers"] == sorted(expected, key=lambda signer: str(signer["key_id"]))


def test_show_and_log_say_what_a_key_didnt_sign(
    command: Command, key: Path, small: Dataset
) -> None:
    path = Path(small.url) / command("sign", small.url, "--key", key, "--json").json()["path"]
    path.write_bytes(path.read_bytes().replace(b"payload", b"Payload"))
    for words in (("show", small.url), ("log", small.url)):
        ended = command(*words, "--key", f"{key}.pub")
        assert (ended.code, "DOESN'T VOUCH for this version" in ended.out) == (0, True)


def test_signatures_are_verified_as_objects_without_a_key(
    command: Command, key: Path, small: Dataset
) -> None:
    path = command("sign", small.url, "--key", key, "--json").json()["path"]
    (Path(small.url) / path).unlink()
    ended = command("verify", small.url, "-q", "--json")
    assert (ended.code, ended.json()["problems"]) == (1, [f"{path}: it is missing"])
