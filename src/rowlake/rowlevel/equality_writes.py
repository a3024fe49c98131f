"""Blind upsert and blind delete: rows are replaced by key, and the target is never read.

Comes in: source rows and keys, or a predicate of key equality. Goes out: one commit of equality
deletes and (upsert) data files. Deletes apply to data of strictly lower sequence numbers (spec,
Sequence Number Inheritance), so they take what was there before and leave the rows of their own
commit; racing blind upserts land one after the other, and the last one wins. Nothing is validated
against what landed meanwhile, since nothing was read.

How many rows are replaced or deleted is not known: `rows_updated` and `rows_deleted` stay 0, and
`rows_inserted` counts the rows written.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.commit.outcome import Phases
from rowlake.errors import InvalidStatementError, RowlakeError, SchemaMismatchError, shown
from rowlake.model.change import Change, Operation
from rowlake.model.files import WRITTEN_FILES, Content
from rowlake.model.partition import SortField
from rowlake.model.result import Result
from rowlake.prune.bind import bind
from rowlake.rowlevel.delete_scope import delete_scope, scope_updates
from rowlake.rowlevel.equality_writes_kernel import UpsertContext, upsert_kernel
from rowlake.rowlevel.key_sets import key_sets
from rowlake.rowlevel.strategy import Deletes, deletes_of
from rowlake.rowlevel.unique import Keys, column_id, key_order, latest_column
from rowlake.sources.column_match import matched_batches, matched_frame, matched_names
from rowlake.sources.rows import ArrowSource, names_of, read_if_small, source_of
from rowlake.storage.files import Storage
from rowlake.verbs.write import committed_result, view_for_write
from rowlake.write.conform import conform
from rowlake.write.context import equality_delete_context, write_context
from rowlake.write.equality_deletes import key_batch, validate_key_column, write_equality_deletes
from rowlake.write.kernel import remove_attempt, remove_written, write_batches
from rowlake.write.partitions import column_at
from rowlake.write.sort import sort_batches, sort_indices

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate
    from rowlake.model.view import TableView
    from rowlake.rowlevel.delete_scope import DeleteScope
    from rowlake.rowlevel.key_sets import KeySet
    from rowlake.sources.rows import Source
    from rowlake.verbs.write import WriteOptions


def blind_upsert(
    handle: TableHandle,
    engine: Engine,
    rows: Any,
    keys: Sequence[str] | None,
    options: WriteOptions,
    *,
    on_duplicates: str = "error",
    scope: str = "auto",
) -> tuple[TableHandle, Result]:
    """Write rows in place of those with the same keys, without looking for them.

    - `rows` must have every column of the table: what they replace goes as a whole;
    - `keys` are columns (dots lead into structs), by default the identifier fields; a null in
      one is an error, since null equals no key;
    - `on_duplicates` is `error`, or `latest by <column>`, which keeps the row with the largest
      value (null is the smallest; equal ones are an error);
    - `scope`: deletes go to the keys' `partition`s where the keys name them, else they are
      `global`.

    Arrow rows are sorted in the driver; what Spark holds is sorted and written by its tasks.
    """
    phases = Phases()
    view = _blind_view(handle, options)
    storage = Storage(view.io_properties)
    wanted = upsert_keys(view, keys, on_duplicates)
    reach = delete_scope(view, wanted.field_ids, storage, scope)
    with phases.phase("write"):
        source = _source(rows, engine, view)
        written = _written(view, engine, source, _context(view, wanted, reach), options)
    if not written.num_rows and options.app_batch is None:
        return handle, Result("upsert", seconds=phases.total, phases=phases.seconds)
    is_data = pc.equal(written["content"], int(Content.DATA))
    change = Change(
        Operation.OVERWRITE,
        added_data=written.filter(is_data),
        added_deletes=written.filter(pc.invert(is_data)),
        branch=options.branch,
        stage_only=options.stage_only,
        properties=options.properties,
        app_batch=options.app_batch,
    )
    return _committed(handle, change, storage, "upsert", phases, [reach], view)


def blind_changes(
    handle: TableHandle,
    rows: pa.Table,
    deleted: pa.Array,
    keys: Keys,
    options: WriteOptions,
    phases: Phases,
) -> tuple[TableHandle, Result]:
    """Write rows in place of those with the same keys, and delete others by key; in one commit.

    `rows` has the table's columns and one row per key; of those that are `deleted` the keys alone
    are looked at. Written in the driver.
    """
    view = _blind_view(handle, options)
    storage = Storage(view.io_properties)
    reach = delete_scope(view, keys.field_ids, storage)
    context = _context(view, keys, reach)
    with phases.phase("write"):
        written = _write_changes(rows, deleted, context, storage)
    is_data = pc.equal(written["content"], int(Content.DATA))
    change = Change(
        Operation.OVERWRITE,
        added_data=written.filter(is_data),
        added_deletes=written.filter(pc.invert(is_data)),
        branch=options.branch,
        stage_only=options.stage_only,
        properties=options.properties,
        app_batch=options.app_batch,
    )
    if not written.num_rows and options.app_batch is None:
        return handle, Result("upsert", seconds=phases.total, phases=phases.seconds)
    return _committed(handle, change, storage, "upsert", phases, [reach], view)


def _write_changes(
    rows: pa.Table, deleted: pa.Array, context: UpsertContext, storage: Storage
) -> pa.Table:
    if not rows.num_rows:
        return WRITTEN_FILES.empty_table()
    order = key_order(context.keys)
    batch = rows.combine_chunks().to_batches()[0]
    columns = {each: column_at(batch, context.keys.schema, each) for each in context.keys.field_ids}
    found = key_batch(context.deletes[0].schema, columns)
    in_order = found.take(sort_indices(found, order, context.deletes[0].schema))
    written = [write_equality_deletes(list(context.deletes), in_order)]
    try:
        upserts = rows.filter(pc.invert(deleted)).combine_chunks().to_batches()
        in_order = _sorted(iter(upserts), order, context)
        written += [pa.Table.from_batches([each]) for each in write_batches(context.data, in_order)]
    except BaseException:
        remove_written(written[0], storage)
        raise
    return pa.concat_tables(written)


def blind_delete(
    handle: TableHandle,
    predicate: Predicate,
    options: WriteOptions,
    *,
    scope: str = "auto",
) -> tuple[TableHandle, Result]:
    """Delete the rows of a predicate made of `=`, IN, IS NULL, AND and OR, without reading any.

    Sets of different columns (`a = 1 OR b = 2`) become delete files of their own.
    """
    phases = Phases()
    view = _blind_view(handle, options)
    storage = Storage(view.io_properties)
    sets = key_sets(bind(predicate, view.schema), view.schema)
    if (not sets or view.snapshot is None) and options.app_batch is None:
        return handle, Result("delete", seconds=phases.total, phases=phases.seconds)
    reaches = [delete_scope(view, each.field_ids, storage, scope) for each in sets]
    with phases.phase("write"):
        written = _write_key_sets(view, sets, reaches, storage)
    change = Change(
        Operation.DELETE,
        added_deletes=written,
        branch=options.branch,
        stage_only=options.stage_only,
        properties=options.properties,
        app_batch=options.app_batch,
    )
    return _committed(handle, change, storage, "delete", phases, reaches, view)


def _blind_view(handle: TableHandle, options: WriteOptions) -> TableView:
    view = view_for_write(handle, options.branch)
    deletes_of(Deletes.EQUALITY.value, view, options.mode)
    return view


def _committed(
    handle: TableHandle,
    change: Change,
    storage: Storage,
    operation: str,
    phases: Phases,
    reaches: list[DeleteScope],
    view: TableView,
) -> tuple[TableHandle, Result]:
    landed, result = committed_result(
        handle, change, storage, operation, phases, first=scope_updates(reaches, view)
    )
    if result.skipped:
        return landed, result
    deletes = change.added_deletes
    return landed, replace(
        result,
        delete_files_added=deletes.num_rows,
        bytes_written=result.bytes_written
        + int(pc.sum(deletes["file_size_in_bytes"]).as_py() or 0),
    )


# ---------------------------------------------------------------------- upsert


def upsert_keys(view: TableView, names: Sequence[str] | None, on_duplicates: str) -> Keys:
    """Return the keys of an upsert: the named columns, else the identifier fields."""
    if isinstance(names, str):
        names = [names]
    if names is None:
        identities = list(view.schema.identifier_field_ids)
    else:
        identities = [column_id(name, view.schema) for name in names]
    if not identities:
        raise InvalidStatementError(
            f"Cannot upsert into {view.name} without keys: name them (keys=[…]), or set identifier "
            "fields (ALTER TABLE … SET IDENTIFIER FIELDS)."
        )
    for identity in identities:
        validate_key_column(view.schema, identity)
    if len(set(identities)) < len(identities):
        raise InvalidStatementError(f"A key column is named twice: {shown(names or ())}.")
    latest = latest_column(on_duplicates, view.schema)
    return Keys(view.name, view.schema, tuple(identities), latest)


def _source(rows: Any, engine: Engine, view: TableView) -> Source:
    found = read_if_small(source_of(rows, engine, view.schema.arrow))
    given = {name for name, _ in matched_names(names_of(found), view)}
    missing = [name for name in view.schema.arrow.names if name not in given]
    if missing:
        raise SchemaMismatchError(
            f"Cannot upsert into {view.name}: the source lacks {shown(missing)}. With "
            "deletes='equality' whole rows are replaced, unread, so every column is needed.",
            column=missing[0],
        )
    return found


def _context(view: TableView, keys: Keys, scope: DeleteScope) -> UpsertContext:
    operation_id = str(uuid.uuid4())
    is_sorted = bool(view.sort_order.fields)
    return UpsertContext(
        data=write_context(view, operation_id=operation_id, sort="local" if is_sorted else "none"),
        deletes=tuple(
            equality_delete_context(view, keys.field_ids, operation_id=operation_id, spec=spec)
            for spec in scope.specs
        ),
        keys=keys,
    )


def _written(
    view: TableView,
    engine: Engine,
    source: Source,
    context: UpsertContext,
    options: WriteOptions,
) -> pa.Table:
    kernel = partial(upsert_kernel, context)
    order = key_order(context.keys)
    if isinstance(source, ArrowSource):
        matched = matched_batches(source.schema, source.batches, view)
        rows = _sorted(matched, order, context)
        return pa.Table.from_batches(list(kernel(rows)), WRITTEN_FILES)
    frame = engine.clustered(
        matched_frame(source.frame, view), key_groups(view, context.keys), order, view.schema
    )
    try:
        return engine.consume(
            frame,
            kernel,
            WRITTEN_FILES,
            label=f"upserting into {view.name}",
            progress=options.progress,
        )
    except BaseException:
        # A storage that cannot be listed must not hide why the write failed.
        with suppress(RowlakeError):
            remove_attempt(context.data, Storage(view.io_properties))
        raise


def key_groups(view: TableView, keys: Keys) -> tuple[SortField, ...]:
    """Return what rows are brought together by: their partitions where keys name these."""
    fields = [field for field in view.spec.fields if field.transform != "void"]
    if fields and {field.source_id for field in fields} <= set(keys.field_ids):
        return tuple(SortField(field.source_id, field.transform) for field in fields)
    return tuple(SortField(each, "identity") for each in keys.field_ids)


def _sorted(
    batches: Iterator[pa.RecordBatch], order: tuple[SortField, ...], context: UpsertContext
) -> list[pa.RecordBatch]:
    schema = context.data.schema
    rows = [conform(batch, schema) for batch in batches if len(batch)]
    return sort_batches(rows, order, schema) if rows else []


# ---------------------------------------------------------------------- delete


def _write_key_sets(
    view: TableView, sets: list[KeySet], scopes: list[DeleteScope], storage: Storage
) -> pa.Table:
    written = [WRITTEN_FILES.empty_table()]
    operation_id = str(uuid.uuid4())
    try:
        for keys, scope in zip(sets, scopes, strict=True):
            contexts = [
                equality_delete_context(view, keys.field_ids, operation_id=operation_id, spec=spec)
                for spec in scope.specs
            ]
            batch = key_batch(contexts[0].schema, keys.columns)
            order = tuple(SortField(each, "identity") for each in keys.field_ids)
            in_order = batch.take(sort_indices(batch, order, contexts[0].schema))
            written.append(write_equality_deletes(contexts, in_order))
    except BaseException:
        for files in written:
            remove_written(files, storage)
        raise
    return pa.concat_tables(written)
