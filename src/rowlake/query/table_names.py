"""What a dotted name in a FROM clause means: a table, a branch or tag of one, a metadata table."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.errors import TableNotFoundError
from rowlake.query.change_feeds import CHANGES
from rowlake.sqltext.lexer import readable

if TYPE_CHECKING:
    from rowlake.model.schema import Schema

SchemaLookup = Callable[[tuple[str, ...]], "Schema | None"]

METADATA_TABLES = frozenset(
    {
        "snapshots",
        "history",
        "files",
        "data_files",
        "delete_files",
        "all_data_files",
        "all_delete_files",
        "all_files",
        "manifests",
        "all_manifests",
        "partitions",
        "entries",
        "all_entries",
        "refs",
        "metadata_log_entries",
        "position_deletes",
        CHANGES,
    }
)
_SHORTEST = 3  # namespace, table, metadata table
_VERSIONED = re.compile(r"(.+)@[vV](\d{1,18})", re.DOTALL)
_SELECTOR = re.compile(r"(branch|tag|snapshot_id|at_timestamp)_(.+)", re.IGNORECASE)


@dataclass(frozen=True)
class Target:
    """A lake table, at a branch, tag, snapshot or time where one is named, or its metadata.

    `schema` is the table's current one.
    """

    table: tuple[str, ...]
    schema: Schema
    branch: str | None = None
    tag: str | None = None
    snapshot_id: int | None = None
    as_of_ms: int | None = None
    metadata_table: str | None = None

    @property
    def is_feed(self) -> bool:
        """Return True where the changes of the table are meant."""
        return self.metadata_table == CHANGES

    @property
    def is_current(self) -> bool:
        """Return True where the table's current schema is the one to read with."""
        return not (self.tag or self.metadata_table) and not self.is_at_a_moment

    @property
    def is_at_a_moment(self) -> bool:
        """Return True where a snapshot or a time is named; a snapshot's id may be 0."""
        return self.snapshot_id is not None or self.as_of_ms is not None


def locate(parts: tuple[str, ...], lookup: SchemaLookup) -> Target | None:
    """Return what a name means in the lake; None where it is not the lake's."""
    schema = lookup(parts)
    if schema is not None:
        return Target(parts, schema)
    versioned = _VERSIONED.fullmatch(parts[-1])
    if versioned is not None:
        return _at_version((*parts[:-1], versioned[1]), int(versioned[2]), lookup)
    if len(parts) < 2:
        return None
    schema = lookup(parts[:-1])
    if schema is None:
        return None
    last = parts[-1]
    if last.lower() in METADATA_TABLES:
        return Target(parts[:-1], schema, metadata_table=last.lower())
    return _selected(parts[:-1], schema, last)


def validate_known(parts: tuple[str, ...], lookup: SchemaLookup) -> None:
    """Raise where a name is a lake table's with something behind it that no table has."""
    if len(parts) < _SHORTEST or lookup(parts[:-1]) is None:
        return
    table, known = readable(parts[:-1]), ", ".join(sorted(METADATA_TABLES))
    raise TableNotFoundError(
        f"{readable(parts[-1:])} of {table}",
        kind="metadata table",
        hint=f"Expected one of: {known}; or branch_<name>, tag_<name>, snapshot_id_<id>, "
        "at_timestamp_<ms>.",
    )


def _at_version(table: tuple[str, ...], version: int, lookup: SchemaLookup) -> Target | None:
    schema = lookup(table)
    return None if schema is None else Target(table, schema, snapshot_id=version)


def _selected(table: tuple[str, ...], schema: Schema, text: str) -> Target | None:
    match = _SELECTOR.fullmatch(text)
    if match is None:
        return None
    kind, value = match[1].lower(), match[2]
    if kind == "branch":
        return Target(table, schema, branch=value)
    if kind == "tag":
        return Target(table, schema, tag=value)
    if not value.isdecimal():
        return None
    if kind == "snapshot_id":
        return Target(table, schema, snapshot_id=int(value))
    return Target(table, schema, as_of_ms=int(value))
