"""One change per key becomes one commit: a MERGE by key, equality deletes, or an overwrite.

Comes in: `NetChanges`. Goes out: the table after the commit and a `Result`. A MERGE reads the
table, and so can leave out late events and keep values that the source did not send; equality
deletes read nothing, so they write what comes. A batch that truncates replaces all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.commit.outcome import Phases
from rowlake.errors import InvalidStatementError, SchemaMismatchError, shown
from rowlake.model.change import Isolation
from rowlake.model.merge import Action, When
from rowlake.model.predicate import Leaf, Op, conjunction
from rowlake.model.schema import FIELD_ID, Schema
from rowlake.prune.bind import bind
from rowlake.rowlevel.change import change_rows
from rowlake.rowlevel.column_comparison import Comparison
from rowlake.rowlevel.equality_writes import blind_changes
from rowlake.rowlevel.operation import RowChange
from rowlake.rowlevel.staging import Shape, staging
from rowlake.rowlevel.strategy import Deletes, deletes_of
from rowlake.rowlevel.task import Matching, TaskClause
from rowlake.rowlevel.unique import key_order
from rowlake.rowlevel.upsert import dealing_for, defaults_for
from rowlake.stream.apply_events import filled
from rowlake.verbs.default_values import with_default_values
from rowlake.verbs.read import Request, arrow
from rowlake.verbs.write import overwrite, view_for_write
from rowlake.write.sort import sort_batches

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate
    from rowlake.model.result import Result
    from rowlake.model.view import TableView
    from rowlake.rowlevel.unique import Keys
    from rowlake.stream.apply_events import NetChanges
    from rowlake.verbs.write import WriteOptions

# Staged beside the table's columns; their ids are above those that tables give.
_DELETED, _UPSERTED, _GROUP = "__rowlake_deleted", "__rowlake_upserted", "__rowlake_group_"
_FIRST_ID = 2_147_000_000
# More keys are looked for by their range alone, and picked from what was read.
_MOST_KEYS = 1_000


@dataclass(frozen=True)
class Applying:
    """How changes are applied: by which keys, and which column says that an event is late."""

    keys: Keys
    options: WriteOptions
    late_by: str | None = None
    table_properties: Mapping[str, str] = field(default_factory=dict)
    reads_target: bool = False

    @property
    def names(self) -> list[str]:
        """The key columns."""
        return self.keys.names


def apply_net(
    handle: TableHandle, engine: Engine, net: NetChanges, applying: Applying
) -> tuple[TableHandle, Result]:
    """Apply changes in one commit."""
    options = applying.options
    view = view_for_write(handle, options.branch)
    if net.truncates:
        net = _read_kept(handle, engine, net, applying, all_groups=True)
        left = net.rows.filter(pc.invert(net.deleted))
        return overwrite(handle, engine, left, options)
    if deletes_of(options.deletes, view, options.mode) is Deletes.EQUALITY:
        net = _read_kept(handle, engine, net, applying, all_groups=True)
        _validate_whole(view, net.rows.column_names)
        return blind_changes(handle, net.rows, net.deleted, applying.keys, options, Phases())
    net = _read_kept(handle, engine, net, applying, all_groups=False)
    return _merged(handle, engine, net, applying, view)


def _validate_whole(view: TableView, given: Sequence[str]) -> None:
    missing = [name for name in view.schema.arrow.names if name not in given]
    if missing:
        raise SchemaMismatchError(
            f"Cannot apply changes to {view.name}: the events lack {shown(missing)}. With "
            "deletes='equality' whole rows are replaced, unread, so every column is needed.",
            column=missing[0],
        )


# ---------------------------------------------------------------------- merge


def _merged(
    handle: TableHandle, engine: Engine, net: NetChanges, applying: Applying, view: TableView
) -> tuple[TableHandle, Result]:
    given = net.rows.column_names
    view = with_default_values(view, engine, given)
    flags = _flags(net)
    fields = [view.schema.arrow.field(name).with_nullable(True) for name in given]
    fields += [
        pa.field(name, pa.bool_(), metadata={FIELD_ID: str(_FIRST_ID + at).encode()})
        for at, name in enumerate(flags)
    ]
    schema = Schema(pa.schema(fields))
    table = pa.table([*net.rows.columns, *flags.values()], schema=schema.arrow)
    options = applying.options
    if applying.reads_target:
        options = replace(options, isolation=Isolation.SERIALIZABLE)
    names = tuple(applying.names)
    change = RowChange(
        "upsert",
        _clauses(net, applying, view),
        Matching(tuple((name, name) for name in names), (False,) * len(names)),
        skips_unchanged=True,
        has_unique_keys=True,
        reads_target=applying.reads_target,
        table_properties=applying.table_properties,
    )
    with staging(engine, view) as place:
        shape = Shape(fields, names, dealing_for(view, names))
        staged = place.stage(_in_order(table, applying.keys, schema), shape)
        return change_rows(handle, engine, replace(change, staged=staged), options)


def _in_order(table: pa.Table, keys: Keys, schema: Schema) -> list[pa.RecordBatch]:
    batches = table.combine_chunks().to_batches()
    return sort_batches(batches, key_order(keys), schema) if batches else []


def _flags(net: NetChanges) -> dict[str, pa.Array]:
    """Return the staged flags: what is deleted, what is written, and which columns stay."""
    upserted = pc.invert(net.deleted)
    found = {_DELETED: net.deleted, _UPSERTED: upserted}
    for number in range(len(net.kept)):
        own = pa.array(net.group == number)
        found[f"{_GROUP}{number}"] = pc.and_(upserted, own)
    return found


def _clauses(net: NetChanges, applying: Applying, view: TableView) -> tuple[TaskClause, ...]:
    given, keys = net.rows.column_names, set(applying.names)
    clauses: list[TaskClause] = []
    for only in _in_time(applying.late_by, view):
        clauses.append(TaskClause(When.MATCHED, Action.DELETE, flag=_DELETED, **only))
        for number, kept in enumerate(net.kept):
            values: dict[str, str | pa.Array] = {
                name: name for name in given if name not in keys and name not in kept
            }
            if values:
                flag = f"{_GROUP}{number}"
                clauses.append(
                    TaskClause(When.MATCHED, Action.UPDATE, flag=flag, values=values, **only)
                )
    values = {**defaults_for(view, given), **{name: name for name in given}}
    clauses.append(TaskClause(When.NOT_MATCHED, Action.INSERT, flag=_UPSERTED, values=values))
    return tuple(clauses)


def _in_time(late_by: str | None, view: TableView) -> Iterator[dict[str, Any]]:
    """Yield what makes an event not late: the table's row is as old, or has no sequence."""
    if late_by is None:
        yield {}
        return
    yield {"comparisons": (Comparison(late_by, "<=", late_by),)}
    yield {"predicate": bind(Leaf((late_by,), Op.IS_NULL), view.schema)}


def validate_sequence(column: pa.Field, table: str) -> None:
    """Refuse a sequence of a type that has no order, or one in which not all values have one."""
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        raise InvalidStatementError(
            f"Cannot order events of {table} by {column.name} ({kind}): sequence_by is a column of "
            "whole numbers, decimals, dates, times or texts."
        )


# ---------------------------------------------------------------------- values of the table


def _read_kept(
    handle: TableHandle, engine: Engine, net: NetChanges, applying: Applying, *, all_groups: bool
) -> NetChanges:
    """Return changes with the values of the table in place of those that were not sent.

    A MERGE leaves them alone by itself, unless the row has another key by now.
    """
    wanted = set(np.flatnonzero(net.group).tolist()) if all_groups else set(net.origins)
    if not wanted:
        return net
    names = applying.names
    own = list(zip(*(net.rows[name].to_pylist() for name in names), strict=True))
    key_by_row = {at: net.origins.get(at, own[at]) for at in wanted}
    columns = sorted({name for kept in net.kept for name in kept})
    held = rows_of_keys(handle, engine, set(key_by_row.values()), applying, columns)
    found = {tuple(row[name] for name in names): row for row in held}
    return filled(net, {at: found.get(key, {}) for at, key in key_by_row.items()})


def rows_of_keys(
    handle: TableHandle,
    engine: Engine,
    keys: set[tuple[Any, ...]],
    applying: Applying,
    columns: Sequence[str],
) -> list[dict[str, Any]]:
    """Return the rows of some keys, with these columns beside the keys."""
    names, branch = applying.names, applying.options.branch
    if not keys or branch not in handle.refs:
        return []
    parts = [_among(name, {key[at] for key in keys}) for at, name in enumerate(names)]
    where = conjunction(*parts)
    wanted = [*names, *(name for name in columns if name not in names)]
    found = arrow(handle, engine, Request(wanted, where, ref=branch, exact=True))
    return [row for row in found.to_pylist() if tuple(row[name] for name in names) in keys]


def _among(name: str, values: set[Any]) -> Predicate:
    if len(values) <= _MOST_KEYS:
        return Leaf((name,), Op.IN, tuple(values))
    least, most = min(values), max(values)
    return conjunction(Leaf((name,), Op.GE, (least,)), Leaf((name,), Op.LE, (most,)))
