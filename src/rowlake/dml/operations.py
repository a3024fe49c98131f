"""What DELETE, UPDATE and MERGE ask for; conditions and values stay text, which Spark reads.

`DEFAULT` as a value is the word itself. Names are tuples of their parts, as written, without the
alias of the target: `SET t.a.b = 1` has the column `("a", "b")`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rowlake.model.merge import Action, When

if TYPE_CHECKING:
    from rowlake.model.predicate import Predicate
    from rowlake.sqltext.names import Name


@dataclass(frozen=True)
class Assignment:
    """One column (or nested field) and the text of its new value.

    `qualifier` is the name or alias of the target that stood before the column. It is no part of
    the name, unless there is no such column but a struct of the qualifier's name.
    """

    column: Name
    value: str
    qualifier: Name = field(default=(), compare=False)


@dataclass(frozen=True)
class Clause:
    """WHEN … [AND condition] THEN …; `assignments` is None for UPDATE SET * and INSERT *."""

    when: When
    action: Action
    condition: str | None = None
    assignments: tuple[Assignment, ...] | None = ()


@dataclass(frozen=True)
class Delete:
    """DELETE FROM t [AS alias] [WHERE condition]; `with_clause` as for `Merge`.

    `where` is the text of the condition, or a predicate that `Table.delete` was given.
    """

    name: Name
    alias: str | None = None
    where: str | Predicate | None = None
    with_clause: str = ""


@dataclass(frozen=True)
class Update:
    """UPDATE t [AS alias] SET … [WHERE condition]; `with_clause` as for `Merge`."""

    name: Name
    assignments: tuple[Assignment, ...]
    alias: str | None = None
    where: str | None = None
    with_clause: str = ""


@dataclass(frozen=True)
class Merge:
    """MERGE [WITH SCHEMA EVOLUTION] INTO t [AS alias] USING source [AS alias] ON condition ….

    `source` is the text of a relation (a name, or a query in brackets), without its alias, or a
    DataFrame where the statement comes from the builder. `source_alias` is None only for a named
    relation without an alias. `with_clause` is the text `WITH …` that stood before MERGE.
    """

    name: Name
    source: Any
    on: str
    clauses: tuple[Clause, ...]
    alias: str | None = None
    source_alias: str | None = None
    schema_evolution: bool = False
    with_clause: str = ""

    def of(self, when: When) -> tuple[Clause, ...]:
        """Return the clauses for some rows, in their order."""
        return tuple(clause for clause in self.clauses if clause.when is when)


@dataclass(frozen=True)
class Explain:
    """EXPLAIN [ANALYZE] of a row-level statement; it is run only with ANALYZE."""

    statement: Delete | Update | Merge
    analyze: bool = False


def qualifiers(name: Name, alias: str | None) -> tuple[Name, ...]:
    """Return what may stand before a column of the target, longest first."""
    return ((alias,),) if alias else tuple(name[index:] for index in range(len(name)))


def assignment(column: Name, value: str, owners: tuple[Name, ...]) -> Assignment:
    """Return an assignment, the name or alias of the table before its column put aside."""
    for owner in owners:
        count = len(owner)
        start = [part.lower() for part in column[:count]]
        if len(column) > count and start == [part.lower() for part in owner]:
            return Assignment(column[count:], value, column[:count])
    return Assignment(column, value)


__all__ = [
    "Action",
    "Assignment",
    "Clause",
    "Delete",
    "Explain",
    "Merge",
    "Update",
    "When",
    "assignment",
    "qualifiers",
]
