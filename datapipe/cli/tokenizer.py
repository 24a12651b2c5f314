"""`datapipe tokenizer train`, `show` and `check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from datapipe.cli.arguments import AsJson, Quiet, count, file_name
from datapipe.cli.output import Output, table
from datapipe.cli.progress import progress
from datapipe.engine import check_tokenizer, show_tokenizer, train_tokenizer
from datapipe.errors import FailedError, UsageError
from datapipe_tokenizers import MAX_VOCAB_SIZE

__all__ = ["register"]

Paths = Annotated[
    list[str], typer.Argument(metavar="PATH", help="Files, folders and globs to learn from.")
]
Out = Annotated[Path, typer.Option("--out", "-o", help="The file to write.", callback=file_name)]
VocabSize = Annotated[
    int, typer.Option("--vocab-size", min=257, max=MAX_VOCAB_SIZE, help="Number of tokens.")
]
MaxBytes = Annotated[
    int,
    typer.Option(
        "--max-bytes", min=1, callback=count, help="Bytes of text to learn from, at most."
    ),
]
TokenizerPath = Annotated[
    str,
    typer.Argument(
        metavar="TOKENIZER", help="A tokenizer's file or folder, or an encoding's name."
    ),
]
Documents = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH", help="Files, folders and globs to encode."),
]
Eos = Annotated[
    str | None, typer.Option("--eos", help="Its end-of-text token, where it names none.")
]
TextField = Annotated[str, typer.Option("--text-field", help="Field that holds the text.")]


def _field(given: str) -> str:
    """Returns the name of a field. Raises: UsageError: no record can have such a field."""
    if not given.strip() or not given.isprintable():
        raise UsageError(f"{given!r} names no field; nothing was done; give a field of the records")
    return given


def register(app: typer.Typer) -> None:
    """Adds the command group."""
    group = typer.Typer(
        name="tokenizer",
        help="Make and check tokenizers.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.callback()(_group)
    for command in (train, show, check):
        group.command()(command)
    app.add_typer(group)


def _group() -> None:
    """Make and check tokenizers."""


def train(
    inputs: Paths,
    out: Out = Path("tokenizer.json"),
    vocab_size: VocabSize = 32_000,
    text_field: TextField = "text",
    max_bytes: MaxBytes = 100_000_000,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train a byte-level BPE tokenizer; the same input gives the same file.

    For example: datapipe tokenizer train crawl/ --vocab-size 32000 --out tokenizer.json
    """
    with progress(quiet=quiet) as listener:
        data = train_tokenizer(
            inputs,
            out=out,
            vocab_size=vocab_size,
            text_field=text_field,
            max_bytes=max_bytes,
            overwrite=force,
            progress=listener,
        )
    line = f"wrote {data['tokenizer']}: {data['vocab_size']:,} tokens, EOS {data['eos']}"
    Output(as_json=as_json).result(data, lambda console: console.print(line, markup=False))


def show(tokenizer: TokenizerPath, eos: Eos = None, as_json: AsJson = False) -> None:
    """Show what a tokenizer is: vocabulary, end-of-text token, backend, digests.

    For example: datapipe tokenizer show cl100k_base.tiktoken
    """
    data = show_tokenizer(tokenizer, eos=eos)
    Output(as_json=as_json).result(data, lambda console: _draw_facts(console, data))


def _draw_facts(console: Console, data: dict[str, Any]) -> None:
    specials = data["special_tokens"]
    listed = ", ".join(list(specials)[:8]) + (", ..." if len(specials) > 8 else "")
    reason = data["backend_reason"]
    rows = [
        ("files", ", ".join(f"{name} ({size:,} bytes)" for name, size in data["files"].items())),
        ("tokens", f"{data['vocab_size']:,}, ids to {data['max_id']:,} ({data['token_dtype']})"),
        ("end of text", f"{data['eos']['token']} ({data['eos']['id']})"),
        ("special tokens", f"{len(specials):,}: {listed}" if specials else "none"),
        ("backend", data["backend"] + (f": {reason}" if reason else "")),
        ("reference", data["reference"]),
        ("vocabulary", data["vocabulary"]),
        ("canary", data["canary"]),
    ]
    for name, value in rows:
        console.print(f"{name:<15}{value}", markup=False)


def check(
    tokenizer: TokenizerPath,
    inputs: Documents = None,
    eos: Eos = None,
    text_field: TextField = "text",
    language_field: Annotated[
        str,
        typer.Option("--language-field", help="Field that holds the language.", callback=_field),
    ] = "language",
    max_bytes: Annotated[
        int,
        typer.Option(
            "--max-bytes", min=1, callback=count, help="Bytes of text to encode, at most."
        ),
    ] = 20_000_000,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Encode documents with every backend and compare: agreement, speed, tokens per byte.

    For example: datapipe tokenizer check tokenizer.json crawl/
    """
    with progress(quiet=quiet) as listener:
        data = check_tokenizer(
            tokenizer,
            inputs or [],
            eos=eos,
            text_field=text_field,
            language_field=language_field,
            max_bytes=max_bytes,
            progress=listener,
        )
    Output(as_json=as_json).result(data, lambda console: _draw_check(console, data))
    if data["differences"]:
        raise FailedError(
            f"the backends of {tokenizer} differ: {data['differences'][0]}. Build with `tokenize: "
            "{backend: reference}`, and report this document"
        )


def _draw_check(console: Console, data: dict[str, Any]) -> None:
    for backend in data["backends"]:
        speed = backend["mb_per_second"]
        state = "gives the reference's ids" if backend["usable"] else backend["reason"]
        if backend["name"] == data["reference"]:
            state = "the reference"
        measured = "" if speed is None else f", {speed:,.1f} MB/s"
        console.print(f"{backend['name']}: {state}{measured}", markup=False)
    for name in ("files", "languages"):
        if data[name]:
            rows = [
                (
                    key,
                    row["documents"],
                    row["bytes"],
                    row["tokens"],
                    f"{row['tokens_per_byte']:.4f}",
                )
                for key, row in data[name].items()
            ]
            columns = [name[:-1], "documents", "bytes", "tokens", "tokens per byte"]
            console.print(table(columns, rows))
    for difference in data["differences"]:
        console.print(difference, markup=False)
