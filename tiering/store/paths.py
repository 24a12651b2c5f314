"""Object paths: relative, `/`-separated, nothing that could leave the store or hide in it."""

from __future__ import annotations

__all__ = ["RESERVED", "check_path", "check_prefix", "is_path"]

RESERVED = ".tiering"
"""A part of this name belongs to the local backend (unfinished writes, its lock): never listed."""


def check_path(path: str) -> str:
    """Returns `path`. Raises: ValueError: it can't be the path of an object."""
    problem = _problem(path.split("/")) if path else "it is empty"
    if problem:
        raise ValueError(
            f"{path!r} can't be an object's path: {problem}; nothing was read or written; "
            "give a relative path such as 'tokens/ab/name'"
        )
    return path


def is_path(path: str) -> bool:
    """Returns whether an object of this path can be asked for; others' objects need not have."""
    return bool(path) and _problem(path.split("/")) is None


def check_prefix(prefix: str) -> str:
    """Returns `prefix`; its last part may be incomplete. Raises: ValueError: no path has it."""
    folders = prefix.split("/")[:-1]
    problem = _problem(folders) if folders else None
    if problem or "\0" in prefix:
        raise ValueError(
            f"{prefix!r} can't begin an object's path: {problem or 'it holds a NUL'}; "
            "nothing was listed; give a relative prefix such as 'tokens/'"
        )
    return prefix


def _problem(parts: list[str]) -> str | None:
    if parts[0] == "":
        return "it is absolute"
    for part in parts:
        if part in ("", ".", ".."):
            return f"it has the part {part!r}"
        if part == RESERVED:
            return f"{RESERVED!r} is reserved"
        if "\0" in part:
            return "it holds a NUL"
        if not part.isprintable() and any("\ud800" <= c <= "\udfff" for c in part):
            return "it isn't UTF-8"
    return None
