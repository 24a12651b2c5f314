"""Versions on Azure, as far as Azurite is it."""

from __future__ import annotations

import uuid

import pytest

from datapipe.dataset import Repository, log_entries, open_dataset, sign_version, verify_dataset
from datapipe.dataset.signing import SigningKey, check_signature
from datapipe.testing import commit_small, small_draft
from tiering.testing import AzureServer


def test_versions_are_committed_and_signed(
    azurite: AzureServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cryptography", reason="cryptography isn't installed")
    url = f"az://{azurite.container}/{uuid.uuid4().hex}"
    repository = Repository(url, **azurite.options())
    repository.create()
    commit_small(repository, small_draft(repository, {"web": [[3, 4], [5]]}))
    first, key = repository.open(), SigningKey.generate()
    for number in range(2):  # the second follows the first by itself
        draft = small_draft(
            repository,
            {"web": [[2]]},
            parent=first,
            operation="append",
            file=f"{number}.jsonl",
            seed=3 + number,
        )
        commit_small(repository, draft, transaction=f"t{number}")
    assert [entry.version for entry in log_entries(repository)] == [1, 2, 3]
    assert verify_dataset(repository.open()).problems == []
    assert sign_version(repository.open(2), key).created
    assert check_signature(repository.open(2), key.public).version == 2
    for name, value in azurite.environment().items():
        monkeypatch.setenv(name, value)
    assert open_dataset(url).version == 3
