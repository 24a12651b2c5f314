"""Emptying the work folder when a run ends: it holds texts and raw records, which are private.

Everything in it goes, whichever run left it, unless another run is at work: then only what this
one committed goes. No other run can still need that: the same input is in the version now.
"""

from __future__ import annotations

from collections.abc import Collection

from datapipe.dataset import Repository
from datapipe.dataset.workplace import emptying_work
from datapipe.engine.work import Piece, Work

__all__ = ["SHARED_STAGE", "empty_work"]

SHARED_STAGE = "tokenizer"
"""Pieces that runs on different inputs have in common."""

_AT_ONCE = 1000  # objects of one announcement


def empty_work(
    repository: Repository, work: Work, *, used: Collection[Piece], committed: bool
) -> None:
    """Deletes what is in the work folder of a dataset and nobody needs any more.

    Args:
        repository: the dataset; this run's transaction has ended.
        work: its work folder.
        used: the pieces of this run.
        committed: whether it made a version; else other runs may be about to make the same.

    Raises:
        DatasetError: the store can't be read or written.
    """
    paths = work.paths()
    own = frozenset(piece for piece in used if piece.stage != SHARED_STAGE)
    for start in range(0, len(paths), _AT_ONCE):
        some = paths[start : start + _AT_ONCE]
        with emptying_work(repository) as is_alone:
            if not is_alone:
                some = [path for path in some if committed and work.piece(path) in own]
            work.delete(some)
