"""Results on standard output, as text for people or JSON for machines, through one interface."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, TextIO

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from datapipe.cli.messages import printable
from datapipe.cli.streams import abandon_output
from datapipe.errors import FailedError

__all__ = ["Output", "cell_text", "stderr_console", "table"]


_PIPED_WIDTH = 10_000  # a line of a table stays a line for grep and cut


class _Results(Console):
    """Shows what comes from data as printable text: a terminal would obey its escape sequences."""

    def print(self, *objects: Any, **options: Any) -> None:
        shown = (printable(item) if isinstance(item, str) else item for item in objects)
        super().print(*shown, **options)

    def on_broken_pipe(self) -> None:
        self.quiet = True
        raise  # rich would end the process


def _width(stream: TextIO) -> int | None:
    return None if stream.isatty() else _PIPED_WIDTH


class Output:
    """Where a command's result goes; `as_json` decides how it looks."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._console = _Results(highlight=False, soft_wrap=True, width=_width(sys.stdout))

    def result(self, data: Any, draw: Callable[[Console], None], *, done: str = "") -> None:
        """Prints `data` as one JSON value, or what `draw` shows of it.

        A reader that has seen enough isn't told more.

        Raises:
            FailedError: standard output doesn't take it; says what was `done` all the same.
        """
        with _delivering(done):
            if self.as_json:
                encoded = msgspec.json.format(msgspec.json.encode(data), indent=2)
                sys.stdout.write(encoded.decode() + "\n")
            else:
                draw(self._console)
            sys.stdout.flush()

    def pages(self, drawn: Iterable[Table]) -> None:
        """Prints tables as they come, until a reader has seen enough. Raises: as `result`."""
        with _delivering(""):
            for page in drawn:
                self._console.print(page)
            sys.stdout.flush()

    @contextmanager
    def stream(self) -> Iterator[IO[bytes]]:
        """Yields standard output for bytes; ends the block when a reader has seen enough.

        Raises:
            FailedError: standard output doesn't take them.
        """
        with _delivering(""):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()


@contextmanager
def _delivering(done: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # a reader such as `head` has seen enough
        abandon_output()
    except OSError as error:
        abandon_output()
        kept = f"; {done} all the same" if done else ""
        raise FailedError(
            f"the result can't be written to standard output: {error.strerror}{kept}. Give it a "
            "file or pipe that takes it"
        ) from error


def stderr_console() -> Console:
    """Returns the console for progress and messages."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "") -> Table:
    """Returns a table whose number columns stand to the right; cells are plain text."""
    listed = [list(row) for row in rows]
    drawn = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for position, name in enumerate(columns):
        numeric = bool(listed) and all(isinstance(row[position], int | float) for row in listed)
        drawn.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in listed:
        drawn.add_row(*(Text(cell_text(value)) for value in row))
    return drawn


def cell_text(value: object) -> str:
    """Returns a value as tables show it."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return printable(str(value)).replace("\n", "\\n")
