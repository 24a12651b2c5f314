from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from datapipe.dataset import open_dataset
from datapipe.testing import make_dataset


def test_a_rollback_is_accepted_once_by_hand(command: Callable[..., Any], tmp_path: Path) -> None:
    url = str(tmp_path / "ds")
    make_dataset(url, {"web": [[[3, 4, 0]]]})
    make_dataset(url, {"web": [[[5, 0]]]})
    assert open_dataset(url).version == 2
    (tmp_path / "ds/_log" / f"{2:020d}.json").unlink()
    (tmp_path / "ds/_log/HINT").write_text("1")
    for words in (["show"], ["verify", "-q"], ["read"]):
        refused = command(*words, url)
        assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)
        assert "is 1, but version 2 was there" in refused.err
    assert f"`datapipe show {url} --accept-rollback`" in refused.err
    assert command("show", url, "--accept-rollback", "--json").json()["version"] == 1
    assert command("show", url, "--json").json()["version"] == 1
