"""Random row-level operations on a table with some columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.model.merge import Action, When
from rowlake.model.predicate import TRUE
from tests.histories.operations import Append, Clause, Delete, Merge, Options, Update, Upsert
from tests.histories.values import (
    INEXACT,
    KEYS,
    NESTED,
    Column,
    Row,
    draw_condition,
    draw_row,
    key_ops,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from rowlake.model.predicate import Predicate

MODES = (None, "auto", "copy-on-write", "merge-on-read", "merge-on-read")
KINDS = ("append", "delete", "update", "upsert", "blind upsert", "blind delete", "merge", "merge")


def draw_operation(random: Random, kind: str, columns: list[Column], options: Options) -> Any:
    return _DRAWS[kind](random, columns, options)


def _blind(options: Options) -> Options:
    return Options(options.branch, deletes="equality")


def _some(random: Random, columns: Sequence[Column], least: int = 1) -> list[Column]:
    return random.sample(list(columns), random.randint(least, len(columns)))


def plain(columns: Sequence[Column]) -> list[Column]:
    return [column for column in columns if column.kind not in NESTED]


def _keys(random: Random, columns: Sequence[Column]) -> list[Column]:
    """Return one or two columns that can be keys; the first ones more often: they repeat."""
    able = [column for column in columns if column.kind in KEYS]
    first = able[0] if random.random() < 0.6 else random.choice(able)
    more = [column for column in able if column != first]
    return [first, random.choice(more)] if more and random.random() < 0.35 else [first]


def _append(random: Random, columns: list[Column], options: Options) -> Append:
    most = 40 if random.random() < 0.1 else 8
    rows = [draw_row(random, columns) for _ in range(random.randint(1, most))]
    return Append(rows, columns, options)


def _delete(random: Random, columns: list[Column], options: Options) -> Delete:
    as_text = random.random() < 0.4
    able = [c for c in plain(columns) if not as_text or c.kind not in INEXACT]
    condition = TRUE if random.random() < 0.03 else draw_condition(random, able)
    return Delete(condition, columns, options, as_text=as_text and condition != TRUE)


def _blind_delete(random: Random, columns: list[Column], options: Options) -> Delete:
    able = [column for column in columns if column.kind in KEYS]
    condition = draw_condition(random, able, ops=key_ops)
    return Delete(condition, columns, _blind(options), blind=True)


def _update(random: Random, columns: list[Column], options: Options) -> Update:
    condition = None if random.random() < 0.1 else draw_condition(random, plain(columns))
    values = {column.key: column.draw(random) for column in _some(random, columns)}
    return Update(condition, values, columns, options)


def _upsert(random: Random, columns: list[Column], options: Options) -> Upsert:
    keys = _keys(random, columns)
    rest = [column for column in columns if column not in keys]
    given = [*keys, *_some(random, rest, 0)] if rest and random.random() < 0.4 else columns
    able = [column for column in plain(given) if column not in keys]
    latest = random.choice(able) if able and random.random() < 0.4 else None
    rows = _source_rows(random, given, keys, unique=latest is None and random.random() < 0.85)
    rejects = random.random() < 0.15
    return Upsert(rows, keys, list(given), columns, options, latest, rejects)


def _blind_upsert(random: Random, columns: list[Column], options: Options) -> Upsert:
    keys = _keys(random, columns)
    able = [column for column in plain(columns) if column not in keys]
    latest = random.choice(able) if able and random.random() < 0.4 else None
    rows = _source_rows(random, columns, keys, unique=latest is None and random.random() < 0.85)
    return Upsert(rows, keys, columns, columns, _blind(options), latest, blind=True)


def _source_rows(
    random: Random, given: Sequence[Column], keys: Sequence[Column], *, unique: bool
) -> list[Row]:
    """Return rows without nulls in keys, in random order; with one row per key, or not."""
    rows = []
    for _ in range(random.randint(1, 6)):
        row = draw_row(random, given)
        rows.append({**row, **{column.key: column.draw(random, 0) for column in keys}})
    if not unique:
        return rows
    return list({tuple(row[column.key] for column in keys): row for row in rows}.values())


# --- merge


def _merge(random: Random, columns: list[Column], options: Options) -> Merge:
    targets = _merge_keys(random, columns)
    values = [Column(column.key, f"v{column.key}", column.kind) for column in columns]
    keys = [Column(-n, f"k{n}", _key_kind(random, c)) for n, c in enumerate(targets, start=1)]
    rows = [_merge_row(random, targets, keys, values) for _ in range(random.randint(0, 6))]
    source = [*keys, *values]
    able = plain(source)
    pairs = [(t, k, random.random() < 0.3) for t, k in zip(targets, keys, strict=True)]
    return Merge(
        source,
        rows,
        pairs,
        _clauses(random, columns, source),
        columns,
        options,
        on_source=draw_condition(random, able, depth=1) if random.random() < 0.2 else None,
        on_target=draw_condition(random, plain(columns), depth=1)
        if random.random() < 0.25
        else None,
    )


def _merge_keys(random: Random, columns: Sequence[Column]) -> list[Column]:
    if random.random() < 0.15:
        return [random.choice(plain(columns))]
    return _keys(random, columns)


def _key_kind(random: Random, column: Column) -> str:
    """Return the kind of a source's key: numbers may be wider than the target's."""
    wider = {"int": "long", "float": "double"}.get(column.kind)
    return wider if wider and random.random() < 0.5 else column.kind


def _merge_row(
    random: Random, targets: list[Column], keys: list[Column], values: list[Column]
) -> Row:
    row = draw_row(random, [*keys, *values])
    for target, key in zip(targets, keys, strict=True):
        if key.kind == target.kind and random.random() < 0.8:
            row[target.key] = row[key.key]
    return row


def _clauses(random: Random, columns: list[Column], source: list[Column]) -> list[Clause]:
    found: list[Clause] = []
    for when in When:
        count = random.choice((0, 1, 1, 2))
        for number in range(count):
            last = number == count - 1
            found.append(_clause(random, when, columns, source, always=last))
    return found or [_clause(random, When.MATCHED, columns, source, always=True)]


def _clause(
    random: Random, when: When, columns: list[Column], source: list[Column], *, always: bool
) -> Clause:
    """Return a clause; only the last of its kind may be without a condition."""
    action = Action.INSERT if when is When.NOT_MATCHED else _change(random)
    on_source = on_target = None
    wants = not always or random.random() < 0.5
    both = random.random() < 0.3
    if wants and when is not When.NOT_MATCHED and (both or random.random() < 0.5):
        on_target = _condition(random, columns)
    if wants and when is not When.NOT_MATCHED_BY_SOURCE and (both or on_target is None):
        on_source = _condition(random, source)
    if wants and on_source is None and on_target is None:
        on_target = _condition(random, columns)
    values = {} if action is Action.DELETE else _values(random, when, columns, source)
    return Clause(when, action, on_source, on_target, values)


def _change(random: Random) -> Action:
    return random.choice((Action.UPDATE, Action.UPDATE, Action.DELETE))


def _condition(random: Random, columns: Sequence[Column]) -> Predicate:
    return draw_condition(random, plain(columns), depth=1)


def _values(
    random: Random, when: When, columns: list[Column], source: list[Column]
) -> dict[int, Column | tuple[Any]]:
    held = {column.key: column for column in source}
    chosen = columns if random.random() < 0.5 else _some(random, columns)
    return {
        column.key: (column.draw(random),)
        if when is When.NOT_MATCHED_BY_SOURCE or random.random() < 0.1
        else held[column.key]
        for column in chosen
    }


_DRAWS: dict[str, Any] = {
    "append": _append,
    "delete": _delete,
    "blind delete": _blind_delete,
    "update": _update,
    "upsert": _upsert,
    "blind upsert": _blind_upsert,
    "merge": _merge,
}
