"""Training data: raw documents to versioned token shards to GPU ranks, with lineage.

    datapipe.build("recipe.yaml", out="dataset")              # -> Dataset
    dataset = datapipe.open("dataset@3")                      # number, tag, digest, time
    stream = datapipe.TokenStream(dataset, seq_len=2048, batch_size=8)

Importing this package is light: what needs torch or pyarrow is imported at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from datapipe._version import __version__ as __version__
from datapipe.errors import MissingExtraError

if TYPE_CHECKING:
    from datapipe.dataset import Dataset
    from datapipe.dataset import open_dataset as open
    from datapipe.engine import append, build
    from datapipe.load import Phase, TokenStream

__all__ = ["Dataset", "Phase", "TokenStream", "append", "build", "open"]

_HOMES = {
    "Dataset": ("datapipe.dataset", "Dataset"),
    "Phase": ("datapipe.load", "Phase"),
    "TokenStream": ("datapipe.load", "TokenStream"),
    "append": ("datapipe.engine", "append"),
    "build": ("datapipe.engine", "build"),
    "open": ("datapipe.dataset", "open_dataset"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'datapipe' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise MissingExtraError(
            f"datapipe.{name} needs torch, which isn't installed: pip install "
            "'datapipe-train[torch]'"
        ) from error


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
