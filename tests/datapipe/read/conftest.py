from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from datapipe.testing import Reading, read_bytes


@pytest.fixture(scope="session")
def read(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Reading]:
    """Reads a file of the given name that holds the given bytes."""
    folder = tmp_path_factory.mktemp("inputs")

    def read(name: str, data: bytes, **options: Any) -> Reading:
        return read_bytes(Path(folder, name), data, **options)

    return read
