from __future__ import annotations

import hashlib
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from datapipe.dataset import read_signing_key, read_verifying_key, write_key_pair
from datapipe.errors import UsageError

PKCS8, SPKI = PrivateFormat.PKCS8, PublicFormat.SubjectPublicKeyInfo


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key files, most of which can't be used."""
    folder = tmp_path_factory.mktemp("keys")
    good = ed25519.Ed25519PrivateKey.generate()
    rsa_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    ec_key = ec.generate_private_key(ec.SECP256R1())
    locked = BestAvailableEncryption(b"secret")
    made = {
        "good": good.private_bytes(Encoding.PEM, PKCS8, NoEncryption()),
        "locked": good.private_bytes(Encoding.PEM, PKCS8, locked),
        "good.pub": good.public_key().public_bytes(Encoding.PEM, SPKI),
        "der": good.private_bytes(Encoding.DER, PKCS8, NoEncryption()),
        "rsa": rsa_key.private_bytes(Encoding.PEM, PKCS8, NoEncryption()),
        "rsa-locked": rsa_key.private_bytes(
            Encoding.PEM, PrivateFormat.TraditionalOpenSSL, BestAvailableEncryption(b"secret")
        ),
        "rsa.pub": rsa_key.public_key().public_bytes(Encoding.PEM, SPKI),
        "ec": ec_key.private_bytes(Encoding.PEM, PKCS8, NoEncryption()),
        "ec.pub": ec_key.public_key().public_bytes(Encoding.PEM, SPKI),
        "empty": b"",
        "text": b"minisign public key ABC\n\xff\xfe",
        "cut": good.private_bytes(Encoding.PEM, PKCS8, NoEncryption())[:-40],
    }
    for name, data in made.items():
        (folder / name).write_bytes(data)
    return folder


def test_a_pair_is_what_openssl_and_others_read(tmp_path: Path) -> None:
    made = write_key_pair(tmp_path / "me")
    assert stat.S_IMODE((tmp_path / "me").stat().st_mode) == 0o600
    private = load_pem_private_key((tmp_path / "me").read_bytes(), password=None)
    public = load_pem_public_key((tmp_path / "me.pub").read_bytes())
    assert isinstance(private, ed25519.Ed25519PrivateKey)
    assert isinstance(public, ed25519.Ed25519PublicKey)
    assert private.public_key() == public
    der = public.public_bytes(Encoding.DER, SPKI)
    assert made.public.key_id == hashlib.sha256(der).hexdigest()
    assert read_signing_key(tmp_path / "me").public.key_id == made.public.key_id
    assert read_verifying_key(tmp_path / "me.pub").key_id == made.public.key_id


@pytest.mark.parametrize("there", ["me", "me.pub"])
def test_no_file_is_overwritten(tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("mine")
    with pytest.raises(UsageError, match=f"{there} is there already and was left as it is"):
        write_key_pair(tmp_path / "me")
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"


def test_no_half_a_pair_is_left(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be written: No such file or directory"):
        write_key_pair(tmp_path / "nowhere" / "me")
    (tmp_path / ("m" * 253)).touch()  # a name that .pub makes too long
    with pytest.raises(UsageError, match="can't be written: File name too long"):
        write_key_pair(tmp_path / ("k" * 253))
    assert [path.name for path in tmp_path.iterdir()] == ["m" * 253]


def test_an_encrypted_key_opens_with_its_password(files: Path) -> None:
    expected = read_signing_key(files / "good").public.key_id
    assert read_signing_key(files / "locked", password=b"secret").public.key_id == expected
    assert read_signing_key(files / "good", password=b"not needed").public.key_id == expected


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("locked", r"locked is encrypted; .* set DATAPIPE_KEY_PASSWORD"),
        ("rsa-locked", r"rsa-locked is encrypted"),
        ("good.pub", r"good\.pub holds a public key, but signing needs the private one"),
        ("der", r"der is no private key in PEM; .* `datapipe key new`"),
        ("rsa", r"rsa holds a private key of another kind \(RSA\); .* Ed25519"),
        ("ec", r"ec holds a private key of another kind \(EC"),
        ("empty", r"empty is no private key in PEM"),
        ("text", r"text is no private key in PEM"),
        ("cut", r"cut is no private key in PEM"),
        ("missing", r"the key file .*missing can't be read: No such file"),
        (".", r"can't be read: Is a directory"),
    ],
)
def test_what_is_no_private_key_is_named(files: Path, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        read_signing_key(files / name)
    assert "\n" not in str(raised.value)


def test_a_wrong_password_is_named(files: Path) -> None:
    with pytest.raises(UsageError, match="locked is no private key in PEM, or has another pass"):
        read_signing_key(files / "locked", password=b"wrong")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("good", r"good holds a private key, but checking needs only the public one"),
        ("rsa.pub", r"rsa\.pub holds a public key of another kind \(RSA\)"),
        ("ec.pub", r"another kind \(EC"),
        ("der", r"der is no public key in PEM"),
        ("empty", r"empty is no public key in PEM"),
        ("text", r"text is no public key in PEM"),
        ("missing", r"missing can't be read"),
    ],
)
def test_what_is_no_public_key_is_named(files: Path, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_verifying_key(files / name)


def test_without_the_library_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['cryptography'] = None\n"
        "import datapipe.dataset as d\n"
        "try: d.read_verifying_key('k')\n"
        "except d.signing.keys.MissingExtraError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'datapipe-train[sign]'" in done.stdout
    assert done.stdout.count("\n") == 1
