"""Ed25519 keys and their PEM files: PKCS8 for the private one, SubjectPublicKeyInfo for the other.

The same files as `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout` make. A key's id
is the SHA-256 of the DER bytes of its SubjectPublicKeyInfo.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from datapipe.dataset.local import local_path
from datapipe.errors import MissingExtraError, UsageError
from tiering.errors import remedy_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

__all__ = [
    "SigningKey",
    "VerifyingKey",
    "read_signing_key",
    "read_verifying_key",
    "write_key_pair",
]

_LARGEST_FILE_BYTES = 65_536


class VerifyingKey:
    """A public key."""

    def __init__(self, key: Ed25519PublicKey) -> None:
        self._key = key

    @property
    def key_id(self) -> str:
        """SHA-256 of the DER SubjectPublicKeyInfo, hex."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        der = self._key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return hashlib.sha256(der).hexdigest()

    def pem(self) -> bytes:
        """Returns the key as PEM."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        return self._key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def accepts(self, signature: bytes, data: bytes) -> bool:
        """Returns whether the private key made this signature of this data."""
        from cryptography.exceptions import InvalidSignature

        try:
            self._key.verify(signature, data)
        except InvalidSignature:
            return False
        return True


class SigningKey:
    """A private key; never printed, and written only by `write_key_pair`."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @classmethod
    def generate(cls) -> SigningKey:
        """Returns a new key. Raises: MissingExtraError."""
        _require_library()
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(Ed25519PrivateKey.generate())

    @property
    def public(self) -> VerifyingKey:
        """The public key."""
        return VerifyingKey(self._key.public_key())

    def sign(self, data: bytes) -> bytes:
        """Returns the signature, 64 bytes; equal data, equal signature."""
        return self._key.sign(data)

    def pem(self) -> bytes:
        """Returns the private key as PEM, unencrypted."""
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
        )

        return self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def read_signing_key(path: str | Path, *, password: bytes | None = None) -> SigningKey:
    """Returns the private key in a PEM file.

    Args:
        path: the file.
        password: of an encrypted one; not looked at where it isn't encrypted.

    Raises:
        UsageError: the file can't be read, or holds no Ed25519 private key.
        MissingExtraError: `cryptography` isn't installed.
    """
    _require_library()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    data = _read(path)
    if b"PUBLIC KEY-----" in data:
        raise UsageError(
            f"{path} holds a public key, but signing needs the private one; nothing was signed; "
            "give the file that `datapipe key new` made without .pub"
        )
    encrypted = b"ENCRYPTED" in data
    if encrypted and password is None:
        raise UsageError(
            f"{path} is encrypted; nothing was signed; set DATAPIPE_KEY_PASSWORD to its password"
        )
    try:
        key = load_pem_private_key(data, password=password if encrypted else None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        kind = "private key in PEM, or has another password" if encrypted else "private key in PEM"
        raise _unreadable(path, kind) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise _other_kind(path, key, "private")
    return SigningKey(key)


def read_verifying_key(path: str | Path) -> VerifyingKey:
    """Returns the public key in a PEM file.

    Raises:
        UsageError: the file can't be read, or holds no Ed25519 public key.
        MissingExtraError: `cryptography` isn't installed.
    """
    _require_library()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    data = _read(path)
    if b"PRIVATE KEY-----" in data:
        raise UsageError(
            f"{path} holds a private key, but checking needs only the public one; nothing was "
            "verified; give the file with .pub, and keep this one where signatures are made"
        )
    try:
        key = load_pem_public_key(data)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _unreadable(path, "public key in PEM") from error
    if not isinstance(key, Ed25519PublicKey):
        raise _other_kind(path, key, "public")
    return VerifyingKey(key)


def write_key_pair(path: str | Path) -> SigningKey:
    """Makes a new key: the private one in `path`, mode 0600, the public one in `path`.pub.

    Raises:
        UsageError: either file is there already, or can't be written.
        MissingExtraError: `cryptography` isn't installed.
    """
    private = local_path(path, "the key")
    public = Path(f"{path}.pub")
    key = SigningKey.generate()
    for file in (private, public):
        if os.path.lexists(file):
            raise UsageError(
                f"{file} is there already and was left as it is; no key was made; name another file"
            )
    _write_new(private, key.pem(), mode=0o600)
    try:
        _write_new(public, key.public.pem(), mode=0o644)
    except UsageError:
        private.unlink()
        raise
    return key


def _write_new(path: Path, data: bytes, *, mode: int) -> None:
    """Writes a file that mustn't be there; it never has more permissions than `mode`."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    except OSError as error:
        raise UsageError(
            f"{path} can't be written: {error.strerror}; no key was made; "
            f"{remedy_of(error, making=True)}"
        ) from error


def _read(path: str | Path) -> bytes:
    try:
        with local_path(path, "the key").open("rb") as file:
            return file.read(_LARGEST_FILE_BYTES)
    except OSError as error:
        raise UsageError(
            f"the key file {path} can't be read: {error.strerror}; nothing was done; check the path"
        ) from error


def _unreadable(path: str | Path, kind: str) -> UsageError:
    return UsageError(
        f"{path} is no {kind}; nothing was done; give an Ed25519 key such as `datapipe key new` "
        "makes"
    )


def _other_kind(path: str | Path, key: object, kind: str) -> UsageError:
    found = type(key).__name__.removesuffix("PrivateKey").removesuffix("PublicKey")
    return UsageError(
        f"{path} holds a {kind} key of another kind ({found.strip('_')}); nothing was done; give "
        "an Ed25519 key such as `datapipe key new` makes"
    )


def _require_library() -> None:
    try:
        import cryptography  # noqa: F401 (whether it is there)
    except ImportError as error:
        raise MissingExtraError(
            "signatures need the package cryptography, which isn't installed; nothing was signed "
            "or verified; pip install 'datapipe-train[sign]'"
        ) from error
