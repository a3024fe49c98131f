"""A MERGE, prepared: its target, its source, its clauses column by column.

`*` is spelled out: every column of the target from the source's column of that name. An INSERT has
a value for every column: the given one, else the column's default, else null.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rowlake.catalog.views import keeps_views
from rowlake.dml.assigned_columns import Assigned, assigned_columns, default_text
from rowlake.dml.generated_columns import made_by, unset_bases
from rowlake.dml.join_sides import Side, Sides, refuse_random
from rowlake.dml.operations import Action, When
from rowlake.dml.struct_fields import FieldValues, field_values
from rowlake.errors import InvalidStatementError, SchemaMismatchError
from rowlake.query.lookup import setting
from rowlake.sqltext.lexer import Lexer, quote
from rowlake.sqltext.types import parse_type
from rowlake.verbs.identity_columns import missing_identities

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.conditions.store_assignment import TargetColumn
    from rowlake.dml.merge_source import MergeSource
    from rowlake.dml.operations import Clause, Merge
    from rowlake.dml.target import RowTarget

_SOURCE = "__source"
_COERCES = "spark.sql.mergeNestedTypeCoercion.enabled"


@dataclass(frozen=True)
class MergeClause:
    """One clause: for which rows, under which condition, which columns get which values.

    `made`: generated columns that are computed from what the clause assigns.
    """

    when: When
    action: Action
    condition: str | None
    assigned: tuple[Assigned, ...]
    made: frozenset[str] = frozenset()

    @property
    def columns(self) -> set[str]:
        """The columns that get values."""
        return {each.column.name for each in self.assigned} | self.made


@dataclass(frozen=True)
class Merging:
    """All that a MERGE needs; `visible` qualifies the source's columns.

    `reads_target`: rows of the source, or values, may come from the target itself.
    """

    target: RowTarget
    source: MergeSource
    visible: str
    on: str
    clauses: tuple[MergeClause, ...]
    sides: Sides
    with_clause: str
    arguments: Any
    reads_target: bool = False

    def of(self, when: When) -> list[MergeClause]:
        """Return the clauses for some rows, in their order."""
        return [clause for clause in self.clauses if clause.when is when]

    @property
    def checks_cardinality(self) -> bool:
        """True where a target row could change twice (as Spark judges it)."""
        matched = self.of(When.MATCHED)
        only_deletes = [clause.action is Action.DELETE for clause in matched] == [True]
        return bool(matched) and not (only_deletes and matched[0].condition is None)


def prepared(target: RowTarget, statement: Merge, source: MergeSource, arguments: Any) -> Merging:
    """Return a MERGE with its clauses resolved; raises for columns that are not there."""
    visible = source_name(statement)
    if target.names.same(visible, target.visible):
        raise InvalidStatementError(
            f"Target and source of the MERGE are both called {visible}: give one an alias."
        )
    sides = Sides(
        Side(target.visible, tuple(target.view.schema.arrow.names)),
        Side(visible, source.columns),
        target.names,
    )

    _refuse_random(statement)
    clauses = tuple(
        _clause(
            _rewritten(clause, partial(_scoped, target.short, clause.when, sides)),
            target,
            _Source(sides, source, evolves=statement.schema_evolution),
        )
        for clause in statement.clauses
    )
    return Merging(
        target,
        source,
        visible,
        target.short(statement.on),
        clauses,
        sides,
        statement.with_clause,
        arguments,
        reads_target=_reads_target(statement, target, source),
    )


def _reads_target(statement: Merge, target: RowTarget, source: MergeSource) -> bool:
    """Return whether a query of the statement may name the target; rather once too often.

    A DataFrame is what it was when it was made, whatever it was made of.
    """
    if source.is_of(target.handle):
        return True
    queries = [statement.source] if isinstance(statement.source, str) else []
    texts = [statement.on]
    for clause in statement.clauses:
        texts += [clause.condition or "", *(each.value for each in clause.assignments or ())]
    nested = [text for text in texts if "select" in text.lower()]
    queries += [statement.with_clause, *nested]
    names = {
        token.value.lower() for text in queries for token in Lexer(text).all() if token.is_name
    }
    return target.handle.identifier[-1].lower() in names or _by_view(
        names, target, has_subqueries=bool(nested)
    )


def _by_view(names: set[str], target: RowTarget, *, has_subqueries: bool) -> bool:
    """Return whether a name may be that of a view which reads the target."""
    identifier, lookup = tuple(target.handle.identifier), target.lookup
    views = lookup.workspace.session.views.values()
    if any(view.name[-1].lower() in names and identifier in view.tables for view in views):
        return True
    # The source has been read by now; which views of the catalog subqueries read is not known.
    of_catalog = any(view.shown is None for view in lookup.views)
    return of_catalog or (has_subqueries and keeps_views(lookup.workspace.catalog))


def source_name(statement: Merge) -> str:
    """Return what qualifies the source's columns."""
    if statement.source_alias is not None:
        return statement.source_alias
    if not isinstance(statement.source, str):
        return "s"
    tokens = Lexer(statement.source).all()
    names = [token for token in tokens if token.is_name]
    dotted = all(token.is_name or token.text == "." for token in tokens[:-1])
    return names[-1].value if dotted and names else _SOURCE


def _scoped(short: Callable[[str], str], when: When, sides: Sides, written: str) -> str:
    """Return a text whose names mean what Spark takes them for.

    Rows without a match have one side only, so names in their clauses are that side's.
    """
    text = short(written)
    if when is When.MATCHED:
        return text
    stray = sides.names_target if when is When.NOT_MATCHED else sides.names_source
    if stray(text):
        side = "target" if when is When.NOT_MATCHED else "source"
        raise InvalidStatementError(
            f"A {when.value} clause has no row of the {side}, but {text} names a column of it."
        )
    return sides.about_source(text) if when is When.NOT_MATCHED else sides.about_target(text)


def _refuse_random(statement: Merge) -> None:
    refuse_random(statement.on, "ON of MERGE")
    for clause in statement.clauses:
        refuse_random(clause.condition, "a condition of MERGE")
        for each in clause.assignments or ():
            refuse_random(each.value, "a value of MERGE")


def _rewritten(clause: Clause, rewrite: Callable[[str], str]) -> Clause:
    condition = None if clause.condition is None else rewrite(clause.condition)
    if clause.assignments is None:
        return replace(clause, condition=condition)
    changed = tuple(replace(each, value=rewrite(each.value)) for each in clause.assignments)
    return replace(clause, condition=condition, assignments=changed)


@dataclass(frozen=True)
class _Source:
    """What `*` takes values from; `evolves`: the source need not have all columns and fields."""

    sides: Sides
    rows: MergeSource
    evolves: bool

    def may_lack_fields(self, target: RowTarget) -> bool:
        """Return whether structs of the source may lack fields of the target's."""
        return self.evolves or _coerces(target)

    def fills(self, target: RowTarget, action: Action) -> bool:
        """Return whether fields that a value lacks become null, where they cannot be kept."""
        return (action is Action.INSERT and self.evolves) or _coerces(target)

    def values(self, text: str, name: str, column: TargetColumn, target: RowTarget) -> FieldValues:
        """Return what a column, or fields of it, are set to by UPDATE SET *."""
        if "<" not in column.type or not self.may_lack_fields(target):
            return FieldValues({(): text}, {})
        given, held = parse_type(self.rows.types[name]), parse_type(column.type)
        return field_values(text, given, held, target.names)


def _coerces(target: RowTarget) -> bool:
    """Return whether Spark's own setting lets structs lack fields."""
    return setting(target.engine, _COERCES, "false").lower() == "true"


def _clause(clause: Clause, target: RowTarget, source: _Source) -> MergeClause:
    found: list[Assigned] = []
    if clause.assignments is None:
        found = _star(clause, target, source)
    elif clause.action is not Action.DELETE:
        found = assigned_columns(clause.assignments, target)
    if clause.action is Action.INSERT and any(each.plain is None for each in found):
        raise InvalidStatementError(
            f"INSERT of the MERGE into {target.view.name} names a field of a struct: only whole "
            "columns can be inserted."
        )
    made: frozenset[str] = frozenset()
    if clause.action is Action.INSERT:
        missing_identities(target.view, [each.column.name for each in found])
        found = _complete(found, target)
        missing = {column.name for column in target.columns if column.is_made}
        made = frozenset(missing - {each.column.name for each in found})
    elif clause.action is Action.UPDATE:
        concerned = made_by(found, target)
        found = [*found, *unset_bases(concerned, found, target)]
        made = frozenset(concerned.keys() - {each.column.name for each in found})
    if any("<" in each.column.type for each in found):
        fills = source.fills(target, clause.action)
        found = [replace(each, fills=fills) for each in found]
    return MergeClause(clause.when, clause.action, clause.condition, tuple(found), made)


def _star(clause: Clause, target: RowTarget, source: _Source) -> list[Assigned]:
    found, sides = [], source.sides
    for column in target.columns:
        alike = [name for name in sides.source.columns if target.names.same(name, column.name)]
        if len(alike) > 1:
            raise InvalidStatementError(
                f"The source of the MERGE into {target.view.name} has {len(alike)} columns called "
                f"{column.name}."
            )
        if alike:
            text = f"{quote(sides.source.qualifier or '')}.{quote(alike[0])}"
            inserts = clause.action is Action.INSERT
            given = FieldValues({(): text}, {})
            if not inserts:
                given = source.values(text, alike[0], column, target)
            found.append(Assigned(column, given.values, given.structs))
        elif not source.evolves and not column.is_made:
            raise InvalidStatementError(
                f"{clause.action.value} * of the MERGE into {target.view.name} needs every column, "
                f"and the source has none called {column.name}. Name the columns instead."
            )
    return found


def _complete(found: list[Assigned], target: RowTarget) -> list[Assigned]:
    given = {each.column.name: each for each in found}
    for column in target.columns:
        if column.name in given or column.is_made:
            continue
        if column.required and column.default is None:
            raise SchemaMismatchError(
                f"Cannot insert into {target.view.name}: column {column.name} is required, has no "
                "default and gets no value. Give it one.",
                column=column.name,
            )
        given[column.name] = Assigned(column, {(): default_text(column)})
    return [given[column.name] for column in target.columns if column.name in given]
