"""Rows that users hand in as events: which of them delete, and by what they are ordered.

Comes in: anything that is a source of rows, and the SQL condition of deletes. Goes out: an Arrow
table of events with the table's columns, what deletes, and the sequence. A condition that can be
said as a predicate needs no Spark. Events of Spark frames are brought to the driver; a frame of
more than `MOST_ROWS` of them is left to Spark (`None`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.conditions.pushed import columns_in, pushed_condition
from rowlake.errors import InvalidStatementError, SchemaMismatchError, shown
from rowlake.model.feed import CHANGE_COLUMNS
from rowlake.model.schema import FIELD_ID, Schema
from rowlake.prune.bind import bind
from rowlake.query.refusals import told_plainly
from rowlake.scan.filter import mask
from rowlake.sources.column_match import matched_batches, matched_names
from rowlake.sources.rows import ArrowSource, SparkSource, source_of
from rowlake.write.conform import conform

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rowlake.engine.spark import Engine
    from rowlake.model.view import TableView
    from rowlake.sources.rows import Source

# Events of a batch that the driver collapses; more are collapsed by Spark.
MOST_ROWS = 200_000
DELETED = "__rowlake_deleted"


@dataclass(frozen=True)
class EventRows:
    """A row per event, in order of arrival, with all columns that came; what deletes."""

    rows: pa.Table
    deleted: pa.Array

    def sequence(self, name: str | None) -> pa.ChunkedArray | None:
        """Return the values of the column by which events are ordered."""
        return None if name is None else self.rows[column_named(self.rows.column_names, name)]


def column_named(names: Sequence[str], wanted: str) -> str:
    """Return a column of the events by its name; an exact one goes before one in other case."""
    if wanted in names:
        return wanted
    alike = [name for name in names if name.lower() == wanted.lower()]
    if len(alike) != 1:
        raise SchemaMismatchError(
            f"The events have no column {wanted}; they have {shown(names)}.", column=wanted
        )
    return alike[0]


def event_rows(
    rows: Any, engine: Engine, like: pa.Schema, apply_as_deletes: str | None
) -> EventRows | None:
    """Return rows as events; None where there are so many that Spark has to collapse them."""
    source = source_of(rows, engine, like)
    if isinstance(source, SparkSource):
        return _from_spark(source.frame, apply_as_deletes)
    table = rows_in_driver(source)
    return EventRows(table, _deleted(table, engine, apply_as_deletes))


def rows_in_driver(source: Source) -> pa.Table:
    """Return all rows of a source as an Arrow table."""
    if isinstance(source, SparkSource):
        return source.frame.toArrow()
    batches = source.batches if isinstance(source, ArrowSource) else source.batches()
    return pa.Table.from_batches(list(batches), source.schema)


def in_table_types(rows: pa.Table, view: TableView) -> pa.Table:
    """Return rows in the names and types of the table; columns that they lack stay missing.

    A deleted row has its key alone, so that required columns may be missing or null.
    """
    loose = replace(view, schema=_nullable(view.schema.arrow))
    given = [name for name, _ in matched_names(rows.column_names, loose)]
    schema = _nullable([view.schema.arrow.field(name) for name in given])
    batches = matched_batches(rows.schema, iter(rows.to_batches()), loose)
    return pa.Table.from_batches([conform(batch, schema) for batch in batches], schema.arrow)


def _nullable(fields: Iterable[pa.Field]) -> Schema:
    return Schema(pa.schema([one.with_nullable(True) for one in fields]))


def with_deleted(frame: Any, apply_as_deletes: str | None) -> Any:
    """Return a Spark frame with a column that says which events delete."""
    condition = "false" if apply_as_deletes is None else f"coalesce(({apply_as_deletes}), false)"
    with told_plainly(None, apply_as_deletes or "", moved=True, columns=frame.columns):
        return frame.selectExpr("*", f"{condition} AS `{DELETED}`")


def columns_used(condition: str | None, sequence_by: str | None, names: Sequence[str]) -> set[str]:
    """Return the columns that say what an event is, and need not be columns of the table.

    Those of a change feed are among them, so that a feed of one table can be applied to another.
    """
    found = {name for name in CHANGE_COLUMNS if name in names}
    if condition is not None:
        schema = Schema(pa.schema([pa.field(name, pa.null()) for name in names]))
        found.update(columns_in(condition, schema))
    if sequence_by is not None:
        found.add(column_named(names, sequence_by))
    return found


def _from_spark(frame: Any, apply_as_deletes: str | None) -> EventRows | None:
    table = with_deleted(frame, apply_as_deletes).limit(MOST_ROWS + 1).toArrow()
    if table.num_rows > MOST_ROWS:
        return None
    return EventRows(table.drop_columns([DELETED]), table[DELETED].combine_chunks())


def _deleted(table: pa.Table, engine: Engine, condition: str | None) -> pa.Array:
    if condition is None or not table.num_rows:
        return pa.repeat(pa.scalar(False), table.num_rows)
    if not isinstance(condition, str):
        raise InvalidStatementError("apply_as_deletes is the text of an SQL condition.")
    schema = Schema(
        pa.schema(
            [
                one.with_metadata({**(one.metadata or {}), FIELD_ID: str(at).encode()})
                for at, one in enumerate(table.schema, start=1)
            ]
        )
    )
    said = pushed_condition(condition, schema, zone=engine.setting("spark.sql.session.timeZone"))
    if not said.exact:
        told = with_deleted(engine.from_arrow(table), condition).select(DELETED).toArrow()
        return told[DELETED].combine_chunks()
    predicate = bind(said.predicate, schema)
    whole = table.combine_chunks().cast(schema.arrow)
    parts = [mask(batch, predicate) for batch in whole.to_batches()]
    return pc.fill_null(pa.concat_arrays(parts), False) if parts else pa.array([], pa.bool_())
