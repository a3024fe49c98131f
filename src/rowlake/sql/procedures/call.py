"""CALL: the procedures, with Iceberg's names, arguments and output columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.model.names import levels_of
from rowlake.query.refusals import told_plainly
from rowlake.sql.procedures import (
    changelog,
    deletes,
    expire,
    health,
    ingest,
    manifests,
    orphans,
    rewrite,
    stats,
)
from rowlake.sql.procedures.procedure import (
    REQUIRED,
    Procedure,
    checked,
    longs,
    moment,
    procedure,
    table_of,
)
from rowlake.sql.tables import new_name
from rowlake.sqltext.lexer import Lexer
from rowlake.sqltext.literals import literal_of

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.sql.statements import Argument, Call
    from rowlake.table import Table


def call(lake: Lake, statement: Call) -> pa.Table:
    """Run a procedure."""
    found = PROCEDURES.get(statement.procedure)
    if found is None:
        known = ", ".join(sorted(PROCEDURES))
        raise UnsupportedFeatureError(
            f"Unknown procedure {statement.procedure} (expected one of: {known})."
        )
    values = _bound(lake, statement, found)
    return found.run(lake, **values)


def is_foreign(lake: Lake, statement: Call) -> bool:
    """Return True where a procedure is of another catalog, which Spark knows."""
    if not statement.catalog:
        return False
    return ".".join(statement.catalog).lower() != str(lake.catalog.name).lower()


def _bound(lake: Lake, statement: Call, called: Procedure) -> dict[str, Any]:
    names = [parameter.name for parameter in called.parameters]
    values: dict[str, Any] = {}
    for position, argument in enumerate(statement.arguments):
        name = argument.name or (names[position] if position < len(names) else None)
        if name not in names:
            raise InvalidStatementError(
                f"{statement.procedure} has no argument {name or position + 1}; it has "
                f"{', '.join(names)}."
            )
        if name in values:
            raise InvalidStatementError(f"{statement.procedure} is given {name} twice.")
        values[name] = checked(statement.procedure, name, argument_value(lake, argument))
    for parameter in called.parameters:
        if values.get(parameter.name) is not None:
            continue
        if parameter.default is REQUIRED:
            raise InvalidStatementError(f"{statement.procedure} needs argument {parameter.name}.")
        values[parameter.name] = parameter.default
    return values


def argument_value(lake: Lake, argument: Argument) -> Any:
    """Return the value of an argument; what is no plain literal is evaluated by Spark."""
    literal = literal_of(Lexer(argument.value).all()[:-1], {})
    if literal is not None and literal.kind in ("string", "integer", "boolean", "null"):
        return literal.value
    question = f"SELECT {argument.value}"
    with told_plainly(lake.workspace, question, moved=True):
        return lake.spark.sql(question).collect()[0][0]


def _current(table: Table, branch: str = "main") -> int | None:
    return table.handle.head_of(branch)


def _rollback_to_snapshot(lake: Lake, table: str, snapshot_id: int) -> pa.Table:
    found = table_of(lake, table)
    previous = _current(found)
    found.rollback_to(snapshot_id=snapshot_id)
    return longs(previous_snapshot_id=previous, current_snapshot_id=_current(found))


def _rollback_to_timestamp(lake: Lake, table: str, timestamp: Any) -> pa.Table:
    found = table_of(lake, table)
    previous = _current(found)
    found.rollback_to(as_of=moment(lake, timestamp))
    return longs(previous_snapshot_id=previous, current_snapshot_id=_current(found))


def _set_current_snapshot(
    lake: Lake, table: str, snapshot_id: int | None, ref: str | None
) -> pa.Table:
    found = table_of(lake, table)
    if (snapshot_id is None) == (ref is None):
        raise InvalidStatementError("set_current_snapshot needs either snapshot_id or ref.")
    previous = _current(found)
    wanted = snapshot_id if ref is None else found.handle.head_of(ref)
    if wanted is None:
        raise InvalidStatementError(f"Table {found.name} has no branch or tag {ref}.")
    found.set_current_snapshot(wanted)
    return longs(previous_snapshot_id=previous, current_snapshot_id=_current(found))


def _cherrypick_snapshot(lake: Lake, table: str, snapshot_id: int) -> pa.Table:
    found = table_of(lake, table)
    found.cherry_pick(snapshot_id)
    return longs(source_snapshot_id=snapshot_id, current_snapshot_id=_current(found))


def _publish_changes(lake: Lake, table: str, wap_id: str) -> pa.Table:
    found = table_of(lake, table)
    staged = [s for s in found.snapshots() if s.summary.get("wap.id") == wap_id]
    found.publish(wap_id)
    source = staged[0].snapshot_id
    return longs(source_snapshot_id=source, current_snapshot_id=_current(found))


def _fast_forward(lake: Lake, table: str, branch: str, to: str) -> pa.Table:
    found = table_of(lake, table)
    previous = _current(found, branch)
    found.fast_forward(branch, to)
    return pa.table(
        {
            "branch_updated": pa.array([branch], pa.string()),
            "previous_ref": pa.array([previous], pa.int64()),
            "updated_ref": pa.array([_current(found, branch)], pa.int64()),
        }
    )


def _ancestors_of(lake: Lake, table: str, snapshot_id: int | None) -> pa.Table:
    found = table_of(lake, table)
    start = _current(found) if snapshot_id is None else snapshot_id
    if snapshot_id is not None and found.handle.snapshot(snapshot_id) is None:
        raise InvalidStatementError(f"Table {found.name} has no snapshot {snapshot_id}.")
    times = {s.snapshot_id: s.timestamp_ms for s in found.snapshots()}
    ids = [one.snapshot_id for one in found.handle.ancestors(start)]
    return pa.table(
        {
            "snapshot_id": pa.array(ids, pa.int64()),
            "timestamp": pa.array([times[i] for i in ids], pa.int64()),
        }
    )


def _register_table(lake: Lake, table: str, metadata_file: str) -> pa.Table:
    found = lake.register_table(new_name(lake, levels_of(table)), metadata_file)
    current = {s.snapshot_id: s for s in found.snapshots()}.get(_current(found) or -1)
    summary = current.summary if current else {}
    return longs(
        current_snapshot_id=_current(found),
        total_records_count=int(summary.get("total-records", 0)),
        total_data_files_count=int(summary.get("total-data-files", 0)),
    )


PROCEDURES: dict[str, Procedure] = {
    "add_files": procedure(
        ingest.add_files,
        "table",
        "source_table",
        partition_filter=None,
        check_duplicate_files=True,
        parallelism=1,
    ),
    "ancestors_of": procedure(_ancestors_of, "table", snapshot_id=None),
    "cherrypick_snapshot": procedure(_cherrypick_snapshot, "table", "snapshot_id"),
    "fast_forward": procedure(_fast_forward, "table", "branch", "to"),
    "migrate": procedure(
        ingest.migrate,
        "table",
        properties=None,
        drop_backup=False,
        backup_table_name=None,
        parallelism=1,
    ),
    "publish_changes": procedure(_publish_changes, "table", "wap_id"),
    "register_table": procedure(_register_table, "table", "metadata_file"),
    "rollback_to_snapshot": procedure(_rollback_to_snapshot, "table", "snapshot_id"),
    "rollback_to_timestamp": procedure(_rollback_to_timestamp, "table", "timestamp"),
    "set_current_snapshot": procedure(_set_current_snapshot, "table", snapshot_id=None, ref=None),
    "snapshot": procedure(
        ingest.snapshot,
        "source_table",
        "table",
        location=None,
        properties=None,
        parallelism=1,
    ),
    **changelog.PROCEDURES,
    **deletes.PROCEDURES,
    **expire.PROCEDURES,
    **health.PROCEDURES,
    **manifests.PROCEDURES,
    **rewrite.PROCEDURES,
    **stats.PROCEDURES,
    **orphans.PROCEDURES,
}
