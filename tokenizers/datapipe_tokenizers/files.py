"""A tokenizer's files: which ones on disk belong to it, and their bytes under canonical names."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

from datapipe_tokenizers.encodings import (
    KNOWN,
    dump_encoding,
    fetch_encoding,
    known_encoding,
)
from datapipe_tokenizers.errors import TokenizerFileError
from datapipe_tokenizers.formats import ENCODING, MAIN_FILES, RANKS, file_kind
from datapipe_tokenizers.tiktoken import dump_ranks

__all__ = ["COMPANIONS", "MAX_FILE_BYTES", "read_files"]

COMPANIONS = ("tokenizer_config.json", "special_tokens_map.json")
"""Read beside tokenizer.json when a folder is given: they name the end-of-text token."""

MAX_FILE_BYTES = 1 << 29
"""Larger files aren't tokenizers: the largest published tokenizer.json has about 35 MB."""


_URL = re.compile(r"([A-Za-z][\w+.-]+):(?:/|.*:/)")


def read_files(path: str | Path) -> dict[str, bytes]:
    """Returns the files of a tokenizer by the names of `formats.MAIN_FILES`.

    A file stands for itself: what lies beside it isn't looked at, except the encoding.json of a
    rank file. Of a folder, one file of a known format and those that name its special tokens are
    taken. What isn't there may be the name of an encoding that tiktoken knows.

    Raises:
        TokenizerFileError: nothing there, not readable, or a folder without a tokenizer.
        MissingPackageError: the name of an encoding, and tiktoken isn't installed.
    """
    given, path = str(path), Path(path)
    if path.is_dir():
        return _read_folder(path)
    if path.exists():
        return _read_main(path)
    if path.name == str(path) and (fetched := fetch_encoding(path.name)):
        ranks, encoding = fetched
        return {RANKS: dump_ranks(ranks), ENCODING: dump_encoding(encoding)}
    url = _URL.match(given)
    if url is not None:
        # No more of it is repeated: it may hold credentials.
        raise TokenizerFileError(
            f"what begins with {url[1]}: is a URL, and tokenizers are read from local files only; "
            "nothing was read. Copy it here and name its path"
        )
    raise _missing(path)


def _read_folder(folder: Path) -> dict[str, bytes]:
    main = _main_file(folder)
    if main is None:
        found = sorted(entry.name for entry in folder.iterdir())
        listed = ", ".join(found[:8]) + (", ..." if len(found) > 8 else "") if found else "nothing"
        raise TokenizerFileError(
            f"folder {folder} has no tokenizer.json, tekken.json, tokenizer.model or rank file "
            f"(found: {listed}). Name the file itself, or convert the tokenizer "
            "with `transformers`: AutoTokenizer.from_pretrained(...).save_pretrained(...)",
            path=str(folder),
        )
    names = [name for name in COMPANIONS if (folder / name).is_file()]
    return _read_main(main) | {name: _read(folder / name) for name in names}


def _main_file(folder: Path) -> Path | None:
    named = [folder / name for name in MAIN_FILES]
    ranked = sorted(folder.glob("*.tiktoken"))
    others = ranked if len(ranked) == 1 else []
    return next((path for path in (*named, *others) if path.is_file()), None)


def _read_main(path: Path) -> dict[str, bytes]:
    data = _read(path)
    kind = file_kind(data)
    return {kind: data} if kind != RANKS else {RANKS: data, ENCODING: _encoding(path)}


def _encoding(path: Path) -> bytes:
    """The encoding.json of a rank file: a published one's, known by its name, or beside it."""
    known = known_encoding(path.name)
    if known is not None:
        return dump_encoding(known)
    if (path.parent / ENCODING).is_file():
        return _read(path.parent / ENCODING)
    raise TokenizerFileError(
        f"{path} holds ranks without the pattern that splits text, and its name isn't one of "
        f"{', '.join(f'{name}.tiktoken' for name in KNOWN)}; it can't be used alone. Put an "
        f'{ENCODING} beside it: {{"name": ..., "pattern": REGULAR EXPRESSION, '
        '"special_tokens": {TEXT: ID}}',
        path=str(path),
    )


def _read(path: Path) -> bytes:
    try:
        num_bytes = path.stat().st_size
        if num_bytes > MAX_FILE_BYTES:
            raise TokenizerFileError(
                f"{path} has {num_bytes:,} bytes, more than any tokenizer; it wasn't read. "
                "Name a tokenizer's file or its folder",
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
        f"tokenizer {path} doesn't exist.{hint} Name a tokenizer's file or its folder on this "
        f"machine, or an encoding of tiktoken ({', '.join(KNOWN)}); names on a hub aren't "
        "downloaded",
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
