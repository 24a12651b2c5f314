"""Golden values: change only with a format version."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import numpy as np

from datapipe.dataset import Committed, Dataset, Repository
from datapipe.dataset.digests import content_digest, logical_digest, order_digest
from datapipe.dataset.manifest import ConservationRow
from datapipe.testing import commit_small, small_draft

RAW = [hashlib.sha256(b"%d" % n).digest() for n in range(3)]
COLUMN = np.frombuffer(b"".join(RAW), dtype=np.uint8).reshape(-1, 32)
ROW = ConservationRow(
    source="web",
    kept=3,
    text_bytes=7,
    bytes_in=9,
    blank_lines=1,
    dropped={"a.b": 2},
    quarantined={},
)


def field(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data


def test_order_digest_agrees_with_its_definition() -> None:
    rows = b"".join(struct.pack("<q", n) + raw for n, raw in zip([5, 6, 7], RAW, strict=True))
    found = order_digest(np.array([5, 6, 7]), COLUMN)
    assert found == hashlib.sha256(rows).hexdigest()
    assert found == "2152b2bdba4af24f33924faae97cae1f2949999bda6c43fb99ffdac42387fbc6"


def test_content_digest_agrees_with_its_definition() -> None:
    rows = field(b"web") + field(RAW[0] + RAW[1]) + field(b"b") + field(RAW[2])
    found = content_digest([("web", COLUMN[:2]), ("b", COLUMN[2:])])
    assert found == hashlib.sha256(rows).hexdigest()
    assert found == "a152745e707acdbf9daedeede1585b78f32946ce539b27104a3245023ac6d4a0"


def test_logical_digest_agrees_with_its_definition() -> None:
    counts = b'[{"dropped":{"a.b":2},"kept":3,"quarantined":{},"source":"web"}]'
    data = b"".join(
        [
            field(b"content") + field(RAW[0]),
            field(b"docmap") + field(b"web") + field(RAW[1]),
            field(b"dropped") + field(RAW[2] + RAW[0]),
            field(b"quarantine") + field(b""),
            field(b"conservation") + field(counts),
        ]
    )
    found = logical_digest(
        content=RAW[0].hex(),
        docmaps=[("web", COLUMN[1:2])],
        dropped=[RAW[2].hex(), RAW[0].hex()],
        quarantine=[],
        conservation=[ROW],
    )
    assert found == hashlib.sha256(data).hexdigest()
    assert found == "5c3e4796d2c43f5b4616bed2d02c1068d473f555f42358cd605b16f866f75996"


def build(folder: Path, **options: object) -> Committed:
    repo = Repository(str(folder))
    repo.create()
    sources = {"web": [[3, 4], [5]], "books": [[9]]}
    draft = small_draft(repo, sources, **options)  # type: ignore[arg-type]
    return commit_small(repo, draft, author=folder.name, transaction=folder.name)


def test_equal_input_gives_equal_digests_in_any_folder(tmp_path: Path) -> None:
    first, second = build(tmp_path / "a", dropped=2), build(tmp_path / "b", dropped=2)
    assert first == second
    a, b = Repository(str(tmp_path / "a")), Repository(str(tmp_path / "b"))
    paths = [
        {i.path for i in r.store.list() if not i.path.startswith(("_log/", "format"))}
        for r in (a, b)
    ]
    assert paths[0] == paths[1]


def test_what_was_dropped_changes_logical_and_not_content(tmp_path: Path) -> None:
    first, second = build(tmp_path / "a", dropped=2), build(tmp_path / "b", dropped=1)
    assert first.content == second.content
    assert first.logical != second.logical
    assert first.manifest != second.manifest


def test_tokens_change_content(tmp_path: Path) -> None:
    first, second = build(tmp_path / "a"), build(tmp_path / "b", seed=1)
    assert first.content != second.content
    assert first.logical != second.logical


def test_digests_of_an_append_cover_the_whole(appended: Dataset) -> None:
    web = appended.shards("web")
    assert len(web) == 3
    expected = content_digest(
        (s.name, appended.shards(s.name).raw_sha256.raw) for s in appended.sources
    )
    assert appended.manifest.digests.content == expected
    assert appended.sources[0].order_digest == order_digest(web.num_tokens, web.raw_sha256.raw)
