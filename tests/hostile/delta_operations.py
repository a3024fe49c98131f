"""What is run on mutated Delta tables: what they share with Iceberg's, and verbs of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.errors import RowlakeError
from tests.hostile.operations import (
    READS,
    SWEEP,
    WRITES,
    Repertoire,
    State,
    WrongRowsError,
    inspecting,
    keeping,
)

if TYPE_CHECKING:
    from tests.hostile.operations import Look, Write

METADATA_TABLES = (
    "data_files",
    "delete_files",
    "files",
    "history",
    "partitions",
    "refs",
    "snapshots",
)
SHARED_READS = (
    "read",
    "read some",
    "read columns",
    "read before",
    "read by time",
    "snapshots",
    "plan optimize",
    "plan compaction",
)
SHARED_WRITES = (
    "append",
    "overwrite",
    "upsert",
    "delete, merge-on-read",
    "delete, copy-on-write",
    "compact",
    "optimize",
    "set a property",
)
NOW: dict[str, Any] = {"retention_hours": 0, "enforce_retention_duration": False}


def vacuum(table: Any, held: list[str], state: State) -> list[str]:
    """Delete what no version needs: a table that was readable still is."""
    was_readable = _is_readable(table)
    table.vacuum(dry_run=False, **NOW)
    if was_readable and not _is_readable(table):
        raise WrongRowsError("VACUUM deleted files that the table needs")
    return held


def _is_readable(table: Any) -> bool:
    try:
        table.arrow()
    except RowlakeError:
        return False
    return True


def restore(table: Any, held: list[str], state: State) -> list[str] | None:
    version, before = state.orders.snapshots[1]
    table.restore(version)
    return None if state.orders.history_lies else before


def clone(*, shallow: bool) -> Write:
    """Clone a table: the clone has its rows, or there is none."""

    def run(table: Any, held: list[str], state: State) -> list[str]:
        name = "db.shallow" if shallow else "db.deep"
        table.clone(name, shallow=shallow)
        state.check(table.lake.table(name).arrow(), state.rows)
        return held

    return run


READS_OF_DELTA: dict[str, Look] = {
    **{name: READS[name] for name in SHARED_READS},
    **{f"inspect {name}": inspecting(name) for name in METADATA_TABLES},
    "health": lambda table, _: table.health(),
    "history": lambda table, _: table.history(),
    "plan vacuum": lambda table, _: table.vacuum(**NOW),
    "changes": lambda table, _: table.changes_arrow(),
    "some changes": lambda table, _: table.changes_arrow(3, 5),
}
WRITES_OF_DELTA: dict[str, Write] = {
    **{name: WRITES[name] for name in SHARED_WRITES},
    "truncate": lambda table, held, state: table.truncate() and [],
    "restore": restore,
    "vacuum": vacuum,
    "shallow clone": clone(shallow=True),
    "deep clone": clone(shallow=False),
    "reorg": keeping(lambda table: table.reorg()),
    "manifests": keeping(lambda table: table.generate()),
    "mirror": keeping(lambda table: table.mirror("iceberg")),
    "feed": keeping(lambda table: table.set_properties({"delta.enableChangeDataFeed": "true"})),
    "checkpoints": keeping(lambda table: table.set_properties({"delta.checkpointInterval": "1"})),
}
DELTA = Repertoire(
    READS_OF_DELTA,
    WRITES_OF_DELTA,
    {"append": SWEEP["append"], "vacuum": vacuum},
    can_purge=False,
)
