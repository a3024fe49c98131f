"""The source of a MERGE: a DataFrame where Spark has to evaluate it, else rows read directly.

A table of the lake, or rows that the driver holds, can be staged without passing through Spark, as
long as nothing but its columns is asked for. All kinds of source say their `columns`, Spark's
`types` of them, their `arrow` types where rows can be had without Spark, and give a `frame`, or
`direct` rows: (staged column, source column) in their order.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from rowlake.conditions.target_columns import spark_types_of
from rowlake.dml.merge_clauses import source_name
from rowlake.errors import InternalError
from rowlake.plan.tasks import scan_tasks
from rowlake.query.run import moment_of, run_query
from rowlake.rowlevel.staging import PlainRows, ScanRows
from rowlake.sources.plain_parquet import FileSource
from rowlake.sources.rows import ArrowSource, source_of
from rowlake.sqltext.lexer import Lexer, TokenKind, quote
from rowlake.sqltext.spark_types import type_text
from rowlake.verbs.read import Request, frame, planned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.dml.operations import Merge
    from rowlake.dml.target import RowTarget
    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.sources.rows import Source

# A source below the limit for Spark is staged by driver threads, which cost nothing to start.
_LEAST_BYTES = 4 * 1024 * 1024


class FrameSource:
    """Rows of Spark."""

    arrow: pa.Schema | None = None

    def __init__(self, found: Any) -> None:
        self.frame = found

    def is_of(self, handle: TableHandle) -> bool:  # noqa: ARG002
        """Return False: what a DataFrame was made of is not known."""
        return False

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.frame.columns)

    @cached_property
    def types(self) -> dict[str, str]:
        """Spark's type of each column."""
        return {each.name: type_text(each.dataType, each.name) for each in self.frame.schema.fields}

    def direct(self, columns: Sequence[tuple[str, str]]) -> Any:
        """Raise: Spark has the rows, which `arrow` says beforehand."""
        raise InternalError(f"Rows of a DataFrame were asked for without Spark: {columns}.")


class TableSource:
    """A table of the lake at one snapshot."""

    def __init__(self, engine: Engine, handle: TableHandle, moment: dict[str, Any]) -> None:
        self._engine, self._handle, self._moment = engine, handle, moment

    def is_of(self, handle: TableHandle) -> bool:
        """Return whether the rows are those of some table."""
        return _is_same(self._handle, handle)

    @cached_property
    def arrow(self) -> pa.Schema:
        """The columns as a scan gives them."""
        return planned(self._handle, Request((), **self._moment)).view.schema.arrow

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.arrow.names)

    @cached_property
    def types(self) -> dict[str, str]:
        """Spark's type of each column."""
        return spark_types_of(self._engine, self.arrow)

    @cached_property
    def frame(self) -> Any:
        """The rows as a lazy DataFrame."""
        return frame(self._handle, self._engine, Request(**self._moment))

    def direct(self, columns: Sequence[tuple[str, str]]) -> ScanRows:
        """Return the tasks that read some columns."""
        wanted = tuple(dict.fromkeys(name for _, name in columns))
        read = planned(self._handle, Request(wanted, **self._moment), self._engine)
        tasks = scan_tasks(
            read.plan, read.context, slots=self._engine.slots, least_bytes=_LEAST_BYTES
        )
        return ScanRows(tuple(tasks), read.plan.size_in_bytes, tuple(columns))


class ArrowRows:
    """Rows that the driver holds."""

    def __init__(self, engine: Engine, rows: pa.Table) -> None:
        self._engine, self._rows = engine, rows
        self.arrow = rows.schema
        self.columns = tuple(rows.column_names)

    def is_of(self, handle: TableHandle) -> bool:  # noqa: ARG002
        """Return False: the rows are of no table."""
        return False

    @cached_property
    def types(self) -> dict[str, str]:
        """Spark's type of each column."""
        return spark_types_of(self._engine, self.arrow)

    @cached_property
    def frame(self) -> Any:
        """The rows as a DataFrame."""
        return self._engine.from_arrow(self._rows)

    def direct(self, columns: Sequence[tuple[str, str]]) -> list[pa.RecordBatch]:
        """Return some columns."""
        chosen = self._rows.select([name for _, name in columns])
        return list(chosen.rename_columns([staged for staged, _ in columns]).to_batches())


class FileRows:
    """Rows of plain Parquet files, which tasks can read themselves."""

    def __init__(self, engine: Engine, files: FileSource) -> None:
        self._engine, self._files = engine, files
        self.arrow = files.schema
        self.columns = tuple(files.schema.names)

    def is_of(self, handle: TableHandle) -> bool:  # noqa: ARG002
        """Return False: the rows are of no table."""
        return False

    @cached_property
    def frame(self) -> Any:
        """The rows as a lazy DataFrame."""
        return self._files.frame

    @cached_property
    def types(self) -> dict[str, str]:
        """Spark's type of each column."""
        return spark_types_of(self._engine, self.arrow)

    def direct(self, columns: Sequence[tuple[str, str]]) -> PlainRows:
        """Return the tasks that read some columns."""
        chosen = self._files.select(list(columns))
        tasks = chosen.tasks(self._engine.slots)
        return PlainRows(tuple(tasks), chosen.size_in_bytes)


MergeSource: TypeAlias = FrameSource | TableSource | ArrowRows | FileRows


def merge_source(target: RowTarget, statement: Merge, arguments: Any) -> MergeSource:
    """Return the source of a MERGE; nothing is read yet."""
    lookup, engine = target.lookup, target.engine
    if not isinstance(statement.source, str):
        return _handed_in(target, statement.source)
    parts = _dotted(statement.source)
    found = lookup.target(parts) if parts and not statement.with_clause else None
    handle = None if found is None else lookup.handle(found.table)
    if found is not None and handle is not None and not found.metadata_table:
        return TableSource(engine, handle, moment_of(lookup.workspace, handle, found, None))
    name = source_name(statement)
    text = f"{statement.with_clause}SELECT * FROM {statement.source} AS {quote(name)}"
    # What a statement selects keeps its types, and is assigned as Spark assigns it.
    return _of_rows(engine, source_of(run_query(lookup, text, arguments), engine))


def _handed_in(target: RowTarget, rows: Any) -> MergeSource:
    # Asked of the class, since a DataFrame's column may be called `handle`.
    if hasattr(type(rows), "handle"):
        handle = rows.handle
        # The target itself is read as it is changed.
        is_target = _is_same(handle, target.handle)
        return TableSource(target.engine, target.handle if is_target else handle, {})
    like = target.view.schema.arrow
    return _of_rows(target.engine, source_of(rows, target.engine, like, only_loose=True))


def _of_rows(engine: Engine, found: Source) -> MergeSource:
    if isinstance(found, ArrowSource):
        return ArrowRows(engine, pa.Table.from_batches(found.batches, found.schema))
    return FileRows(engine, found) if isinstance(found, FileSource) else FrameSource(found.frame)


def _is_same(one: TableHandle, other: TableHandle) -> bool:
    return bool(one.uuid == other.uuid)


def _dotted(text: str) -> tuple[str, ...]:
    """Return the parts of a name; none where the text is anything else."""
    tokens = [token for token in Lexer(text).all() if token.kind is not TokenKind.END]
    is_name = len(tokens) % 2 == 1 and all(token.text == "." for token in tokens[1::2])
    if not is_name or not all(token.is_name for token in tokens[::2]):
        return ()
    return tuple(token.value for token in tokens[::2])
