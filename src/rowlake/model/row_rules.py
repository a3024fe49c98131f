"""Rules that every row of a table satisfies, whoever writes it: CHECK constraints, invariants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rowlake.model.predicate import Predicate


@dataclass(frozen=True)
class RowRule:
    """A condition that must be TRUE for every row; null is not enough.

    `predicate` says the same as `text`, once somebody has read it, bound to the view's schema.
    """

    name: str
    text: str
    predicate: Predicate | None = None
