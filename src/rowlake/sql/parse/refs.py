"""Branches and tags: what follows CREATE | REPLACE | DROP BRANCH | TAG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.model.metadata_change import CreateRef, DropRef, Retention

if TYPE_CHECKING:
    from rowlake.sqltext.cursor import Cursor

_UNITS = {"DAYS": 86_400_000, "HOURS": 3_600_000, "MINUTES": 60_000}


def take_drop_ref(cursor: Cursor, kind: str) -> DropRef:
    """Take `[IF EXISTS] name`."""
    if_exists = cursor.if_exists()
    return DropRef(cursor.name(f"the name of a {kind}"), if_exists, kind)


def take_create_ref(cursor: Cursor, kind: str, *, replace: bool, create: bool = True) -> CreateRef:
    """Take the name and the options of a branch or tag."""
    if_not_exists = cursor.if_not_exists()
    ref = cursor.name(f"the name of a {kind}")
    snapshot_id, age = None, None
    if cursor.accept("AS", "OF", "VERSION"):
        snapshot_id = cursor.integer("a snapshot id")
    if cursor.accept("RETAIN"):
        age = cursor.integer() * _take_unit(cursor)
    keep, snapshot_age = _take_retention(cursor) if kind == "branch" else (None, None)
    retention = Retention(age, snapshot_age, keep)
    return CreateRef(ref, kind, snapshot_id, retention, replace, if_not_exists, create)


def _take_retention(cursor: Cursor) -> tuple[int | None, int | None]:
    """Take `WITH SNAPSHOT RETENTION [n SNAPSHOTS] [n DAYS]`."""
    if not cursor.accept("WITH", "SNAPSHOT", "RETENTION"):
        return None, None
    number, keep = cursor.integer(), None
    if cursor.accept("SNAPSHOTS"):
        keep = number
        if cursor.at_end():
            return keep, None
        number = cursor.integer()
    return keep, number * _take_unit(cursor)


def _take_unit(cursor: Cursor) -> int:
    return _UNITS[cursor.expect_one(*_UNITS)]
