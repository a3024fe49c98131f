"""What the clauses of a MERGE have to keep to, in statements and in the builder alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.dml.operations import Action, When

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.dml.operations import Clause


@dataclass(frozen=True)
class BrokenRule:
    """What is wrong, and with which clause (by its place; 0 where there is none)."""

    text: str
    index: int = 0


def first_broken_rule(clauses: Sequence[Clause]) -> BrokenRule | None:
    """Return the first rule that a list of clauses breaks."""
    if not clauses:
        return BrokenRule("MERGE needs at least one WHEN clause")
    last = {clause.when: index for index, clause in enumerate(clauses)}
    for index, clause in enumerate(clauses):
        if clause.condition is None and index < last[clause.when]:
            return BrokenRule(
                f"Only the last {clause.when.value} clause can be without a condition: "
                "those after this one would never be reached",
                index,
            )
    return None


def first_misplaced(clauses: Sequence[Clause]) -> BrokenRule | None:
    """Return the first clause of a statement that stands after one of a later kind."""
    order = list(When)
    for index in range(1, len(clauses)):
        before, clause = clauses[index - 1], clauses[index]
        if order.index(clause.when) < order.index(before.when):
            return BrokenRule(
                f"{clause.when.value} clauses come before {before.when.value} clauses", index
            )
    return None


def refused_action(when: When, action: Action) -> str | None:
    """Return why rows of a kind cannot have an action; None where they can."""
    if when is When.NOT_MATCHED and action is not Action.INSERT:
        return f"A NOT MATCHED clause has no target row to {action.value}: it can only INSERT"
    if when is not When.NOT_MATCHED and action is Action.INSERT:
        return f"A {when.value} clause cannot INSERT: it can UPDATE or DELETE"
    return None
