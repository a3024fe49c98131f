"""Upsert: source rows take the place of the target's rows with the same key, or are added.

Comes in: source rows and keys. Goes out: the handle after the commit and a `Result`. One row per
key among what is written is guaranteed: the source is checked (or thinned out) as it is staged,
and a writer that lost a race to another one with the same keys is replanned. Rows that hold the
new values already are not rewritten. With equality deletes the target is not read at all
(`rowlake.rowlevel.equality_writes`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.commit.rerun import rerun_on_conflict
from rowlake.errors import InvalidStatementError, SchemaMismatchError, UnsupportedFeatureError
from rowlake.model.column_rules import generated_columns
from rowlake.model.merge import Action, When
from rowlake.model.schema import WRITE_DEFAULT, Schema
from rowlake.model.values import from_json
from rowlake.rowlevel.change import change_rows
from rowlake.rowlevel.equality_writes import blind_upsert, key_groups, upsert_keys
from rowlake.rowlevel.operation import RowChange
from rowlake.rowlevel.staged import Dealing
from rowlake.rowlevel.staging import PlainRows, Shape, staging
from rowlake.rowlevel.strategy import Deletes, deletes_of
from rowlake.rowlevel.task import Matching, TaskClause
from rowlake.rowlevel.unique import key_order
from rowlake.sources.column_match import matched_batches, matched_frame, matched_names
from rowlake.sources.plain_parquet import FileSource
from rowlake.sources.rows import ArrowSource, names_of, read_if_small, rereadable, source_of
from rowlake.verbs.made_columns import bases_of, with_made_columns
from rowlake.verbs.write import is_done, view_for_write
from rowlake.write.conform import conform
from rowlake.write.sort import sort_batches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.result import Result
    from rowlake.model.view import TableView
    from rowlake.rowlevel.unique import Keys
    from rowlake.sources.rows import Source
    from rowlake.verbs.write import WriteOptions

_UPDATE, _REJECT = "update", "reject"
# Larger files are sorted by Spark: here, two unpacked copies of them need room on the disk.
_SORTED_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class Upsert:
    """What to do: `if_exists` is `update`, or `reject` (an error where a key is there already)."""

    keys: Sequence[str] | None = None
    on_duplicates: str = "error"
    if_exists: str = _UPDATE


def upsert(
    handle: TableHandle, engine: Engine, rows: Any, wanted: Upsert, options: WriteOptions
) -> tuple[TableHandle, Result]:
    """Update the rows whose keys the source has, insert the others; in one commit."""
    if wanted.if_exists not in (_UPDATE, _REJECT):
        raise InvalidStatementError(
            f"if_exists is {wanted.if_exists!r}; it can be {_UPDATE!r} or {_REJECT!r}."
        )
    rows = rereadable(rows)
    runs: list[TableHandle] = []

    def run(found: TableHandle) -> tuple[TableHandle, Result]:
        runs.append(found)
        landed, result = _upsert(found, engine, rows, wanted, options)
        return landed, replace(result, retries=result.retries + len(runs) - 1)

    return rerun_on_conflict(handle, run)


def _upsert(
    handle: TableHandle, engine: Engine, rows: Any, wanted: Upsert, options: WriteOptions
) -> tuple[TableHandle, Result]:
    done = is_done(handle, options, "upsert")
    if done is not None:
        return handle, done
    view = view_for_write(handle, options.branch)
    asked = deletes_of(options.deletes, view, options.mode)
    if asked is Deletes.EQUALITY:
        if wanted.if_exists == _REJECT:
            raise InvalidStatementError(
                "if_exists='reject' needs the table to be read, which deletes='equality' does not."
            )
        return blind_upsert(
            handle, engine, rows, wanted.keys, options, on_duplicates=wanted.on_duplicates
        )
    keys = upsert_keys(view, wanted.keys, wanted.on_duplicates)
    source = read_if_small(source_of(rows, engine, view.schema.arrow))
    first = _given_columns(source, view, keys)
    made = with_made_columns(source, view, engine)
    source, view = made.source, made.view
    given = [name for name, _ in matched_names(names_of(source), view)]
    kept = _kept_columns(view, keys, first, given) | made.identities.keys()
    with staging(engine, view) as place:
        shape = _shape(view, keys, given)
        staged = place.stage(
            _in_order(source, engine, view, keys, given), shape, progress=options.progress
        )
        change = _change(view, keys, given, kept, wanted.if_exists)
        change = replace(change, staged=staged, identities=made.identities)
        return change_rows(handle, engine, change, options)


def _given_columns(source: Source, view: TableView, keys: Keys) -> list[str]:
    """Return the table's columns that the source has; all keys must be among them, whole."""
    given = [name for name, _ in matched_names(names_of(source), view)]
    for identity in keys.field_ids:
        path = view.schema.paths[identity]
        if len(path) > 1:
            raise InvalidStatementError(
                f"Cannot upsert into {view.name} by {'.'.join(path)}: a key must be a column, not "
                "a field of a struct. Use MERGE, or deletes='equality'."
            )
        if path[0] not in given:
            raise SchemaMismatchError(
                f"Cannot upsert into {view.name}: the source lacks the key {path[0]}.",
                column=path[0],
            )
    return given


def _kept_columns(view: TableView, keys: Keys, given: list[str], staged: list[str]) -> set[str]:
    """Return the generated columns that matched rows keep: what they are made of stays.

    Raises UnsupportedFeatureError where only a part of that is given: the rest is in the table.
    """
    names = {view.schema.paths[identity][0] for identity in keys.field_ids}
    kept: set[str] = set()
    for name, text in generated_columns(view.schema.arrow).items():
        bases = [base for base in bases_of(text, view.schema) if base not in names]
        if name in given or name not in staged or not bases:
            continue
        lacking = [base for base in bases if base not in given]
        if lacking and len(lacking) < len(bases):
            raise UnsupportedFeatureError(
                f"Cannot upsert into {view.name}: column {name} is generated as ({text}), and the "
                f"rows lack {', '.join(lacking)}. Give these columns too, or use MERGE."
            )
        kept |= {name} if lacking else set()
    return kept


def _shape(view: TableView, keys: Keys, given: list[str]) -> Shape:
    names = tuple(view.schema.paths[identity][0] for identity in keys.field_ids)
    fields = [view.schema.arrow.field(name) for name in given]
    return Shape(fields, names, dealing_for(view, names), keys)


def dealing_for(view: TableView, keys: tuple[str, ...]) -> Dealing:
    """Return how source rows are dealt: by partition, where the keys name it."""
    fields = [field for field in view.spec.fields if field.transform != "void"]
    paths = [view.schema.paths.get(field.source_id, ("",)) for field in fields]
    if not fields or not all(len(path) == 1 and path[0] in keys for path in paths):
        return Dealing()
    return Dealing(view.spec, view.schema, tuple(dict.fromkeys((p[0], p[0]) for p in paths)))


def _in_order(source: Source, engine: Engine, view: TableView, keys: Keys, given: list[str]) -> Any:
    """Return the source's rows with those of equal keys side by side; files, which tasks sort."""
    order = key_order(keys)
    if isinstance(source, ArrowSource):
        schema = Schema(pa.schema([view.schema.arrow.field(name) for name in given]))
        batches = matched_batches(source.schema, source.batches, view)
        rows = [conform(batch, schema) for batch in batches if len(batch)]
        return sort_batches(rows, order, schema) if rows else []
    if isinstance(source, FileSource) and _is_sorted_here(source, engine):
        names = source.schema.names
        chosen = source.select([(name, names[at]) for name, at in matched_names(names, view)])
        return PlainRows(tuple(chosen.tasks(engine.parallelism)), chosen.size_in_bytes)
    frame = matched_frame(source.frame, view)
    return engine.clustered(frame, key_groups(view, keys), order, view.schema)


def _is_sorted_here(source: FileSource, engine: Engine) -> bool:
    return engine.is_one_machine and source.size_in_bytes <= _SORTED_BYTES


def _change(
    view: TableView, keys: Keys, given: list[str], kept: set[str], if_exists: str
) -> RowChange:
    names = [view.schema.paths[identity][0] for identity in keys.field_ids]
    columns: dict[str, str | pa.Array] = {name: name for name in given}
    changed = {name: name for name in given if name not in names and name not in kept}
    clauses = [
        TaskClause(When.NOT_MATCHED, Action.INSERT, values={**defaults_for(view, given), **columns})
    ]
    if if_exists == _UPDATE and changed:
        clauses.insert(0, TaskClause(When.MATCHED, Action.UPDATE, values=changed))
    return RowChange(
        "upsert",
        tuple(clauses),
        Matching(tuple((name, name) for name in names), (False,) * len(names)),
        skips_unchanged=True,
        rejects_matches=if_exists == _REJECT,
        has_unique_keys=True,
        makes_columns=True,
    )


def defaults_for(view: TableView, given: list[str]) -> dict[str, str | pa.Array]:
    """Return the defaults of the columns that the source does not have."""
    found: dict[str, str | pa.Array] = {}
    for field in view.schema.arrow:
        text = (field.metadata or {}).get(WRITE_DEFAULT)
        if field.name not in given and text is not None:
            found[field.name] = pa.array([from_json(text.decode(), field).as_py()], field.type)
    return found
