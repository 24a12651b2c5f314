"""`datapipe sql`: a query over a version's tables, its result streamed."""

from __future__ import annotations

from typing import Annotated

import typer

from datapipe.cli.arguments import DatasetArgument
from datapipe.cli.rows import AsCsv, AsRows, Out, RowFormat, chosen_format, write_rows
from datapipe.lineage.sql import open_sql

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(sql)


def sql(
    dataset: DatasetArgument,
    statement: Annotated[
        str,
        typer.Argument(
            metavar="SELECT",
            help="One statement, in DuckDB's SQL, over the views documents, dropped, shards and "
            "quarantine.",
        ),
    ],
    as_json: AsRows = False,
    as_csv: AsCsv = False,
    out: Out = None,
) -> None:
    """Query documents, dropped, shards and quarantine with SQL."""
    given = RowFormat.JSON if as_json else RowFormat.CSV if as_csv else None
    form = chosen_format(given, out)
    with open_sql(dataset, statement) as rows:
        write_rows(rows, form, out)
