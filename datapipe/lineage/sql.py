"""SQL over a version's tables, with DuckDB on the dataset's own store.

The statement runs in a database of its own in memory that sees four views and nothing else: no
files, no network, no extensions, no variables of this program, and no way to change that. Results
come in batches as they are made. DuckDB belongs to the extra `sql` and is imported at first use.

DuckDB pulls rows through streams of our own, which read one table after the other and only the
columns that DuckDB's plan names. (A pyarrow dataset would read ahead on threads that need Python's
lock, while DuckDB, ending a query early, holds it and waits for them.)
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from datapipe.dataset import Dataset, open_dataset
from datapipe.dataset.find import domain_wanted, tables_of
from datapipe.dataset.index import TableName
from datapipe.dataset.scan import TableStream, documents_stream, dropped_stream
from datapipe.errors import DatapipeError, DatasetError, MissingExtraError, UsageError

if TYPE_CHECKING:
    import duckdb

__all__ = ["VIEWS", "SqlRows", "open_sql", "rows_where"]

VIEWS = ("documents", "dropped", "shards", "quarantine", "signals")
"""What a statement can select from. Hashes and digests are lower-case hex in them."""

T = TypeVar("T")

_BATCH_ROWS = 10_000
_PATIENCE_SECONDS = 0.1
_CLOSED = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
}
_NO_FILES = "set enable_external_access = false"
"""Said after connecting: said with the configuration, DuckDB goes on letting statements at a file
of its database's name, `:memory:`, in the current folder. What stays open is the folder that the
statement's own rows are spilled to."""
_READING = ("SELECT", "MULTI")
"""MULTI: a pivot. No EXPLAIN, which with ANALYZE runs what it explains, nor CALL and PRAGMA, some
of which change settings or write; `describe` and `show tables` are SELECT."""


class SqlRows:
    """The result of a statement: read once, while its block lasts."""

    def __init__(self, views: _Views, relation: duckdb.DuckDBPyRelation, worker: _Worker) -> None:
        self._views, self._relation, self._worker = views, relation, worker
        self.columns: tuple[str, ...] = tuple(relation.columns)
        """Their names, all different."""

    def batches(self, *, as_text: bool = False) -> Iterator[pa.RecordBatch]:
        """Yields the rows; the first batch comes even where there are none.

        Args:
            as_text: every value as DuckDB writes it, null as null.

        Raises:
            UsageError: a value can't be computed.
            DatasetError: a table of the dataset can't be read.
        """
        relation = self._relation.project("columns(*)::varchar") if as_text else self._relation
        with self._views.meaning():
            reader = self._worker.run(lambda: relation.to_arrow_reader(_BATCH_ROWS))
        try:
            yield pa.RecordBatch.from_pylist([], schema=reader.schema)
            while True:
                with self._views.meaning():
                    batch = self._worker.run(lambda: next(reader, None))
                if batch is None:
                    return
                yield batch
        finally:
            reader.close()


@contextmanager
def open_sql(dataset: Dataset | str, statement: str) -> Iterator[SqlRows]:
    """Runs one statement over the views of a version and yields its rows.

    Args:
        dataset: a dataset version.
        statement: SQL of DuckDB, one statement that returns rows.

    Raises:
        MissingExtraError: DuckDB isn't installed.
        UsageError: the statement can't be run.
        DatasetError: a table of the dataset can't be read.
    """
    opened = open_dataset(dataset) if isinstance(dataset, str) else dataset
    with _run(_Views(opened, statement), statement) as rows:
        yield rows


@contextmanager
def rows_where(
    dataset: Dataset | str, where: str, *, domain: str | None = None, limit: int | None = None
) -> Iterator[SqlRows]:
    """Yields the documents of a version for which a condition holds, all columns.

    Args:
        dataset: a dataset version.
        where: a condition in SQL on the columns of the view `documents`.
        domain: only documents of this host; with an index of domains, only shards that have one
            are read.
        limit: at most so many.

    Raises:
        As `open_sql`.
    """
    opened = open_dataset(dataset) if isinstance(dataset, str) else dataset
    rest = f" limit {limit:d}" if limit is not None else ""
    tables = None
    if domain is not None:
        tables = tables_of(opened, domain_wanted(domain))
        rest = " and domain = '{}'{}".format(domain.replace("'", "''"), rest)
    # The line feeds end a comment in the condition.
    statement = f"select * from documents where (\n{where}\n){rest}"
    with _run(_Views(opened, statement, tables=tables), statement) as rows:
        yield rows


@contextmanager
def _run(views: _Views, statement: str) -> Iterator[SqlRows]:
    with tempfile.TemporaryDirectory(prefix="datapipe-sql-") as folder:
        config = {**_CLOSED, "temp_directory": folder}
        connection = views.engine.connect(":memory:", config=config)
        try:
            connection.execute(_NO_FILES)
            views.make(connection)
            connection.execute("set TimeZone = 'UTC'; set lock_configuration = true")
            relation = _relation(views, connection, statement)
            views.leave_unread(connection, statement)
            with closing(_Worker(connection)) as worker:
                yield SqlRows(views, relation, worker)
        finally:
            connection.close()


class _Worker:
    """A thread that DuckDB works in: in the main one it would keep signals waiting."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._thread = ThreadPoolExecutor(1)

    def run(self, work: Callable[[], T]) -> T:
        """Returns what `work` does; stops it when the caller is interrupted."""
        future = self._thread.submit(work)
        try:
            return future.result()
        except BaseException:
            while not future.done():
                self._connection.interrupt()
                wait([future], timeout=_PATIENCE_SECONDS)
            raise

    def close(self) -> None:
        """Ends the thread."""
        self._thread.shutdown()


class _Views:
    """What a statement may read: made only where its text has the name."""

    def __init__(
        self, dataset: Dataset, statement: str, *, tables: Collection[TableName] | None = None
    ) -> None:
        self.engine = _duckdb()
        makers: dict[str, Callable[[], TableStream | pa.Table]] = {
            "documents": lambda: documents_stream(dataset, tables=tables),
            "dropped": lambda: dropped_stream(dataset),
            "shards": lambda: dataset.whole_table("shards"),
            "quarantine": dataset.quarantine,
            "signals": dataset.signals,
        }
        text = statement.lower()
        self._sources = {name: make() for name, make in makers.items() if name in text}

    def make(self, connection: Any) -> None:
        """Makes the views in a database."""
        for name, source in self._sources.items():
            connection.register(f"_{name}", source)
            columns = ", ".join(_shown(field) for field in source.schema)
            connection.execute(f"create view {name} as select {columns} from _{name}")

    def leave_unread(self, connection: Any, statement: str) -> None:
        """Spares reading columns which the plan doesn't have and the statement doesn't name."""
        planned = _planned_columns(connection, statement)
        if planned is None:
            return
        for source in self._sources.values():
            if isinstance(source, TableStream):
                names = source.schema.names
                source.leave_null(
                    [n for n in names if n not in planned and n not in statement.lower()]
                )

    @contextmanager
    def meaning(self) -> Iterator[None]:
        """Turns what DuckDB says into one line: of the statement, or of the dataset behind it."""
        try:
            yield
        except (self.engine.Error, pa.ArrowException, OSError) as error:
            failure = self._failure()
            if failure is not None:
                raise DatasetError(
                    f"the result isn't whole, the dataset couldn't be read to the end: {failure}"
                ) from failure
            line = " ".join(str(error).split("\n\nLINE ")[0].split())
            if isinstance(error, self.engine.BinderException | self.engine.CatalogException):
                line += f" (views are {', '.join(VIEWS)}; `describe documents` lists columns)"
            raise UsageError(line) from error

    def _failure(self) -> DatapipeError | None:
        streams = [s for s in self._sources.values() if isinstance(s, TableStream)]
        return next((stream.failure for stream in streams if stream.failure is not None), None)


def _duckdb() -> Any:
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "SQL needs DuckDB, which isn't installed: pip install 'datapipe-train[sql]'"
        ) from error
    return duckdb


def _shown(field: pa.Field) -> str:
    name = f'"{field.name}"'
    if pa.types.is_fixed_size_binary(field.type):
        return f"lower(hex({name})) as {name}"
    if pa.types.is_uint64(field.type):
        return f"lpad(lower(hex({name})), 16, '0') as {name}"
    return name


def _planned_columns(connection: Any, statement: str) -> set[str] | None:
    """Returns the columns that DuckDB's plan of a statement reads; None: that isn't known."""
    if [one.type.name for one in connection.extract_statements(statement)] != ["SELECT"]:
        return None
    try:
        (found,) = connection.sql(f"explain (format json) {statement}").fetchall()
        scans = list(_scans(json.loads(found[1])))
    except (ValueError, LookupError):  # another version of DuckDB, which explains otherwise
        return None
    if not scans or not all(scans):
        return None
    return {name for scan in scans for name in scan}


def _scans(nodes: list[dict[str, Any]]) -> Iterator[list[str]]:
    """Yields the columns that each scan of a stream reads."""
    for node in nodes:
        if "ARROW_SCAN" in node["name"]:
            columns = node["extra_info"].get("Projections", [])
            yield [columns] if isinstance(columns, str) else columns
        yield from _scans(node["children"])


def _relation(views: _Views, connection: Any, statement: str) -> Any:
    with views.meaning():
        found = connection.extract_statements(statement)
        if len(found) != 1:
            raise UsageError(
                f"{len(found)} statements were given and nothing was run; give one, such as "
                '"select source, count(*) from documents group by source"'
            )
        if found[0].type.name not in _READING:
            raise UsageError(
                f"the statement is {found[0].type.name}; nothing was run, a version never "
                "changes; give a select"
            )
        relation = connection.sql(statement)
    repeated = sorted({name for name in relation.columns if relation.columns.count(name) > 1})
    if repeated:
        raise UsageError(
            f"two columns of the result are called {repeated[0]}; nothing was read; name them "
            "apart with `as`"
        )
    return relation
