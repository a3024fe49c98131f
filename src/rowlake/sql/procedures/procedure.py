"""What a procedure of CALL is: its parameters in order, their kinds, and what runs it.

A procedure takes the lake and its arguments by name, and returns an Arrow table with Iceberg's
output columns. Modules `procedures*` each have some of them in a dict `PROCEDURES`.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from rowlake.errors import InvalidStatementError
from rowlake.model.names import levels_of
from rowlake.sql.tables import need_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.lake import Lake
    from rowlake.table import Table

REQUIRED = object()

# Arguments are strings unless named here; times may be text, timestamps or milliseconds.
_KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "also_below": ((list, str), "an array of folders, or text with commas"),
    "check_duplicate_files": (bool, "true or false"),
    "clean_expired_metadata": (bool, "true or false"),
    "compute_updates": (bool, "true or false"),
    "columns": (list, "an array, like array('a', 'b')"),
    "create_file_list": (bool, "true or false"),
    "drop_backup": (bool, "true or false"),
    "dry_run": (bool, "true or false"),
    "equal_authorities": (dict, "a map, like map('key', 'value')"),
    "equal_schemes": (dict, "a map, like map('key', 'value')"),
    "force": (bool, "true or false"),
    "identifier_columns": (list, "an array, like array('a', 'b')"),
    "max_bytes": (int, "a whole number"),
    "max_concurrent_deletes": (int, "a whole number"),
    "max_seconds": (int, "a whole number"),
    "net_changes": (bool, "true or false"),
    "options": (dict, "a map, like map('key', 'value')"),
    "orphans": (bool, "true or false"),
    "parallelism": (int, "a whole number"),
    "partition_filter": (dict, "a map, like map('key', 'value')"),
    "prefix_listing": (bool, "true or false"),
    "properties": (dict, "a map, like map('key', 'value')"),
    "retain_last": (int, "a whole number"),
    "snapshot_id": (int, "a whole number"),
    "snapshot_ids": (list, "an array, like array(1, 2)"),
    "sort_by": (list, "an array, like array('a', 'b')"),
    "spec_id": (int, "a whole number"),
    "stream_results": (bool, "true or false"),
    "use_caching": (bool, "true or false"),
}
_TIMES = frozenset({"timestamp", "older_than"})


@dataclass(frozen=True)
class Parameter:
    """One parameter of a procedure."""

    name: str
    default: Any = REQUIRED


@dataclass(frozen=True)
class Procedure:
    """A procedure: its parameters in order, and what runs it."""

    parameters: tuple[Parameter, ...]
    run: Callable[..., pa.Table]


def procedure(run: Callable[..., pa.Table], *names: str, **optional: Any) -> Procedure:
    """Return a procedure with required parameters, then optional ones with their defaults."""
    required = tuple(Parameter(name) for name in names)
    return Procedure(required + tuple(Parameter(k, v) for k, v in optional.items()), run)


def checked(of: str, name: str, value: Any) -> Any:
    """Return an argument's value, or say that it is of the wrong kind."""
    if name in _TIMES or value is None:
        return value
    kind, words = _KINDS.get(name, (str, "a string"))
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InvalidStatementError(f"{name} of {of} must be {words}, not {value!r}.")
    return value


def table_of(lake: Lake, name: str) -> Table:
    """Return the table that an argument names."""
    return need_table(lake, levels_of(name))


def moment(lake: Lake, value: Any) -> Any:
    """Return a time; text without a zone is in the session's."""
    if not isinstance(value, str):
        return value
    try:
        found = dt.datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
    except ValueError as error:
        raise InvalidStatementError(f"{value!r} is not a time.") from error
    return found if found.tzinfo else found.replace(tzinfo=ZoneInfo(lake.engine.time_zone))


def longs(**columns: int | None) -> pa.Table:
    """Return a table of one row of whole numbers."""
    return pa.table({name: pa.array([value], pa.int64()) for name, value in columns.items()})
