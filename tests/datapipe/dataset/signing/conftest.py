from __future__ import annotations

import pytest

pytest.importorskip("cryptography", reason="cryptography isn't installed")

from datapipe.dataset import SigningKey


@pytest.fixture(scope="session")
def key() -> SigningKey:
    return SigningKey.generate()


@pytest.fixture(scope="session")
def other_key() -> SigningKey:
    return SigningKey.generate()
