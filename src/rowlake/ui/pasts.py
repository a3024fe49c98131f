"""The past of a table: snapshots with what made them, retried commits, schemas and specs.

Comes in: a `Look`. Goes out: rows for pages, all from metadata. Of retries the name of a snapshot's
manifest list tells (`snap-<id>-<attempt>-…`), which Iceberg's writers number per attempt: rowlake
counts from 0, Iceberg Java from 1. A commit that gave up leaves no trace in a table.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.model.provenance import STATEMENT
from rowlake.model.table_schema import table_schema
from rowlake.secrets import statement_without_secrets, without_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.model.schema import Schema
    from rowlake.model.table_schema import TableField, TableSchema
    from rowlake.model.view import SnapshotInfo, TableView
    from rowlake.ui.looks import Look

DAY_MS = 24 * 3600 * 1000
KINDS = ("append", "overwrite", "delete", "replace")
BUCKETS = 60
# How many versions are compared where a format keeps no list of schemas.
VERSIONS_COMPARED = 12
_ATTEMPT = re.compile(r"/snap-\d+-(\d{1,6})-[^/]*$")


@dataclass(frozen=True)
class Past:
    """One snapshot and what made it; counts that nobody knows are None."""

    snapshot_id: int
    parent_id: int | None
    when_ms: int
    operation: str
    statement: str
    condition: str
    updated: int | None
    deleted: int | None
    inserted: int | None
    total: int | None
    user: str
    refs: tuple[str, ...]
    lost: int
    files: tuple[int | None, int | None]


def pasts_of(look: Look, first: int = 0, most: int | None = None) -> list[Past]:
    """Return snapshots, newest first."""
    refs: dict[int, list[str]] = {}
    for name, ref in look.handle.refs.items():
        refs.setdefault(ref.snapshot_id, []).append(name)
    newest = list(reversed(look.handle.snapshots))
    wanted = newest[first : None if most is None else first + most]
    return [_past(look, each, tuple(sorted(refs.get(each.snapshot_id, ())))) for each in wanted]


def _past(look: Look, snapshot: SnapshotInfo, refs: tuple[str, ...]) -> Past:
    made = look.made[snapshot.snapshot_id]
    summary = snapshot.summary
    return Past(
        snapshot.snapshot_id,
        snapshot.parent_id,
        snapshot.timestamp_ms,
        snapshot.operation,
        without_secrets(made.statement),
        without_secrets(statement_without_secrets(made.condition or "")),
        made.rows_updated,
        made.rows_deleted,
        made.rows_inserted,
        made.total_rows,
        without_secrets(made.user or ""),
        refs,
        lost_attempts(snapshot),
        (_count(summary, "added-data-files"), _count(summary, "deleted-data-files")),
    )


def _count(summary: Mapping[str, str], key: str) -> int | None:
    text = str(summary.get(key, ""))
    return int(text) if text.isascii() and text.isdigit() else None


def lost_attempts(snapshot: SnapshotInfo) -> int:
    """Return how many attempts of a commit did not land before the one that did."""
    found = _ATTEMPT.search(snapshot.manifest_list or "")
    if found is None:
        return 0
    first = 0 if STATEMENT in snapshot.summary else 1
    return max(int(found[1]) - first, 0)


def conflicts_of(look: Look, now_ms: int | None = None) -> list[Past]:
    """Return the commits of the last day that were retried, newest first."""
    now = int(time.time() * 1000) if now_ms is None else now_ms
    recent = [
        place
        for place, each in enumerate(reversed(look.handle.snapshots))
        if now - each.timestamp_ms <= DAY_MS and lost_attempts(each)
    ]
    return [past for place in recent for past in pasts_of(look, place, 1)]


@dataclass(frozen=True)
class Activity:
    """Commits over time: counts per stretch of time and kind of operation."""

    start_ms: int
    end_ms: int
    columns: tuple[tuple[int, ...], ...]


def activity_of(snapshots: Sequence[SnapshotInfo]) -> Activity | None:
    """Return when commits were made; None without any."""
    if not snapshots:
        return None
    times = [each.timestamp_ms for each in snapshots]
    start, end = min(times), max(times)
    width = max(end - start, 1)
    columns = [[0] * len(KINDS) for _ in range(BUCKETS)]
    for each in snapshots:
        place = min((each.timestamp_ms - start) * BUCKETS // width, BUCKETS - 1)
        kind = KINDS.index(each.operation) if each.operation in KINDS else len(KINDS) - 1
        columns[place][kind] += 1
    return Activity(start, end, tuple(map(tuple, columns)))


# ---------------------------------------------------------------------- schemas


@dataclass(frozen=True)
class SchemaVersion:
    """One schema: since when it is in use (None: not known), and what it changed."""

    label: str
    since_ms: int | None
    snapshot_id: int | None
    changes: tuple[str, ...]
    is_current: bool


def schemas_of(look: Look) -> list[SchemaVersion]:
    """Return the schemas of a table, newest first."""
    view = look.handle.view()
    if len(view.schemas) > 1 or any(each.schema_id for each in look.handle.snapshots):
        return _numbered(look, view)
    return _compared(look, view)


def _numbered(look: Look, view: TableView) -> list[SchemaVersion]:
    first: dict[int, SnapshotInfo] = {}
    for snapshot in look.handle.snapshots:
        if snapshot.schema_id is not None:
            first.setdefault(snapshot.schema_id, snapshot)
    found, before = [], None
    for number in sorted(view.schemas):
        used = first.get(number)
        found.append(
            SchemaVersion(
                f"schema {number}",
                None if used is None else used.timestamp_ms,
                None if used is None else used.snapshot_id,
                changes_between(before, view.schemas[number]),
                number == look.handle.schema_id,
            )
        )
        before = view.schemas[number]
    return found[::-1]


def _compared(look: Look, view: TableView) -> list[SchemaVersion]:
    """Return schemas of a format without a list of them: those of versions that changed no file."""
    snapshots = look.handle.snapshots
    quiet = [
        each
        for each in snapshots[1:]
        if not (
            _count(each.summary, "added-data-files") or _count(each.summary, "deleted-data-files")
        )
    ]
    chosen = [*snapshots[:1], *quiet[-VERSIONS_COMPARED:]]
    found: list[SchemaVersion] = []
    before: Schema | None = None
    for each in chosen:
        schema = look.handle.view(snapshot_id=each.snapshot_id).schema
        told = changes_between(before, schema)
        if before is None or told:
            label = f"version {each.snapshot_id}"
            found.append(
                SchemaVersion(label, each.timestamp_ms, each.snapshot_id, told, is_current=False)
            )
        before = schema
    told = () if before is None else changes_between(before, view.schema)
    if told or not found:
        found.append(SchemaVersion("current", None, None, told, is_current=True))
    last = found.pop()
    return [
        SchemaVersion(last.label, last.since_ms, last.snapshot_id, last.changes, is_current=True),
        *found[::-1],
    ]


def changes_between(before: Schema | None, after: Schema) -> tuple[str, ...]:
    """Return what a schema changed, one text per column; of the first schema nothing."""
    if before is None:
        return ()
    old, new = table_schema(before), table_schema(after)
    by_name = _has_new_numbers(old, new)
    was, now = _columns(old, by_name=by_name), _columns(new, by_name=by_name)
    told = [f"added {_told(name, one)}" for key, (name, one) in now.items() if key not in was]
    told += [f"dropped {name}" for key, (name, _) in was.items() if key not in now]
    for key, (name, one) in now.items():
        if key in was:
            told += _changed(was[key], (name, one))
    keys = sorted(new.identifier_field_names())
    if keys != sorted(old.identifier_field_names()):
        told.append(f"rows are identified by {', '.join(keys)}" if keys else "no key columns")
    return tuple(told)


def _has_new_numbers(old: TableSchema, new: TableSchema) -> bool:
    """Return whether field ids do not identify columns: one name has two of them."""
    numbers = {one.name: one.field_id for one in old}
    return any(numbers.get(one.name, one.field_id) != one.field_id for one in new)


def _columns(schema: TableSchema, *, by_name: bool) -> dict[object, tuple[str, TableField]]:
    named = ((name, schema.find_field(name)) for name in schema.column_names)
    return {(name if by_name else one.field_id): (name, one) for name, one in named}


def _told(name: str, one: TableField) -> str:
    return f"{name} {one.field_type}{' NOT NULL' if one.required else ''}"


def _changed(before: tuple[str, TableField], after: tuple[str, TableField]) -> list[str]:
    (old_name, old), (name, new) = before, after
    told = [f"renamed {old_name} to {name}"] if old_name != name else []
    if str(old.field_type) != str(new.field_type) and not new.field_type.fields:
        told.append(f"changed {name} from {old.field_type} to {new.field_type}")
    if old.required != new.required:
        told.append(f"made {name} {'required' if new.required else 'optional'}")
    return told
