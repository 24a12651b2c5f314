"""Signatures in a dataset: `_signatures/<manifest>.<key id>.json`, made once and never changed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from datapipe.dataset.hashing import canonical_json
from datapipe.dataset.layout import SIGNATURES_PREFIX, entry_path, signature_names, signature_path
from datapipe.dataset.log import read_entry
from datapipe.dataset.objects import reading, writing
from datapipe.dataset.reader import Dataset
from datapipe.dataset.register import register_object
from datapipe.dataset.signing.envelope import MOST_BYTES, open_envelope, seal_envelope
from datapipe.dataset.signing.keys import SigningKey, VerifyingKey
from datapipe.dataset.signing.statement import describe_version, find_difference
from datapipe.errors import DamagedError, SignatureError
from tiering.errors import ObjectExistsError, ObjectNotFoundError, UndecidedError
from tiering.store import BlockingStore

__all__ = [
    "Signed",
    "Signer",
    "check_signature",
    "check_signers",
    "list_all_signers",
    "list_signers",
    "sign_version",
]

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Signer:
    """Whom a signature of a version says that it is by."""

    key_id: str
    verified: bool | None
    """Whether it vouches for the version; None: its key isn't at hand."""


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
    if dry_run:
        created = _read(dataset, path) is None
    else:
        created = _create(dataset, path, envelope)
        names = {"version": dataset.version, "manifest": dataset.manifest_sha256, "final": True}
        register_object(dataset.repository.store, path, lambda _: names)
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
    manifest = dataset.manifest_sha256
    return list_all_signers(dataset.repository.store, manifest=manifest).get(manifest, [])


def list_all_signers(store: BlockingStore, *, manifest: str = "") -> dict[str, list[str]]:
    """Returns, by manifest, the ids of the keys that versions have signatures of; checks none.

    Args:
        store: the dataset's.
        manifest: only of this one.
    """
    prefix, found = f"{SIGNATURES_PREFIX}{manifest}", dict[str, list[str]]()
    with reading(store, prefix):
        for info in store.list(prefix):
            names = signature_names(info.path)
            if names is not None:
                found.setdefault(names[0], []).append(names[1])
    return found


def check_signers(
    dataset: Dataset, key_ids: Iterable[str], *, key: VerifyingKey | None
) -> list[Signer]:
    """Returns who signed a version, with what a key says of its own signature."""
    return [
        Signer(
            key_id=key_id,
            verified=_is_good(dataset, key) if key and key_id == key.key_id else None,
        )
        for key_id in key_ids
    ]


def _is_good(dataset: Dataset, key: VerifyingKey) -> bool:
    try:
        check_signature(dataset, key)
    except SignatureError:
        return False
    return True


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
            return store.get_range(path, 0, MOST_BYTES)
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
