"""Every option of every command with values that nobody means: one line, never a fault."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from datapipe.cli import messages
from datapipe.cli.main import application, main

_LONG = "x" * 5_000
_WORDS = {
    "empty": "",
    "blank": " ",
    "huge": "9223372036854775807",
    "huger": "9" * 400,
    "negative": "-1",
    "nan": "nan",
    "inf": "inf",
    "infinite duration": "9" * 400 + "d",
    "control": "a\x1b[31m\x07\nb",
    "not UTF-8": os.fsdecode(b"\xff\xfe"),
    "long": _LONG,
    "long path": f"/tmp/{_LONG}/y",
    "deep path": "/tmp/" + "d/" * 3_000,
    "no user": "~nosuchuser/x",
    "tilde": "~.jsonl",
    "dots": "a..b",
    "spaces": "a b",
    "slash": "a/b",
    "at": "@",
    "url": "http://localhost:1/x",
    "memory": "memory://x",
    "unknown scheme": "nosuch://x",
    "no bucket": "s3://",
    "with password": "s3://u:p@b/x",
    "file URL": "file://host/x",
    "a file": "{file}",
    "a folder": "{folder}",
    "below a file": "{file}/x",
    "a device": "/dev/null",
    "unwritable": "/proc/x",
    "long name": "x" * 300,
    "one slash": "s3:/b/x",
    "file without slashes": "FILE:rel",
}
_VALID = {
    "build": ["{file}", "-t", "{tokenizer}", "-o", "{new}", "-j", "1", "-q"],
    "preview": ["{file}", "-q"],
    "append": ["{dataset}", "{file}", "-j", "1", "-q"],
    "init": ["{new}.yaml"],
    "show": ["{dataset}"],
    "log": ["{dataset}"],
    "diff": ["{dataset}", "1", "1"],
    "tag": ["{dataset}", "a"],
    "index": ["{dataset}", "--dry-run", "-q"],
    "gc": ["{dataset}", "-q"],
    "hold": ["{dataset}", "1"],
    "verify": ["{dataset}", "-q"],
    "rebuild": ["{dataset}", "-j", "1", "-q"],
    "read": ["{dataset}"],
    "key new": ["{new}.key"],
    "sign": ["{dataset}", "--key", "{file}"],
    "export": ["{dataset}", "--to", "megatron", "-o", "{new}-export", "-q"],
    "lineage batch": ["{dataset}", "--run", "r", "--step", "1"],
    "lineage doc": ["{dataset}", "d1", "--run", "r"],
    "lineage why": ["{dataset}", "d1", "-q"],
    "tokenizer show": ["{tokenizer}"],
    "tokenizer check": ["{tokenizer}", "{file}", "-q"],
    "tokenizer train": ["{file}", "-o", "{new}.json", "--vocab-size", "300", "-q"],
}
"""Words that a command takes; of one that isn't listed, whatever it asks for."""
_TAKES_ANY = {"--reason", "--author"}
"""Free text: only what can't be recorded is refused."""

_SHARES = {"--max-quarantined", "--max-dropped", "--sample"}


def _leaves(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    for child, sub in getattr(command, "commands", {}).items():
        yield from _leaves(sub, f"{name} {child}".strip())
    if not hasattr(command, "commands"):
        yield name, command


_COMMANDS = dict(_leaves(typer.main.get_command(application([]))))
_COMMANDS.pop("demo")  # without a wrong word it takes a minute


def _filled(command: Any, name: str) -> list[str]:
    """Returns words that give a command all it asks for."""
    if name in _VALID:
        return list(_VALID[name])
    words = []
    for parameter in command.params:
        if parameter.required:
            option = [] if parameter.param_type_name == "argument" else [parameter.opts[0]]
            words += [*option, "{dataset}" if parameter.name == "dataset" else "1"]
    return words


def _variants(command: Any, name: str, word: str) -> Iterator[tuple[str, list[str]]]:
    """Yields each option and argument of a command with `word` in its place."""
    given = _filled(command, name)
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            position = arguments.index(parameter)
            yield parameter.name, [*given[:position], word, *given[position + 1 :]]
        elif not parameter.is_flag and parameter.name != "help":
            yield parameter.opts[0], [*given, f"{parameter.opts[0]}={word}"]


@pytest.fixture
def places(tmp_path: Path, tokenizer_path: Path, made: Path) -> dict[str, str]:
    """Where the words of `_VALID` point to."""
    (tmp_path / "a.jsonl").write_text('{"id": "d1", "text": "the fox"}\n{"text": "jumps"}\n')
    (tmp_path / "folder").mkdir()
    names = {"file": "a.jsonl", "folder": "folder", "new": "new"}
    found = {name: str(tmp_path / path) for name, path in names.items()}
    return {**found, "dataset": str(made), "tokenizer": str(tokenizer_path)}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, tokenizer_path: Path) -> Path:
    folder = tmp_path_factory.mktemp("made")
    (folder / "a.jsonl").write_text(json.dumps({"id": "d1", "text": "the quick fox"}) + "\n")
    words = ["build", folder / "a.jsonl", "-t", tokenizer_path, "-o", folder / "ds", "-j1", "-q"]
    with pytest.raises(SystemExit):
        main([str(word) for word in words])
    return folder / "ds"


@pytest.mark.parametrize("word", _WORDS.values(), ids=_WORDS)
@pytest.mark.parametrize("name", _COMMANDS)
def test_a_wrong_word_is_one_line(
    name: str,
    word: str,
    places: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = []
    for option, words in _variants(_COMMANDS[name], name, word):
        filled = [*name.split(), *(part.format(**places) for part in words)]
        with pytest.raises(SystemExit) as exited:
            main(filled)
        code, err = int(exited.value.code or 0), capfd.readouterr().err
        lines = [line for line in err.splitlines() if "warning: " not in line]
        if (
            code not in (0, 1, 2, 3)
            or "fault of datapipe" in err
            or "Errno" in err
            or len(lines) != (code != 0)
        ):
            wrong.append((option, code, err[-600:]))
        if any(Path().glob("*:*")):
            wrong.append((option, code, f"made a folder of {word}"))
        if not word.strip() and option not in _TAKES_ANY and code != 2:
            wrong.append((option, code, f"took {word!r}: {err[-200:]}"))
        if word in ("nan", "inf", "-1") and option in _SHARES and code != 2:
            wrong.append((option, code, f"took {word}: {err[-200:]}"))
        if word == os.fsdecode(b"\xff\xfe") and code != 2:
            wrong.append((option, code, f"took bytes that aren't UTF-8: {err[-200:]}"))
    assert wrong == []


_SECRET = "Sesame7"
_SECRETS = {
    "https": f"https://user:{_SECRET}@host.invalid/x.yaml?X-Amz-Signature={_SECRET}",
    "query": f"https://host.invalid/x.jsonl?token={_SECRET}",
    "s3": f"s3://KEY:{_SECRET}@bucket/x.csv",
    "slash in it": f"s3://KEY:a/{_SECRET}@bucket/x.csv",
    "one slash": f"https:/user:{_SECRET}@host/x.json",
    "chained": f"simplecache::s3://KEY:{_SECRET}@bucket/x.csv",
    "unknown": f"foo://user:{_SECRET}@host/x?token={_SECRET}",
    "file": f"file://user:{_SECRET}@host/x",
}
_PLACES = {
    *("dataset", "inputs", "path", "tokenizer"),
    *("--out", "--work", "--runs", "--inputs", "--repair-from", "--tokenizer"),
    *("--key", "--sign-key", "--author", "--reason"),
}
"""Where a URL may be meant: there each message must be fit to be printed by itself."""


@pytest.mark.parametrize("word", _SECRETS.values(), ids=_SECRETS)
@pytest.mark.parametrize("name", _COMMANDS)
def test_no_secret_of_a_url_is_shown_or_written(
    name: str,
    word: str,
    places: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    leaks = []
    for option, words in _variants(_COMMANDS[name], name, word):
        filled = [*name.split(), *(part.format(**places) for part in words)]
        for is_bare in (False, True) if option in _PLACES else (False,):
            if is_bare:
                monkeypatch.setattr(messages, "printable_urls", str)
            with pytest.raises(SystemExit) as exited:
                main(filled if is_bare else ["--debug", *filled])
            monkeypatch.undo()
            monkeypatch.chdir(tmp_path)
            shown = "".join(capfd.readouterr())
            if _SECRET in shown:
                leaks.append((option, is_bare, exited.value.code, shown[-600:]))
    for folder in (tmp_path, Path(places["dataset"]), Path(os.environ["XDG_STATE_HOME"])):
        for path in folder.rglob("*"):
            if _SECRET in str(path) or (path.is_file() and _SECRET.encode() in path.read_bytes()):
                leaks.append(("written", False, 0, str(path)))
    assert leaks == []
