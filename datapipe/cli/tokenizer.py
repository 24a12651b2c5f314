"""`datapipe tokenizer train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from datapipe.cli.arguments import AsJson, Quiet, count, file_name
from datapipe.cli.output import Output
from datapipe.cli.progress import progress
from datapipe.engine import train_tokenizer
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
TextField = Annotated[str, typer.Option("--text-field", help="Field that holds the text.")]


def register(app: typer.Typer) -> None:
    """Adds the command group."""
    group = typer.Typer(
        name="tokenizer", help="Make tokenizers.", no_args_is_help=True, rich_markup_mode=None
    )
    group.callback()(_group)
    group.command()(train)
    app.add_typer(group)


def _group() -> None:
    """Make tokenizers."""


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
