"""What the metadata commands show; no Spark."""

from __future__ import annotations

import datetime
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.cli.json_rows import Rows
from rowlake.model.overview import overview_of
from rowlake.model.provenance import Provenance, provenance_of
from rowlake.model.report import Report
from rowlake.secrets import redacted, without_passwords
from rowlake.storage.locations import is_remote

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.model.view import TableView
    from rowlake.table import Table

TIME = pa.timestamp("ms", "UTC")


def table_of(lake: Lake, text: str) -> Table:
    """Return the table that a text names: in the catalog, or a Delta table by its path."""
    if "/" not in text or "`" in text:
        return lake.table(text)
    return lake.table(("delta", text if is_remote(text) else str(Path(text).absolute())))


def tables_of(lake: Lake, namespace: str | None) -> Rows:
    """Return the tables of a lake with their format version, rows and last change."""
    schema = pa.schema(
        [
            ("table", pa.string()),
            ("format", pa.int32()),
            ("rows", pa.int64()),
            ("files", pa.int64()),
            ("last_changed", TIME),
        ]
    )
    return Rows(schema, [_table_row(lake.table(name)) for name in lake.tables(namespace)])


def _table_row(table: Table) -> tuple[Any, ...]:
    found = overview_of(table.handle)
    changed = _time(found.last_updated_ms)
    return table.name, found.format_version, found.rows, found.files, changed


def _time(milliseconds: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.timezone.utc)


def description_of(table: Table) -> Rows:
    """Return a table's columns, then its layout and properties, as (name, value, comment)."""
    handle, schema = table.handle, table.schema
    rows = [
        (field.name, f"{field.field_type}{' required' if field.required else ''}", field.doc or "")
        for field in schema.fields
    ]
    spec = [
        f"{field.transform}({schema.find_column_name(field.source_id)})"
        for field in table.spec.fields
    ]
    rows += [
        ("", "", ""),
        ("# format", table.format, ""),
        ("# format version", str(handle.format_version), ""),
        ("# location", without_passwords(handle.location), ""),
        ("# partitioned by", ", ".join(spec) or "nothing", ""),
        ("# sorted by", _order_text(handle.view()), ""),
        ("# current snapshot", str(handle.current_snapshot_id), ""),
        ("# refs", ", ".join(sorted(handle.refs)) or "none", ""),
    ]
    shown = sorted(redacted(handle.properties).items())
    rows += [(f"# property {key}", value, "") for key, value in shown]
    names = ("name", "value", "comment")
    return Rows(pa.schema([(name, pa.string()) for name in names]), rows)


def _order_text(view: TableView) -> str:
    keys = [
        f"{'.'.join(view.schema.paths[field.source_id])} {'ASC' if field.ascending else 'DESC'}"
        for field in view.sort_order.fields
    ]
    return ", ".join(keys) or "nothing"


def history_of(table: Table) -> Rows:
    """Return what was done to a table, newest first."""
    handle = table.handle
    refs: dict[int, list[str]] = {}
    for name, ref in handle.refs.items():
        refs.setdefault(ref.snapshot_id, []).append(name)
    made = provenance_of(handle.snapshots)
    rows = [
        (
            _time(snapshot.timestamp_ms),
            snapshot.snapshot_id,
            *astuple(made[snapshot.snapshot_id]),
            ", ".join(sorted(refs.get(snapshot.snapshot_id, []))),
        )
        for snapshot in reversed(handle.snapshots)
    ]
    told = [
        (one.name, pa.int64() if "rows" in one.name else pa.string()) for one in fields(Provenance)
    ]
    schema = pa.schema(
        [("committed_at", TIME), ("snapshot_id", pa.int64()), *told, ("refs", pa.string())]
    )
    return Rows(schema, rows)


SNAPSHOTS = pa.schema(
    [
        ("committed_at", pa.timestamp("us", "UTC")),
        ("snapshot_id", pa.int64()),
        ("parent_id", pa.int64()),
        ("operation", pa.string()),
        ("manifest_list", pa.string()),
        ("summary", pa.map_(pa.string(), pa.string())),
    ]
)


def snapshots_of(table: Table) -> Rows:
    """Return the retained snapshots, oldest first, like the metadata table `snapshots`."""
    rows = [
        (
            _time(snapshot.timestamp_ms),
            snapshot.snapshot_id,
            snapshot.parent_id,
            snapshot.operation,
            snapshot.manifest_list,
            list(redacted(snapshot.summary).items()),
        )
        for snapshot in table.snapshots()
    ]
    return Rows(SNAPSHOTS, rows)


def files_of(table: Table) -> pa.Table:
    """Return the files of the current snapshot, the most useful columns first."""
    wanted = ["content", "file_path", "file_format", "record_count", "file_size_in_bytes"]
    return table.files().select(wanted)


@dataclass(frozen=True)
class RolledBack(Report):
    """What a branch pointed to, and points to now."""

    previous_snapshot_id: int | None
    current_snapshot_id: int | None

    def rows(self) -> list[tuple[str, str]]:
        """Return (name, value), ids without separators."""
        ids = {
            "previous snapshot id": self.previous_snapshot_id,
            "current snapshot id": self.current_snapshot_id,
        }
        return [(name, str(value)) for name, value in ids.items()]


def rolled_back(
    table: Table, snapshot_id: int | None, as_of: str | None, branch: str
) -> RolledBack:
    """Move a branch back; return where it pointed and where it points now."""
    previous = _head(table, branch)
    table.rollback_to(snapshot_id=snapshot_id, as_of=as_of, branch=branch)
    return RolledBack(previous, _head(table, branch))


def _head(table: Table, branch: str) -> int | None:
    found = table.handle.refs.get(branch)
    return None if found is None else found.snapshot_id
