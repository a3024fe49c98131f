"""Arguments of commands that change rows, as statements, clauses and sources."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rowlake.dml.operations import Delete, Update, When, qualifiers
from rowlake.dml.python_arguments import condition_of
from rowlake.merge_builder import TARGET
from rowlake.model.names import levels_of
from rowlake.sources.rows import READERS
from rowlake.sql.parse.create import QUERY_WORDS
from rowlake.sql.parse.row_level import parse_clause, take_assignments
from rowlake.sqltext.cursor import Cursor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.dml.operations import Clause
    from rowlake.lake import Lake
    from rowlake.merge_builder import MergeBuilder

_QUERY = re.compile(rf"\s*(\(|({'|'.join(QUERY_WORDS)})[\s(])", re.IGNORECASE)
_SHORT = {"update-all": "UPDATE SET *", "insert-all": "INSERT *"}


def write_options(
    branch: str | None,
    mode: str | None,
    deletes: str | None,
    isolation: str | None,
    properties: Sequence[str] | None,
) -> dict[str, Any]:
    """Return the options that were given, in the form that `Table`'s methods take."""
    found: dict[str, Any] = {
        "branch": branch,
        "mode": mode,
        "deletes": deletes,
        "isolation": isolation,
    }
    if properties:
        found["properties"] = dict(map(_property, properties))
    return {name: value for name, value in found.items() if value is not None}


def _property(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key.strip() or not equals:
        raise typer.BadParameter(f"--property takes KEY=VALUE, not {text!r}")
    return key.strip(), value.strip()


def deletion(table: str, where: str) -> Delete:
    """Return `rowlake delete` as a statement."""
    return Delete(levels_of(table), where=condition_of(where, "--where"))


def updating(table: str, texts: Sequence[str], where: str | None) -> Update:
    """Return `rowlake update` as a statement; each text may hold several assignments."""
    name = levels_of(table)
    cursor = Cursor(", ".join(texts))
    assignments = take_assignments(cursor, qualifiers(name, None))
    cursor.expect_end()
    return Update(name, assignments, where=condition_of(where, "--where"))


def explained(statement: str) -> str:
    """Return a statement prefixed with EXPLAIN."""
    return statement if Cursor(statement).at_words("EXPLAIN") else f"EXPLAIN {statement}"


# --- MERGE and upsert


def source_from(lake: Lake, text: str) -> Any:
    """Return the rows that a text names: a query, a path, or a table of the lake."""
    if _QUERY.match(text):
        return lake.sql(text)
    has_suffix = Path(text.rstrip("/")).suffix.lower() in READERS
    if has_suffix or "://" in text or Path(text).exists():
        return text
    return lake.sql(f"SELECT * FROM {text}")


def columns_in(text: str) -> list[str]:
    """Return the columns of `a,b`."""
    found = [part.strip() for part in text.split(",")]
    if not all(found):
        raise typer.BadParameter(f"--keys takes columns separated by commas, not {text!r}")
    return found


def match_on(on: str | None, keys: str | None) -> str | list[str]:
    """Return the condition of a match, or its columns."""
    if (on is None) == (keys is None):
        raise typer.BadParameter("give either --on or --keys")
    return on if on is not None else columns_in(keys or "")


def clauses_of(
    matched: Sequence[str] | None,
    not_matched: Sequence[str] | None,
    by_source: Sequence[str] | None,
) -> tuple[Clause, ...]:
    """Return the clauses of a MERGE, in their order for each kind of rows."""
    given = {
        When.MATCHED: matched,
        When.NOT_MATCHED: not_matched,
        When.NOT_MATCHED_BY_SOURCE: by_source,
    }
    clauses = tuple(
        parse_clause(_SHORT.get(text.strip().lower(), text), when, ((TARGET,),))
        for when, texts in given.items()
        for text in texts or ()
    )
    if not clauses:
        raise typer.BadParameter(
            "give at least one of --when-matched, --when-not-matched, --when-not-matched-by-source"
        )
    return clauses


def merging(
    builder: MergeBuilder, clauses: tuple[Clause, ...], *, schema_evolution: bool
) -> MergeBuilder:
    """Return a MERGE with its clauses."""
    return replace(builder, clauses=clauses, schema_evolution=schema_evolution)
