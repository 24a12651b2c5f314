from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from datapipe.cli.main import main


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Runs the command line in this process."""

    def run(*words: object) -> Ended:
        with pytest.raises(SystemExit) as exited:
            main([str(word) for word in words])
        captured = capsys.readouterr()
        return Ended(int(exited.value.code or 0), captured.out, captured.err)

    return run
