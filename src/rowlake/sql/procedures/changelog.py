"""CALL create_changelog_view: changes as a temporary view, in Iceberg's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import InvalidStatementError
from rowlake.model.feed import DELETE, INSERT, ORDINAL, POSTIMAGE, PREIMAGE, SNAPSHOT, TYPE
from rowlake.sql.procedures.procedure import Procedure, procedure, table_of
from rowlake.sqltext.lexer import quote

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.lake import Lake
    from rowlake.table import Table

_OPTIONS = {
    "start-snapshot-id": "start",
    "end-snapshot-id": "end",
    "start-timestamp": "start_as_of",
    "end-timestamp": "end_as_of",
}
# Without update images an update is a delete and an insert.
_WORDS = {INSERT: "INSERT", DELETE: "DELETE", PREIMAGE: "DELETE", POSTIMAGE: "INSERT"}
_IMAGES = {**_WORDS, PREIMAGE: "UPDATE_BEFORE", POSTIMAGE: "UPDATE_AFTER"}


def _create_changelog_view(
    lake: Lake,
    table: str,
    changelog_view: str | None,
    options: Mapping[str, str] | None,
    compute_updates: bool | None,
    identifier_columns: Sequence[str] | None,
    net_changes: bool | None,
) -> pa.Table:
    found = table_of(lake, table)
    images = bool(identifier_columns) if compute_updates is None else compute_updates
    if images and net_changes:
        raise InvalidStatementError(
            "create_changelog_view cannot compute update images of net changes: set one of "
            "compute_updates and net_changes."
        )
    keys = _keys(found, identifier_columns) if images else []
    changes = found.changes(**_span(options or {}), keys=keys, net=bool(net_changes))
    view = changelog_view or f"{found.identifier[-1]}_changes"
    names = [quote(name) for name in changes.columns if name not in _CHANGE]
    words = _IMAGES if images else _WORDS
    cases = " ".join(f"WHEN '{ours}' THEN '{theirs}'" for ours, theirs in words.items())
    changes.selectExpr(
        *names, f"CASE {TYPE} {cases} END AS {TYPE}", ORDINAL, SNAPSHOT
    ).createOrReplaceTempView(view.strip("`"))
    return pa.table({"changelog_view": pa.array([view], pa.string())})


_CHANGE = (TYPE, ORDINAL, SNAPSHOT, "_commit_timestamp")


def _keys(table: Table, given: Sequence[str] | None) -> list[str]:
    keys = list(given or sorted(table.schema.identifier_field_names()))
    if not keys:
        raise InvalidStatementError(
            f"create_changelog_view cannot compute the update images of {table.name}: the table "
            "has no identifier fields. Give identifier_columns."
        )
    return keys


def _span(options: Mapping[str, str]) -> dict[str, Any]:
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown:
        raise InvalidStatementError(
            f"create_changelog_view has no option {unknown[0]} (expected one of: "
            f"{', '.join(_OPTIONS)})."
        )
    try:
        return {_OPTIONS[name]: int(value) for name, value in options.items()}
    except ValueError as error:
        raise InvalidStatementError(
            "Options of create_changelog_view are whole numbers: snapshot ids, or ms since 1970."
        ) from error


PROCEDURES: dict[str, Procedure] = {
    "create_changelog_view": procedure(
        _create_changelog_view,
        "table",
        changelog_view=None,
        options=None,
        compute_updates=None,
        identifier_columns=None,
        net_changes=None,
    ),
}
