"""Changes from elsewhere applied to a table: one batch of events, one commit, exactly once.

Comes in: rows that are events, or messages of a change-data-capture format. Goes out: the table
after the commit and a `Result`. Where another writer's commit forbids the change, all of it is
planned again on what the other left, since the events still mean the same.

Ties: of events of one key with equal `sequence_by` the last one in the batch wins, a row before a
delete; in a Spark frame of more than `apply_rows.MOST_ROWS` rows the order of arrival is not known,
and any row may win.
Late events: where `sequence_by` is a column of the table, events older than the row that the table
holds are left out. Deleted rows are not held, so an event older than a delete brings the row back;
`scd_type=2` remembers deletes. Equality deletes do not read the table, and so apply late events.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.commit.rerun import rerun_on_conflict
from rowlake.errors import InvalidStatementError, SchemaMismatchError, UnsupportedFeatureError
from rowlake.model.schema import Schema
from rowlake.rowlevel.equality_writes import upsert_keys
from rowlake.rowlevel.strategy import Deletes
from rowlake.rowlevel.unique import Keys, column_id
from rowlake.stream import scd
from rowlake.stream.apply_change import Applying, apply_net, rows_of_keys, validate_sequence
from rowlake.stream.apply_events import Event, in_sequence, net_of_events, net_of_rows
from rowlake.stream.apply_large import apply_large
from rowlake.stream.apply_rows import (
    column_named,
    columns_used,
    event_rows,
    in_table_types,
)
from rowlake.stream.apply_schema import grown
from rowlake.stream.cdc.decode import FORMATS, decoded
from rowlake.verbs.write import is_done, view_for_write
from rowlake.write.conform import conform

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.result import Result
    from rowlake.model.view import TableView
    from rowlake.stream.apply_rows import EventRows
    from rowlake.verbs.write import WriteOptions


@dataclass(frozen=True)
class ApplyChanges:
    """How events are applied; the arguments of `Table.apply_changes`."""

    keys: Sequence[str] | None = None
    sequence_by: str | None = None
    apply_as_deletes: str | None = None
    format: str | None = None
    scd_type: int = 1
    schema_evolution: bool = False

    def __post_init__(self) -> None:
        """Refuse what does not go together."""
        if self.scd_type not in (1, 2):
            raise InvalidStatementError(f"scd_type is 1 or 2, not {self.scd_type!r}.")
        if self.scd_type == 2 and self.sequence_by is None:
            raise InvalidStatementError("scd_type=2 needs sequence_by: when each version began.")
        if self.format is not None and self.format not in FORMATS:
            raise InvalidStatementError(
                f"Unknown format {self.format!r} (expected one of: {', '.join(FORMATS)})."
            )
        if self.format is not None and self.apply_as_deletes is not None:
            raise InvalidStatementError(
                f"format={self.format!r} says which events delete; leave apply_as_deletes out."
            )


def apply_changes(
    handle: TableHandle, engine: Engine, rows: Any, wanted: ApplyChanges, options: WriteOptions
) -> tuple[TableHandle, Result]:
    """Apply a batch of events in one commit."""
    done = is_done(handle, options, "apply changes")
    if done is not None:
        return handle, done
    if wanted.format is not None:
        found = decoded(rows, wanted.format, wanted.sequence_by)
        return apply_messages(handle, engine, found, wanted, options)
    view = view_for_write(handle, options.branch)
    events = event_rows(rows, engine, view.schema.arrow, wanted.apply_as_deletes)
    if events is None:
        return apply_large(handle, engine, rows, wanted, options)
    if not events.rows.num_rows:  # nothing but the mark of the batch, and no columns to look for
        wanted = ApplyChanges(wanted.keys)
        events = replace(events, rows=view.schema.arrow.empty_table())
    handle, events = _with_room(handle, view, events, wanted)
    view = view_for_write(handle, options.branch)
    if wanted.scd_type == 2:
        return _apply_history(handle, engine, _events_of(events, view, wanted), wanted, options)
    keys = upsert_keys(view, wanted.keys, "error")
    conformed = _conformed(events.rows, view, wanted)
    net = net_of_rows(conformed, keys.names, events.deleted, events.sequence(wanted.sequence_by))
    applying = Applying(keys, options, _late_by(wanted, view))
    return apply_net(handle, engine, net, applying)


def apply_messages(
    handle: TableHandle, engine: Engine, found: Any, wanted: ApplyChanges, options: WriteOptions
) -> tuple[TableHandle, Result]:
    """Apply messages of a change-data-capture format that are decoded already."""
    view = view_for_write(handle, options.branch)
    if wanted.schema_evolution:
        handle = grown(handle, view.schema, found.fields(view.schema))
    if wanted.scd_type == 2:
        handle = _with_history(handle, view, found.sequence_field(handle.view().schema))
    view = view_for_write(handle, options.branch)
    events = found.typed(view.schema)
    if wanted.scd_type == 2:
        return _apply_history(handle, engine, events, wanted, options)
    keys = upsert_keys(view, wanted.keys, "error")
    in_order = in_sequence(events, sequenced=wanted.sequence_by is not None)
    applying = Applying(keys, options, _late_by(wanted, view))

    def run(newest: TableHandle) -> tuple[TableHandle, Result]:
        net = net_of_events(in_order, keys.names, view.schema)
        reads = bool(net.origins)
        return apply_net(newest, engine, net, replace(applying, reads_target=reads))

    return rerun_on_conflict(handle, run)


# ---------------------------------------------------------------------- rows as events


def _with_room(
    handle: TableHandle, view: TableView, events: EventRows, wanted: ApplyChanges
) -> tuple[TableHandle, EventRows]:
    """Return the table with the columns of the events, and the events with the table's columns."""
    names = events.rows.column_names
    used = columns_used(wanted.apply_as_deletes, wanted.sequence_by, names)
    extra = [name for name in names if name in used and view.schema.find((name,)) is None]
    if wanted.schema_evolution:
        fields = [one for one in events.rows.schema if one.name not in extra]
        handle = grown(handle, view.schema, fields)
    if wanted.scd_type == 2:
        sequence = events.rows.schema.field(column_named(names, wanted.sequence_by or ""))
        handle = _with_history(handle, view, sequence)
    return handle, events


def _conformed(rows: pa.Table, view: TableView, wanted: ApplyChanges) -> pa.Table:
    """Return events in the types of the table, without what only says what an event is."""
    used = columns_used(wanted.apply_as_deletes, wanted.sequence_by, rows.column_names)
    names = [name for name in rows.column_names if name not in used or view.schema.find((name,))]
    return in_table_types(rows.select(names), view)


def _late_by(wanted: ApplyChanges, view: TableView) -> str | None:
    """Return the table's column that tells late events, if it has the sequence."""
    held = None if wanted.sequence_by is None else view.schema.find((wanted.sequence_by,))
    if held is None:
        return None
    validate_sequence(held, view.name)
    return str(held.name)


# ---------------------------------------------------------------------- history


def _events_of(events: EventRows, view: TableView, wanted: ApplyChanges) -> list[Event]:
    sequence = events.sequence(wanted.sequence_by)
    assert sequence is not None
    start = view.schema.arrow.field(scd.START)
    whole = pa.table([sequence], schema=pa.schema([start.with_nullable(True)]))
    ordered = [
        value
        for batch in whole.to_batches()
        if len(batch)
        for value in conform(batch, Schema(whole.schema)).column(0).to_pylist()
    ]
    rows = _conformed(events.rows, view, wanted).to_pylist()
    flags = events.deleted.to_pylist()
    return [
        Event(None, row, sequence=at) if gone else Event(row, sequence=at)
        for row, gone, at in zip(rows, flags, ordered, strict=True)
    ]


def _with_history(handle: TableHandle, view: TableView, sequence: pa.Field) -> TableHandle:
    validate_sequence(sequence, view.name)
    missing = [one for one in scd.history_fields(sequence) if view.schema.find((one.name,)) is None]
    return grown(handle, handle.view().schema, missing) if missing else handle


def _apply_history(
    handle: TableHandle,
    engine: Engine,
    events: list[Event],
    wanted: ApplyChanges,
    options: WriteOptions,
) -> tuple[TableHandle, Result]:
    if options.deletes == Deletes.EQUALITY.value:
        raise UnsupportedFeatureError(
            "scd_type=2 needs the versions that the table has, which deletes='equality' does not "
            "read. Choose deletes='position', 'vector' or 'auto'."
        )
    if any(event.truncates for event in events):
        raise UnsupportedFeatureError(
            "scd_type=2 cannot follow a TRUNCATE: it does not say which versions end. Delete the "
            "rows, or apply it to a table of scd_type=1."
        )
    for event in events:
        if event.sequence is None:
            raise SchemaMismatchError(
                f"{wanted.sequence_by} is null in an event, so nobody can tell when its version "
                "began.",
                column=wanted.sequence_by,
            )
    names = upsert_keys(view_for_write(handle, options.branch), wanted.keys, "error").names

    def run(newest: TableHandle) -> tuple[TableHandle, Result]:
        return _put_in_history(newest, engine, events, names, options)

    return rerun_on_conflict(handle, run)


def _put_in_history(
    handle: TableHandle,
    engine: Engine,
    events: list[Event],
    names: list[str],
    options: WriteOptions,
) -> tuple[TableHandle, Result]:
    view = view_for_write(handle, options.branch)
    schema = view.schema
    own = upsert_keys(view, names, "error")
    remembered = scd.remembered_deletes(handle, options.branch, names, schema)
    events = scd.with_columns_kept(events, schema)
    found = scd.timelines(events, names, remembered)
    columns = [scd.START, scd.END]
    if any(event.kept for event in events):
        columns = list(schema.arrow.names)
    for row in rows_of_keys(handle, engine, set(found), Applying(own, options), columns):
        found[tuple(row[name] for name in names)].hold(row)
    change = scd.history_change(found, names, schema, remembered)
    ids = (*own.field_ids, column_id(scd.START, schema))
    applying = Applying(
        Keys(own.table, schema, ids),
        options,
        table_properties=change.table_properties,
        reads_target=True,
    )
    return apply_net(handle, engine, change.net, applying)
