"""`datapipe key` and `datapipe sign`: who vouches for a version."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from datapipe.cli.arguments import AcceptRollback, AsJson, DatasetArgument, DryRun, file_name
from datapipe.cli.output import Output
from datapipe.dataset import (
    Dataset,
    Signed,
    SigningKey,
    VerifyingKey,
    open_dataset,
    read_signing_key,
    read_verifying_key,
    sign_version,
    write_key_pair,
)
from datapipe.errors import DatasetError, SignatureError

__all__ = [
    "KeyOfSigner",
    "KeyToCheck",
    "KeyToSign",
    "private_key",
    "public_key",
    "register",
    "show_signer",
    "sign_built",
]

KeyToCheck = Annotated[
    Path | None,
    typer.Option(
        "--key", help="A public key (PEM): the version must be signed with it.", callback=file_name
    ),
]
KeyOfSigner = Annotated[
    Path | None,
    typer.Option("--key", help="A public key (PEM): check its signatures.", callback=file_name),
]
KeyToSign = Annotated[
    Path | None,
    typer.Option(
        "--sign-key", help="A private key (PEM) to sign the new version with.", callback=file_name
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    group = typer.Typer(
        name="key", help="Make keys for signatures.", no_args_is_help=True, rich_markup_mode=None
    )
    group.callback()(_group)
    group.command()(new)
    app.add_typer(group)
    app.command()(sign)


def private_key(path: Path) -> SigningKey:
    """Returns the private key in a file; an encrypted one opens with DATAPIPE_KEY_PASSWORD."""
    password = os.environ.get("DATAPIPE_KEY_PASSWORD")
    return read_signing_key(path, password=None if password is None else password.encode())


def public_key(path: Path | None) -> VerifyingKey | None:
    """Returns the public key in a file, None where none is given."""
    return None if path is None else read_verifying_key(path)


def show_signer(signer: Mapping[str, Any], *, key: VerifyingKey | None) -> str:
    """Returns for people who signed a version, and whether it was checked."""
    words = {True: "verified", False: "DOESN'T VOUCH for this version", None: "not checked"}
    said = "" if key is None else f" ({words[signer['verified']]})"
    return f"signed by {signer['key_id']}{said}"


def sign_built(dataset: Dataset, key: SigningKey) -> Signed:
    """Signs a version that was just made. Raises: SignatureError: it is there, but not signed."""
    try:
        return sign_version(dataset, key)
    except DatasetError as error:
        raise SignatureError(
            f"version {dataset.version} is committed but not signed: {error}. Sign it with "
            f"`datapipe sign {dataset.url}@{dataset.version}`"
        ) from error


def _group() -> None:
    """Make keys for signatures."""


def new(
    path: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The private key to write.", callback=file_name),
    ],
    as_json: AsJson = False,
) -> None:
    """Make an Ed25519 key: the private one in FILE (mode 0600), the public one in FILE.pub.

    For example: datapipe key new team
    """
    key_id = write_key_pair(path).public.key_id
    text = (
        f"wrote {path}: the private key; keep it secret, whoever has it signs in your name\n"
        f"wrote {path}.pub: the public key, for `datapipe verify --key`\n"
        f"key id {key_id}"
    )
    data = {"private": str(path), "public": f"{path}.pub", "key_id": key_id}
    done = f"the key is in {path}"
    Output(as_json=as_json).result(
        data, lambda console: console.print(text, markup=False), done=done
    )


def sign(
    dataset: DatasetArgument,
    key: Annotated[
        Path, typer.Option("--key", help="Your private key (PEM, Ed25519).", callback=file_name)
    ],
    dry_run: DryRun = False,
    accept_rollback: AcceptRollback = False,
    as_json: AsJson = False,
) -> None:
    """Sign a version: what it holds, and its place in the log.

    For example: datapipe sign dataset@3 --key team; then: datapipe verify dataset@3 --key team.pub
    """
    signer = private_key(key)
    opened = open_dataset(dataset, accept_rollback=accept_rollback)
    signed = sign_version(opened, signer, dry_run=dry_run)
    verb = "would be signed" if dry_run else "signed"
    text = (
        f"version {signed.version} of {opened.url}: {verb if signed.created else 'is signed'} with "
        f"key {signed.key_id}\nmanifest {signed.manifest}\n{signed.path}"
    )
    data = {"dataset": opened.url, **msgspec.to_builtins(signed), "dry_run": dry_run}
    done = "" if dry_run else f"version {signed.version} is signed"
    Output(as_json=as_json).result(
        data, lambda console: console.print(text, markup=False), done=done
    )
