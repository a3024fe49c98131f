"""What to run, as a user types it: the CALL statement and the command of each maintenance verb."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMANDS = {
    "compute_table_stats": "stats",
    "convert_equality_deletes": "convert-equality-deletes",
    "expire_snapshots": "expire",
    "remove_orphan_files": "orphans",
    "rewrite_data_files": "rewrite-data-files",
    "rewrite_manifests": "rewrite-manifests",
    "rewrite_position_delete_files": "rewrite-position-deletes",
}


@dataclass(frozen=True)
class Advice:
    """One thing to run, in both forms."""

    sql: str
    command: str


def advice(
    verb: str,
    table: str,
    arguments: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
) -> Advice:
    """Return how a verb is run on a table; `arguments` are text ones, by Iceberg's names."""
    given = {"table": table, **(arguments or {})}
    sql = [f"{name} => {_literal(value)}" for name, value in given.items()]
    flags = [f"--{name.replace('_', '-')} {shlex.quote(value)}" for name, value in _flags(given)]
    if options:
        pairs = ", ".join(f"{_literal(key)}, {_literal(value)}" for key, value in options.items())
        sql.append(f"options => map({pairs})")
        flags += [f"--option {shlex.quote(f'{key}={value}')}" for key, value in options.items()]
    return Advice(
        f"CALL system.{verb}({', '.join(sql)})",
        " ".join(["rowlake", COMMANDS[verb], shlex.quote(table), *flags]),
    )


def _flags(given: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the arguments but the table, by the names that the command line has for them."""
    shorter = {"sort_order": "order"}
    return [(shorter.get(name, name), value) for name, value in given.items() if name != "table"]


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
