"""MERGE by keys: Spark evaluates the source, tasks match it to the target by key.

Done where ON is made of equalities between columns of the target and expressions of the source (and
conditions on one side), and where every value is about one side and every condition, too, or
compares a column of the target with the source. Then Spark sees only the source: each source row is
staged with its keys, with what its conditions say, with what is compared and with the values that
it assigns, in the target's types. The target is never joined by Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.conditions.pushed import pushed_condition
from rowlake.conditions.token_groups import conjuncts, unwrapped
from rowlake.dml.assigned_columns import stored_text
from rowlake.dml.merge_comparisons import Compared, compared, is_comparable
from rowlake.dml.operations import When
from rowlake.dml.values import constants_of, is_sparks, spark_types
from rowlake.model.predicate import TRUE, conjunction
from rowlake.prune.bind import bind
from rowlake.query.run import fresh_name, run_query
from rowlake.rowlevel.column_comparison import NULL_SAFE, Comparison
from rowlake.rowlevel.operation import RowChange
from rowlake.rowlevel.staged import Dealing
from rowlake.rowlevel.staging import Shape
from rowlake.rowlevel.task import Matching, TaskClause
from rowlake.sqltext.lexer import Lexer, Token, TokenKind, quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.dml.assigned_columns import Assigned
    from rowlake.dml.merge_clauses import MergeClause, Merging
    from rowlake.model.predicate import Predicate

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_FLOATS = ("float", "double")
_COMPARED = ("string", "date", "timestamp", "timestamp_ntz", "boolean", "binary")


@dataclass(frozen=True)
class ClauseCondition:
    """A condition, taken apart: texts about the source, a predicate on the target, comparisons."""

    source: tuple[str, ...] = ()
    target: Predicate = TRUE
    compared: tuple[Compared, ...] = ()


@dataclass(frozen=True)
class KeyJoin:
    """ON, taken apart: (column of the target, text of the source, null-safe), and the rest."""

    keys: tuple[tuple[str, str, bool], ...]
    rest: ClauseCondition


@dataclass
class StagedColumns:
    """The columns to stage: what Spark evaluates of the source, and what the fields are."""

    merging: Merging
    texts: list[str] = field(default_factory=list)
    fields: list[pa.Field] = field(default_factory=list)
    plain: list[str | None] = field(default_factory=list)

    def add(self, text: str, made: pa.Field, written: str | None = None) -> str:
        """Stage an expression; return the name of its column, the same for the same value.

        `written` is what it was before it was fitted to the column.
        """
        for known, old in zip(self.texts, self.fields, strict=True):
            if known == text and old.type == made.type:
                return str(old.name)
        self.texts.append(text)
        self.fields.append(made.with_name(f"c{len(self.fields)}"))
        self.plain.append(self._plain(written or text, made))
        return f"c{len(self.fields) - 1}"

    def _plain(self, text: str, made: pa.Field) -> str | None:
        """Return the source's column that is staged as it is; None for anything else."""
        arrow = self.merging.source.arrow
        name = None if arrow is None else self.merging.sides.source_column(text)
        if arrow is None or name is None:
            return None
        kind = arrow.field(name).type
        both = pa.types.is_signed_integer(kind) and pa.types.is_signed_integer(made.type)
        wider = both and kind.bit_width <= made.type.bit_width
        return name if kind.equals(made.type) or wider else None

    def flag(self, texts: Sequence[str]) -> str | None:
        """Stage a condition; None where there is none."""
        if not texts:
            return None
        return self.add(" AND ".join(f"({text})" for text in texts), pa.field("", pa.bool_()))

    @property
    def rows(self) -> Any:
        """The source's rows as they are staged: read directly, or a DataFrame."""
        if all(name is not None for name in self.plain):
            names = [str(found.name) for found in self.fields]
            pairs = [(held, name or "") for held, name in zip(names, self.plain, strict=True)]
            return self.merging.source.direct(pairs)
        listed = [
            f"{text} AS {quote(found.name)}"
            for text, found in zip(self.texts, self.fields, strict=True)
        ]
        return run_source(self.merging, listed)


def run_source(merging: Merging, listed: Sequence[str]) -> Any:
    """Return the DataFrame of a SELECT list over the source."""
    name = fresh_name()
    text = f"{merging.with_clause}SELECT {', '.join(listed)} FROM {quote(name)}"
    return run_query(
        merging.target.lookup,
        f"{text} AS {quote(merging.visible)}",
        merging.arguments,
        {name: merging.source.frame},
    )


@dataclass(frozen=True)
class PreparedMerge:
    """A MERGE, ready to run: which rows are staged, how, and what is then done."""

    rows: Any
    shape: Shape
    change: RowChange


def by_key(merging: Merging) -> PreparedMerge | None:
    """Return how to do a MERGE by keys; None where it cannot be done this way."""
    if _makes_columns(merging):
        return None
    join = _key_join(merging)
    conditions = [_condition_of(merging, clause) for clause in merging.clauses]
    if join is None or any(condition is None for condition in conditions):
        return None
    comparisons = [one for found in conditions if found is not None for one in found.compared]
    if not all(_is_one_sided(merging, clause) for clause in merging.clauses):
        return None
    constants = [_constants(merging, clause) for clause in merging.clauses]
    if any(found is None for found in constants):
        return None
    staged = [
        text
        for clause in merging.clauses
        if clause.when is not When.NOT_MATCHED_BY_SOURCE
        for each in _changed(merging, clause)
        for text in each.texts
    ]
    keys = [text for _, text, _ in join.keys]
    types = _types(merging, [*keys, *staged, *(one.text for one in comparisons)])
    if not all(_compares(merging, one, types) for one in comparisons):
        return None
    columns = StagedColumns(merging)
    matching = _matching(merging, join, types, columns)
    if matching is None:
        return None
    clauses = tuple(
        _task_clause(merging, clause, condition or ClauseCondition(), types, columns, fixed or {})
        for clause, condition, fixed in zip(merging.clauses, conditions, constants, strict=True)
    )
    schema = merging.target.view.schema
    change = RowChange(
        "merge",
        clauses,
        matching,
        bind(join.rest.target, schema),
        checks_cardinality=merging.checks_cardinality,
        makes_columns=True,
    )
    names = tuple(staged for _, staged in matching.keys)
    shape = Shape(tuple(columns.fields), names, _dealing(merging, matching))
    return PreparedMerge(columns.rows, shape, change)


def _makes_columns(merging: Merging) -> bool:
    """Return whether a clause makes or sets a generated column: Spark computes all of these."""
    made = {column.name for column in merging.target.columns if column.is_made}
    return any(clause.columns & made for clause in merging.clauses)


def _types(merging: Merging, texts: list[str]) -> dict[str, str]:
    """Return Spark's types of some expressions of the source; columns need no Spark."""
    known = {text: merging.sides.source_column(text) for text in texts}
    types = {text: merging.source.types[name] for text, name in known.items() if name is not None}
    rest = [text for text in texts if text not in types]
    return types | spark_types(rest, lambda listed: run_source(merging, listed))


# --- ON and conditions


def _tokens(text: str) -> list[Token]:
    return [token for token in Lexer(text).all() if token.kind is not TokenKind.END]


def _text(whole: str, tokens: Sequence[Token]) -> str:
    return whole[tokens[0].start : tokens[-1].end]


def _key_join(merging: Merging) -> KeyJoin | None:
    tokens = unwrapped(_tokens(merging.on))
    keys: list[tuple[str, str, bool]] = []
    rest: list[str] = []
    for part in conjuncts(tokens):
        key = _key(merging, unwrapped(part))
        if key is not None:
            keys.append(key)
        elif not part:
            return None
        else:
            rest.append(_text(merging.on, part))
    condition = _condition(merging, " AND ".join(f"({text})" for text in rest) or None)
    if not keys or condition is None or len({name for name, _, _ in keys}) < len(keys):
        return None
    return KeyJoin(tuple(keys), condition)


def _key(merging: Merging, tokens: Sequence[Token]) -> tuple[str, str, bool] | None:
    found = compared(merging.on, tokens, merging.sides)
    if found is None or found.operator not in ("=", NULL_SAFE):
        return None
    return found.column, found.text, found.operator == NULL_SAFE


def _condition_of(merging: Merging, clause: MergeClause) -> ClauseCondition | None:
    """Return the condition of a clause taken apart; None where tasks cannot test it."""
    return _condition(merging, clause.condition, compares=clause.when is When.MATCHED)


def _condition(
    merging: Merging, text: str | None, *, compares: bool = False
) -> ClauseCondition | None:
    """Return a condition taken apart; None where a part of it is about both sides.

    Comparisons of the sides are none such where the condition is about matched rows (`compares`).
    """
    if text is None:
        return ClauseCondition()
    source: list[str] = []
    target: list[Predicate] = []
    both: list[Compared] = []
    for part in conjuncts(unwrapped(_tokens(text))):
        one = _text(text, part)
        if not merging.sides.mentions_target(one):
            source.append(one)
        elif not merging.sides.mentions_source(one):
            found = _exact(merging, one)
            if found is None:
                return None
            target.append(found)
        else:
            comparison = compared(text, unwrapped(part), merging.sides) if compares else None
            if comparison is None:
                return None
            both.append(comparison)
    return ClauseCondition(tuple(source), conjunction(*target), tuple(both))


def _exact(merging: Merging, text: str) -> Predicate | None:
    target = merging.target
    pushed = pushed_condition(
        text,
        target.view.schema,
        zone=target.names.zone,
        case_sensitive=target.names.case_sensitive,
        qualifier=target.visible,
    )
    return pushed.predicate if pushed.exact else None


# --- clauses


def _is_one_sided(merging: Merging, clause: MergeClause) -> bool:
    sides = merging.sides
    by_source = clause.when is When.NOT_MATCHED_BY_SOURCE
    for each in clause.assigned:
        if each.plain is not None and sides.target_column(each.plain) == each.column.name:
            continue
        if each.plain is None or sides.mentions_target(each.plain):
            return False
        if by_source and not sides.is_constant(each.plain):
            return False
    condition = _condition_of(merging, clause)
    return condition is not None and not (by_source and condition.source)


def _task_clause(
    merging: Merging,
    clause: MergeClause,
    condition: ClauseCondition,
    types: dict[str, str],
    columns: StagedColumns,
    fixed: dict[str, pa.Array],
) -> TaskClause:
    target = merging.target
    predicate = None if condition.target == TRUE else bind(condition.target, target.view.schema)
    if clause.when is When.NOT_MATCHED_BY_SOURCE:
        return TaskClause(clause.when, clause.action, None, predicate, dict(fixed))
    values = {
        each.column.name: columns.add(
            stored_text(each, types, target),
            target.view.schema.arrow.field(each.column.name),
            each.plain,
        )
        for each in _changed(merging, clause)
    }
    flag = columns.flag(condition.source)
    comparisons = tuple(_comparison(merging, one, types, columns) for one in condition.compared)
    return TaskClause(clause.when, clause.action, flag, predicate, values, comparisons)


def _compares(merging: Merging, one: Compared, types: dict[str, str]) -> bool:
    """Return whether tasks compare a column and a text of the source as Spark would."""
    return _comparison_type(merging, one, types) is not None


def _comparison(
    merging: Merging, one: Compared, types: dict[str, str], columns: StagedColumns
) -> Comparison:
    kind = _comparison_type(merging, one, types)
    assert kind is not None
    return Comparison(one.column, one.operator, columns.add(one.text, pa.field("", kind)))


def _comparison_type(merging: Merging, one: Compared, types: dict[str, str]) -> pa.DataType | None:
    target = next(column for column in merging.target.columns if column.name == one.column)
    if not is_comparable(one.operator, target.type, types[one.text]):
        return None
    arrow = merging.target.view.schema.arrow.field(one.column).type
    return _key_type(target.type, types[one.text], arrow)


def _changed(merging: Merging, clause: MergeClause) -> list[Assigned]:
    """Return what a clause sets to anything but what it is already."""
    return [
        each
        for each in clause.assigned
        if each.plain is None or merging.sides.target_column(each.plain) != each.column.name
    ]


def _constants(merging: Merging, clause: MergeClause) -> dict[str, pa.Array] | None:
    """Return the values of rows that have no source row; None where they are not constant."""
    if clause.when is not When.NOT_MATCHED_BY_SOURCE:
        return {}
    try:
        return constants_of(merging.target, _changed(merging, clause), merging.sides)
    except Exception as error:
        if is_sparks(error):
            return None
        raise


# --- keys


def _matching(
    merging: Merging, join: KeyJoin, types: dict[str, str], columns: StagedColumns
) -> Matching | None:
    spark = {column.name: column.type for column in merging.target.columns}
    keys = []
    for name, text, _ in join.keys:
        arrow = merging.target.view.schema.arrow.field(name)
        kind = _key_type(spark[name], types[text], arrow.type)
        if kind is None:
            return None
        keys.append((name, columns.add(text, pa.field("", kind))))
    return Matching(
        tuple(keys),
        tuple(safe for _, _, safe in join.keys),
        eligible=columns.flag(join.rest.source),
    )


def _key_type(target: str, source: str, arrow: pa.DataType) -> pa.DataType | None:
    """Return the type in which keys are compared as Spark would; None where that is not sure."""
    if target in _INTEGERS and source in _INTEGERS:
        return pa.int64()
    if target in _FLOATS and source in _FLOATS:
        return pa.float64()
    if target != source or pa.types.is_fixed_size_binary(arrow):
        return None
    if pa.types.is_timestamp(arrow) and arrow.unit != "us":
        return None
    return arrow if target in _COMPARED or target.startswith("decimal(") else None


def _dealing(merging: Merging, matching: Matching) -> Dealing:
    """Return how source rows are distributed: by the target's partitions, where keys say them.

    Not by floating-point numbers: zeros of both signs are one key in two partitions.
    """
    view = merging.target.view
    types = view.schema.arrow
    staged = {
        name: held
        for (name, held), safe in zip(matching.keys, matching.null_safe, strict=True)
        if not safe and not pa.types.is_floating(types.field(name).type)
    }
    fields = [found for found in view.spec.fields if found.transform != "void"]
    paths = [view.schema.paths.get(found.source_id, ("",)) for found in fields]
    if not fields or not all(len(path) == 1 and path[0] in staged for path in paths):
        return Dealing()
    pairs = tuple(dict.fromkeys((path[0], staged[path[0]]) for path in paths))
    return Dealing(view.spec, view.schema, pairs)
