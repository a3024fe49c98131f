"""Row-level operations as plain data, and what each does to a list of rows.

`expected` is the oracle: rows in, rows and counts out, one row at a time. Cardinality errors are an
outcome too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rowlake.model.merge import Action, When
from tests.histories.values import Column, Row, holds, is_same, ordered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.model.predicate import Predicate


@dataclass(frozen=True)
class Expected:
    """What an operation leaves: rows and counts; None for rows where it must be refused."""

    rows: list[Row] | None
    updated: int = 0
    deleted: int = 0
    inserted: int = 0
    unchanged: int = 0


REFUSED = Expected(None)


@dataclass(frozen=True)
class Options:
    branch: str = "main"
    mode: str | None = None
    deletes: str | None = None


@dataclass(frozen=True)
class Append:
    rows: list[Row]
    columns: list[Column]
    options: Options


@dataclass(frozen=True)
class Overwrite:
    """In place of the rows that a condition selects, of all, or of the partitions `by` columns."""

    rows: list[Row]
    columns: list[Column]
    options: Options
    condition: Predicate | None = None
    by: tuple[Column, ...] = ()


@dataclass(frozen=True)
class Delete:
    """`blind`: by equality deletes, which count nothing; `as_text`: the condition is a text."""

    condition: Predicate
    columns: list[Column]
    options: Options
    blind: bool = False
    as_text: bool = False


@dataclass(frozen=True)
class Update:
    condition: Predicate | None
    values: dict[int, Any]
    columns: list[Column]
    options: Options


@dataclass(frozen=True)
class Upsert:
    """`given` are the columns that the source has, `latest` the one that tells the latest row."""

    rows: list[Row]
    keys: list[Column]
    given: list[Column]
    columns: list[Column]
    options: Options
    latest: Column | None = None
    rejects: bool = False
    blind: bool = False


@dataclass(frozen=True)
class Clause:
    """`values`: column of the target -> a column of the source, or a value in a tuple of one."""

    when: When
    action: Action
    on_source: Predicate | None = None
    on_target: Predicate | None = None
    values: dict[int, Column | tuple[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Merge:
    """`keys`: (column of the target, column of the source, null-safe)."""

    source: list[Column]
    rows: list[Row]
    keys: list[tuple[Column, Column, bool]]
    clauses: list[Clause]
    columns: list[Column]
    options: Options
    on_source: Predicate | None = None
    on_target: Predicate | None = None

    @property
    def checks_cardinality(self) -> bool:
        matched = [clause for clause in self.clauses if clause.when is When.MATCHED]
        if len(matched) == 1 and matched[0].action is Action.DELETE:
            return matched[0].on_source is not None or matched[0].on_target is not None
        return bool(matched)


Operation = Append | Overwrite | Delete | Update | Upsert | Merge


def named(row: Row, columns: Sequence[Column]) -> dict[str, Any]:
    return {column.name: column.of(row) for column in columns}


def expected(operation: Operation, rows: list[Row]) -> Expected:
    """Return what an operation makes of some rows; these stay as they are."""
    return _ORACLES[type(operation)](operation, rows)


def _append(operation: Append, rows: list[Row]) -> Expected:
    return Expected(rows + operation.rows, inserted=len(operation.rows))


def _overwrite(operation: Overwrite, rows: list[Row]) -> Expected:
    if operation.by:
        new = {_values_of(row, operation.by) for row in operation.rows}
        kept = [row for row in rows if _values_of(row, operation.by) not in new]
    else:
        names = operation.columns
        kept = [row for row in rows if not holds(operation.condition, named(row, names))]
    added = len(operation.rows)
    return Expected(kept + operation.rows, deleted=len(rows) - len(kept), inserted=added)


def _values_of(row: Row, columns: Sequence[Column]) -> tuple[Any, ...]:
    return tuple(column.of(row) for column in columns)


def _delete(operation: Delete, rows: list[Row]) -> Expected:
    kept = [row for row in rows if not holds(operation.condition, named(row, operation.columns))]
    return Expected(kept, deleted=0 if operation.blind else len(rows) - len(kept))


def _update(operation: Update, rows: list[Row]) -> Expected:
    hit = [holds(operation.condition, named(row, operation.columns)) for row in rows]
    new = [
        {**row, **operation.values} if found else row for row, found in zip(rows, hit, strict=True)
    ]
    return Expected(new, updated=sum(hit))


# --- upsert


def _upsert(operation: Upsert, rows: list[Row]) -> Expected:
    source = _one_per_key(operation)
    if source is None:
        return REFUSED
    held = {_key(row, operation.keys) for row in rows}
    fresh = [row for key, row in source.items() if key not in held]
    inserted = [{c.key: c.of(row) for c in operation.columns} for row in fresh]
    if operation.blind:
        kept = [row for row in rows if _key(row, operation.keys) not in source]
        written = [dict(row) for row in source.values()]
        return Expected(kept + written, inserted=len(written))
    if operation.rejects and len(fresh) < len(source):
        return REFUSED
    left, updated, unchanged = _overwritten(operation, rows, source)
    return Expected(left + inserted, updated, 0, len(inserted), unchanged)


def _overwritten(
    operation: Upsert, rows: list[Row], source: dict[Any, Row]
) -> tuple[list[Row], int, int]:
    changed = [column for column in operation.given if column not in operation.keys]
    left, updated, unchanged = [], 0, 0
    for row in rows:
        new = source.get(_key(row, operation.keys))
        if new is None or not changed:
            left.append(row)
        elif all(is_same(column.of(row), column.of(new)) for column in changed):
            left.append(row)
            unchanged += 1
        else:
            left.append({**row, **{column.key: column.of(new) for column in changed}})
            updated += 1
    return left, updated, unchanged


def _key(row: Row, keys: Sequence[Column]) -> tuple[Any, ...] | None:
    values = _values_of(row, keys)
    return None if None in values else values


def _one_per_key(operation: Upsert) -> dict[Any, Row] | None:
    """Return the source's rows by key; None where it is not clear which row is meant."""
    groups: dict[Any, list[Row]] = {}
    for row in operation.rows:
        groups.setdefault(_key(row, operation.keys), []).append(row)
    found = {}
    for key, rows in groups.items():
        if len(rows) > 1 and operation.latest is None:
            return None
        ranked = sorted(rows, key=lambda row: _rank(row, operation.latest))
        if len(rows) > 1 and _rank(ranked[-1], operation.latest) == _rank(
            ranked[-2], operation.latest
        ):
            return None
        found[key] = ranked[-1]
    return found


def _rank(row: Row, latest: Column | None) -> Any:
    value = None if latest is None else latest.of(row)
    return (False, False) if value is None else (True, ordered(value))


# --- merge


def _merge(operation: Merge, rows: list[Row]) -> Expected:
    matched_source: set[int] = set()
    left, updated, deleted = [], 0, 0
    for row in rows:
        matches = [n for n, found in enumerate(operation.rows) if _matches(operation, row, found)]
        if operation.checks_cardinality and len(matches) > 1:
            return REFUSED
        matched_source.update(matches)
        new = _changed(operation, row, matches)
        updated += new is not row and new is not None
        deleted += new is None
        left += [] if new is None else [new]
    inserted = [
        new
        for number, row in enumerate(operation.rows)
        if number not in matched_source and (new := _inserted(operation, row)) is not None
    ]
    return Expected(left + inserted, updated, deleted, len(inserted))


def _matches(operation: Merge, row: Row, found: Row) -> bool:
    if not holds(operation.on_target, named(row, operation.columns)):
        return False
    if not holds(operation.on_source, named(found, operation.source)):
        return False
    for target, source, null_safe in operation.keys:
        one, other = target.of(row), source.of(found)
        if one is None and other is None and null_safe:
            continue
        if one is None or other is None or not is_same(one, other):
            return False
    return True


def _changed(operation: Merge, row: Row, matches: list[int]) -> Row | None:
    """Return a target row as it is afterwards; itself where no clause is for it."""
    when = When.MATCHED if matches else When.NOT_MATCHED_BY_SOURCE
    source = operation.rows[matches[0]] if matches else {}
    for clause in operation.clauses:
        if clause.when is not when or not holds(clause.on_target, named(row, operation.columns)):
            continue
        if clause.on_source is not None and not holds(
            clause.on_source, named(source, operation.source)
        ):
            continue
        if clause.action is Action.DELETE:
            return None
        return {**row, **_values(clause, source)}
    return row


def _inserted(operation: Merge, source: Row) -> Row | None:
    for clause in operation.clauses:
        if clause.when is When.NOT_MATCHED and holds(
            clause.on_source, named(source, operation.source)
        ):
            defaults = {column.key: column.default for column in operation.columns}
            return {**defaults, **_values(clause, source)}
    return None


def _values(clause: Clause, source: Row) -> Row:
    return {
        key: value[0] if isinstance(value, tuple) else value.of(source)
        for key, value in clause.values.items()
    }


_ORACLES: dict[type, Any] = {
    Append: _append,
    Overwrite: _overwrite,
    Delete: _delete,
    Update: _update,
    Upsert: _upsert,
    Merge: _merge,
}
