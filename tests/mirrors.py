"""Tables and their mirrors: what both hold, by rowlake's own readers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rowlake.catalog.formats import format_named
from rowlake.table import Table
from rowlake.verbs.alter import change_schema

OTHER = {"iceberg": "delta", "delta": "iceberg"}
V3 = {"format-version": "3"}
VECTORS = {"delta.enableDeletionVectors": "true"}
MAPPED = {**VECTORS, "delta.columnMapping.mode": "name"}


def mirror_of(table: Table) -> Table:
    """Return the mirror of a table, which must be there."""
    found = format_named(OTHER[table.format]).find_mirror(table.handle)
    assert found is not None, f"{table.name} has no mirror"
    return Table(found, table.lake)


def rows(table: Table) -> list[str]:
    """Return the rows of a table as texts, in order."""
    return sorted(map(repr, table.arrow().to_pylist()))


def check_equal(table: Table) -> list[str]:
    """Check that a table and its mirror have the same columns and rows, which are returned."""
    twin = mirror_of(table)
    assert twin.arrow().schema.names == table.arrow().schema.names
    found = rows(table)
    assert rows(twin) == found
    return found


def alter(table: Table, *changes: tuple[Any, ...]) -> None:
    """Change the schema in one commit: the name of a builder's method, and its arguments."""

    def build(builder: Any) -> None:
        for method, *arguments in changes:
            getattr(builder, method)(*arguments)

    change_schema(table.handle, build)


def versions(table: Table) -> int:
    """Return how many commits a table has."""
    return len(table.snapshots())


def log_of(table: Table, version: int) -> list[dict[str, Any]]:
    """Return the actions of a version of a Delta table."""
    path = Path(table.location) / "_delta_log" / f"{version:020d}.json"
    return [json.loads(line) for line in path.read_text().splitlines()]
