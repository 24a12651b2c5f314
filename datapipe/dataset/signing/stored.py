"""Signatures in a dataset: `_signatures/<manifest>.<key id>.json`, made once and never changed."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.layout import SIGNATURES_PREFIX, entry_path, signature_path
from datapipe.dataset.log import read_entry
from datapipe.dataset.objects import reading, writing
from datapipe.dataset.reader import Dataset
from datapipe.dataset.signing.envelope import open_envelope, seal_envelope
from datapipe.dataset.signing.keys import SigningKey, VerifyingKey
from datapipe.dataset.signing.statement import describe_version, find_difference
from datapipe.errors import DamagedError, SignatureError
from tiering.errors import ObjectExistsError, ObjectNotFoundError, UndecidedError

__all__ = ["Signed", "check_signature", "list_signers", "sign_version"]

_LARGEST_BYTES = 1 << 20
"""A statement has some 2 kB; nobody is to be made to read more than this."""


_ATTEMPTS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Signed:
    """A version's signature; digests in hex."""

    version: int
    manifest: str
    key_id: str
    path: str
    created: bool
    """False: the same signature was there already."""


def sign_version(dataset: Dataset, key: SigningKey, *, dry_run: bool = False) -> Signed:
    """Signs a version; doing it again changes nothing.

    Whoever signs vouches for the manifest, not for the bytes below it: `verify` checks those.

    Raises:
        SignatureError: another object has the place of the signature.
        DamagedError: the version's log entry is missing or damaged, or names another manifest.
        DatasetError: the store can't be read or written.
    """
    envelope = seal_envelope(canonical_json(_statement(dataset)), key)
    path = signature_path(dataset.manifest_sha256, key.public.key_id)
    created = _read(dataset, path) is None if dry_run else _create(dataset, path, envelope)
    return _signed(dataset, key.public, path, created=created)


def check_signature(dataset: Dataset, key: VerifyingKey) -> Signed:
    """Returns the signature of a version by a key; works offline.

    Raises:
        SignatureError: it isn't signed with the key, or what was signed isn't this version.
        DamagedError: the version's log entry is missing or damaged, or names another manifest.
        DatasetError: the store can't be read.
    """
    path = signature_path(dataset.manifest_sha256, key.key_id)
    data = _read(dataset, path)
    if data is None:
        raise _unsigned(dataset, key)
    try:
        payload = open_envelope(data, key)
    except ValueError as error:
        raise _refused(dataset, path, str(error)) from error
    difference = find_difference(payload, _statement(dataset))
    if difference is not None:
        raise _refused(dataset, path, difference)
    return _signed(dataset, key, path, created=False)


def list_signers(dataset: Dataset) -> list[str]:
    """Returns the ids of the keys that a version has signatures of; checks none of them."""
    prefix = f"{SIGNATURES_PREFIX}{dataset.manifest_sha256}."
    store = dataset.repository.store
    with reading(store, prefix):
        paths = [info.path for info in store.list(prefix)]
    return [path.removeprefix(prefix).removesuffix(".json") for path in paths]


def _statement(dataset: Dataset) -> dict[str, Any]:
    entry, _ = read_entry(dataset.repository.store, dataset.version)
    if entry.manifest != dataset.manifest_sha256:
        raise DamagedError(
            f"{entry_path(entry.version)} in {dataset.url} names manifest {entry.manifest}, "
            f"{dataset.manifest_sha256} was opened: the log was changed meanwhile; nothing was "
            "signed or verified; open the dataset again"
        )
    return describe_version(entry, dataset.manifest)


def _create(dataset: Dataset, path: str, envelope: bytes) -> bool:
    """Returns whether the signature is new; any other object in its place is an error."""
    with writing(dataset.repository.store):
        if _put(dataset, path, envelope):
            return True
    if _read(dataset, path) != envelope:
        raise SignatureError(
            f"{path} in {dataset.url} isn't the signature of this version by this key: it was "
            "damaged or forged; nothing was signed; delete that object and sign again"
        )
    return False


def _put(dataset: Dataset, path: str, envelope: bytes) -> bool:
    """Returns whether the object was created; a lost answer is asked for again."""
    store = dataset.repository.store
    with contextlib.suppress(ObjectExistsError):
        for _ in range(_ATTEMPTS - 1):
            with contextlib.suppress(UndecidedError):
                store.put(path, envelope)
                return True
        store.put(path, envelope)
        return True
    return False


def _read(dataset: Dataset, path: str) -> bytes | None:
    store = dataset.repository.store
    with reading(store, path):
        try:
            return store.get_range(path, 0, _LARGEST_BYTES)
        except ObjectNotFoundError:
            return None


def _signed(dataset: Dataset, key: VerifyingKey, path: str, *, created: bool) -> Signed:
    return Signed(
        version=dataset.version,
        manifest=dataset.manifest_sha256,
        key_id=key.key_id,
        path=path,
        created=created,
    )


def _unsigned(dataset: Dataset, key: VerifyingKey) -> SignatureError:
    signers = list_signers(dataset)
    others = f"it is by {', '.join(signers)}" if signers else "it has no signature"
    return SignatureError(
        f"version {dataset.version} of {dataset.url} isn't signed with key {key.key_id}; {others}; "
        "nothing of it was verified; give the signer's public key, or have it signed with "
        "`datapipe sign`"
    )


def _refused(dataset: Dataset, path: str, why: str) -> SignatureError:
    return SignatureError(
        f"{path} in {dataset.url} doesn't vouch for version {dataset.version}: {why}; don't trust "
        "this version until its signer has looked at it"
    )
