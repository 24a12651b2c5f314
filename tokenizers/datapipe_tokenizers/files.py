"""A tokenizer's files: which ones on disk belong to it, and their bytes under canonical names."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from datapipe_tokenizers.errors import TokenizerFileError

__all__ = ["COMPANIONS", "MAX_FILE_BYTES", "TOKENIZER_JSON", "read_files"]

TOKENIZER_JSON = "tokenizer.json"
COMPANIONS = ("tokenizer_config.json", "special_tokens_map.json")
"""Read beside tokenizer.json when a folder is given: they name the end-of-text token."""

MAX_FILE_BYTES = 1 << 29
"""Larger files aren't tokenizers: the largest published tokenizer.json has about 35 MB."""


def read_files(path: str | Path) -> dict[str, bytes]:
    """Returns the files of the tokenizer at `path`, a folder or a tokenizer.json.

    A file stands for itself: what lies beside it isn't looked at. Of a folder, tokenizer.json and
    the files that name its special tokens are taken.

    Raises:
        TokenizerFileError: nothing there, not readable, or a folder without tokenizer.json.
    """
    path = Path(path)
    if path.is_dir():
        return _read_folder(path)
    if not path.exists():
        raise _missing(path)
    return {TOKENIZER_JSON: _read(path)}


def _read_folder(folder: Path) -> dict[str, bytes]:
    main = folder / TOKENIZER_JSON
    if not main.is_file():
        found = sorted(entry.name for entry in folder.iterdir())
        listed = ", ".join(found[:8]) + (", ..." if len(found) > 8 else "") if found else "nothing"
        raise TokenizerFileError(
            f"folder {folder} has no {TOKENIZER_JSON} (found: {listed}); only Hugging Face's "
            f"{TOKENIZER_JSON} can be read. Name a folder that has one, or convert the tokenizer "
            "with `transformers`: AutoTokenizer.from_pretrained(...).save_pretrained(...)",
            path=str(folder),
        )
    names = [name for name in COMPANIONS if (folder / name).is_file()]
    return {TOKENIZER_JSON: _read(main)} | {name: _read(folder / name) for name in names}


def _read(path: Path) -> bytes:
    try:
        num_bytes = path.stat().st_size
        if num_bytes > MAX_FILE_BYTES:
            raise TokenizerFileError(
                f"{path} has {num_bytes:,} bytes, more than any tokenizer; it wasn't read. "
                f"Name a {TOKENIZER_JSON} or a folder that has one",
                path=str(path),
            )
        return path.read_bytes()
    except OSError as error:
        if isinstance(error, TokenizerFileError):
            raise
        raise TokenizerFileError(
            f"tokenizer file {path} can't be read: {error.strerror or error}. "
            "Check its permissions",
            path=str(path),
        ) from error


def _missing(path: Path) -> TokenizerFileError:
    near = _near_names(path)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return TokenizerFileError(
        f"tokenizer {path} doesn't exist.{hint} Name a folder or a {TOKENIZER_JSON} on this "
        "machine; names on a hub aren't downloaded",
        path=str(path),
    )


def _near_names(path: Path) -> list[str]:
    """Existing paths whose name is near the one given, beside it or one folder further up."""
    for parent, name in ((path.parent, path.name), (path.parent.parent, path.parent.name)):
        if parent.is_dir():
            names = sorted(entry.name for entry in parent.iterdir())
            near = get_close_matches(name, names, n=2, cutoff=0.7)
            return [str(parent / match) for match in near]
    return []
