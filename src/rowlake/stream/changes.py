"""The changes of a table between two snapshots, as rows.

Comes in: a table handle and a `ChangesRequest`. Goes out: a DataFrame, or an Arrow table. Small
work is done in threads of the driver. Larger work runs as Spark tasks: where changes must meet
others of their key or row id (updates, net changes), tasks hand them on in packed Arrow frames,
spread by a hash of the key, and are settled there; the driver never holds them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowlake.engine.local import is_tiny
from rowlake.engine.spark import Spread
from rowlake.errors import CorruptTableError, InvalidStatementError, UnsupportedFeatureError, shown
from rowlake.model.feed import CHANGE_COLUMNS, CHANGE_FIELDS, Bounds
from rowlake.model.predicate import TRUE, And, conjunction, leaves
from rowlake.model.schema import Schema, field_id
from rowlake.model.task import (
    CHANGE_TYPE_COLUMN,
    CHANGE_TYPE_COLUMN_ID,
    ROW_ID_COLUMN,
    ROW_ID_COLUMN_ID,
)
from rowlake.plan.tasks import OPEN_FILE_BYTES, SPLIT_BYTES, pack, task_count
from rowlake.prune.bind import bind, resolve
from rowlake.stream.changes_kernel import final_changes, metadata_field, raw_changes, raw_schema
from rowlake.stream.changes_plan import ChangePlanner
from rowlake.stream.changes_settle import Settling, settled
from rowlake.stream.changes_shuffle import KEY, SPREAD, settle_frames, spread_changes
from rowlake.stream.changes_span import span_of
from rowlake.stream.changes_task import ChangeContext, ChangeTask
from rowlake.verbs.read import scan_context

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate
    from rowlake.model.task import ScanContext
    from rowlake.model.view import TableView
    from rowlake.stream.changes_task import ChangeGroup


@dataclass(frozen=True)
class ChangesRequest:
    """What to read of a table's changes.

    - `keys`: columns that identify a row (None: the identifier fields, else row ids);
    - `columns`: of the table (None: all);
    - `predicate`: rows of either image for which it is not TRUE may be left out, and are where
      `exact` is set. Types of changes are what they would be without it.
    """

    bounds: Bounds = field(default_factory=Bounds)
    keys: Sequence[str] | None = None
    net: bool = False
    columns: Sequence[str] | None = None
    predicate: Predicate | None = None
    exact: bool = False


@dataclass(frozen=True)
class PlannedChanges:
    """A request, planned."""

    name: str
    context: ChangeContext
    groups: tuple[ChangeGroup, ...]
    how: Settling

    @property
    def size_in_bytes(self) -> int:
        """How much there is to read at most."""
        return sum(group.size_in_bytes for group in self.groups)

    @property
    def schema(self) -> pa.Schema:
        """The columns that come out."""
        held = self.context.rows.projection.arrow
        return pa.schema([*(held.field(name) for name in self.how.output), *CHANGE_FIELDS])

    def tasks(self, slots: int) -> list[ChangeTask]:
        """Return tasks of about equal weight."""
        weights = np.array(
            [
                group.size_in_bytes + OPEN_FILE_BYTES * len(list(group.files()))
                for group in self.groups
            ],
            float,
        )
        count = task_count(float(weights.sum()), SPLIT_BYTES, slots)
        return [
            ChangeTask(self.context, tuple(self.groups[place] for place in places.tolist()))
            for places in pack(weights, count)
        ]


def frame(handle: TableHandle, engine: Engine, request: ChangesRequest) -> Any:
    """Return the changes as a Spark DataFrame; commits in no particular order."""
    plan = planned(handle, engine, request)
    tasks = plan.tasks(engine.slots)
    if is_tiny(tasks, plan.size_in_bytes):
        return engine.from_arrow(_run(plan, engine, tasks))
    if not plan.how.needs_all:
        return engine.dataframe(partial(final_changes, plan.how), tasks, plan.schema)
    partitions = max(engine.slots, ceil(plan.size_in_bytes / SPLIT_BYTES))
    spread = Spread(partial(spread_changes, plan.how, partitions), SPREAD, KEY)
    settle = partial(settle_frames, plan.how, raw_schema(plan.context))
    return engine.regrouped(spread, tasks, settle, plan.schema, partitions=partitions)


def arrow(handle: TableHandle, engine: Engine, request: ChangesRequest) -> pa.Table:
    """Return the changes as an Arrow table, by commit; a small feed needs no Spark session."""
    plan = planned(handle, engine, request)
    return _run(plan, engine, plan.tasks(engine.parallelism))


def _run(plan: PlannedChanges, engine: Engine, tasks: Sequence[ChangeTask]) -> pa.Table:
    raw = engine.run(
        raw_changes,
        tasks,
        raw_schema(plan.context),
        size_in_bytes=plan.size_in_bytes,
        label=f"reading changes of {plan.name}",
    )
    found = settled(raw, plan.how)
    try:
        return found.cast(plan.schema)
    except ValueError as error:  # a null in a column that has none
        raise CorruptTableError(plan.name, f"its files contradict its schema ({error})") from error


def planned(handle: TableHandle, engine: Engine, request: ChangesRequest) -> PlannedChanges:
    """Choose the commits and the files to read.

    Raises InvalidStatementError for columns or snapshots that are not there.
    """
    span = span_of(handle, request.bounds)
    view = span.end
    validate_names(view)
    keys = key_paths(view, request.keys)
    by_row_id = not keys and view.can.row_ids
    predicate = None if request.predicate is None else bind(request.predicate, view.schema)
    pruning = _pruning(predicate, view, keys, by_row_id=by_row_id)
    groups = tuple(ChangePlanner(handle, span, pruning, engine).groups())
    identity = keys or ([(ROW_ID_COLUMN,)] if by_row_id else [])
    how = Settling(
        output=_output(view, request.columns),
        keys=_pairing(groups, identity, net=request.net),
        net=request.net,
        unsettled=frozenset(
            group.commit.ordinal
            for group in groups
            if group.cancels and not (group.removed and group.added)
        ),
        predicate=predicate if request.exact else None,
        images=not keys and not request.net,
    )
    return PlannedChanges(view.name, context_of(view, how, pruning), groups, how)


def key_paths(view: TableView, keys: Sequence[str] | None) -> list[tuple[str, ...]]:
    """Return the columns that identify rows: those named, else the identifier fields."""
    if keys is None:
        return [view.schema.paths[number] for number in view.schema.identifier_field_ids]
    found = [resolve(tuple(name.split(".")), view.schema) for name in keys]
    return [view.schema.paths[field_id(each) or -1] for each in found]


def _pairing(
    groups: Sequence[ChangeGroup], identity: Sequence[tuple[str, ...]], *, net: bool
) -> tuple[tuple[str, ...], ...]:
    """Return the keys to pair updates by; none where there is nothing to pair.

    Net changes need one identity over the whole span: row ids, if every row has one.
    """
    by_row_id = identity == [(ROW_ID_COLUMN,)]
    if net and by_row_id:
        files = (file for group in groups for file in group.files())
        return tuple(identity) if all(file.first_row_id is not None for file in files) else ()
    both = [group.commit.ordinal for group in groups if group.marked or group.images]
    inserts = {*both, *(group.commit.ordinal for group in groups if group.added)}
    deletes = {*both, *(group.commit.ordinal for group in groups if group.removed)}
    return tuple(identity) if net or inserts & deletes else ()


def _pruning(
    predicate: Predicate | None,
    view: TableView,
    keys: Sequence[tuple[str, ...]],
    *,
    by_row_id: bool,
) -> Predicate:
    """Return what of a predicate may leave rows out before updates are paired.

    Both images of an update have the same keys, so conditions on keys keep or drop both; any other
    condition could make an update look like an insert.
    """
    if predicate is None or by_row_id:
        return TRUE
    if not keys:
        return predicate
    found = [view.schema.find(path, case_sensitive=True) for path in keys]
    ids = {field_id(each) for each in found if each is not None}
    parts = predicate.parts if isinstance(predicate, And) else (predicate,)
    safe = [part for part in parts if all(leaf.field_id in ids for leaf in leaves(part))]
    return conjunction(*safe) if safe else TRUE


def _output(view: TableView, columns: Sequence[str] | None) -> tuple[str, ...]:
    if columns is None:
        return tuple(view.schema.arrow.names)
    wanted = [name for name in columns if name not in CHANGE_COLUMNS]
    names = [resolve((name,), view.schema).name for name in wanted]
    if len(set(names)) < len(names):
        raise InvalidStatementError(f"A column is asked for twice: {shown(names)}.")
    return tuple(names)


def context_of(view: TableView, how: Settling, pruning: Predicate) -> ChangeContext:
    """Return how the files of a feed are read."""
    row_ids = view.can.row_ids
    paths = view.schema.paths
    tested = [] if how.predicate is None else list(leaves(how.predicate))
    needed = [
        *how.output,
        *(path[0] for path in how.keys if path != (ROW_ID_COLUMN,)),
        *(paths[leaf.field_id][0] for leaf in tested if leaf.field_id in paths),
    ]
    if how.net or how.unsettled:
        needed = list(view.schema.arrow.names)
    base = replace(scan_context(view), predicate=None if pruning == TRUE else pruning)
    rows = _projection(view, dict.fromkeys(needed), row_ids)
    return ChangeContext(
        rows=replace(base, projection=rows),
        whole=replace(base, projection=_projection(view, view.schema.arrow.names, row_ids)),
        row_ids=row_ids,
        images=_of_images(base, rows),
    )


def _of_images(base: ScanContext, rows: Schema) -> ScanContext | None:
    """Return how files of images are read: the rows, and what happened to each."""
    if base.name_mapping is None:
        return None
    kind = metadata_field(CHANGE_TYPE_COLUMN, pa.string(), CHANGE_TYPE_COLUMN_ID)
    names = (*base.name_mapping.unnumbered, (CHANGE_TYPE_COLUMN, CHANGE_TYPE_COLUMN_ID))
    return replace(
        base,
        projection=Schema(pa.schema([*rows.arrow, kind]), rows.schema_id),
        name_mapping=replace(base.name_mapping, unnumbered=names),
    )


def _projection(view: TableView, names: Any, row_ids: bool) -> Schema:
    fields = [view.schema.arrow.field(name) for name in names]
    if row_ids:
        fields.append(metadata_field(ROW_ID_COLUMN, pa.int64(), ROW_ID_COLUMN_ID))
    return Schema(pa.schema(fields), view.schema.schema_id, view.schema.identifier_field_ids)


def validate_names(view: TableView) -> None:
    """Refuse a table whose columns have the names of those that describe changes."""
    taken = {*CHANGE_COLUMNS, ROW_ID_COLUMN} & set(view.schema.arrow.names)
    if taken:
        raise UnsupportedFeatureError(
            f"Cannot read the changes of {view.name}: its own columns {shown(sorted(taken))} have "
            "the names of columns that describe changes. Rename them."
        )
