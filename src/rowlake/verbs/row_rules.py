"""The rules of a table's rows, read before anything is written.

A rule that cannot be read exactly as Spark evaluates it refuses the write: rows that nobody has
checked must not get into the table.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rowlake.conditions.pushed import pushed_condition
from rowlake.errors import UnsupportedFeatureError
from rowlake.prune.bind import bind

if TYPE_CHECKING:
    from rowlake.model.row_rules import RowRule
    from rowlake.model.view import TableView


def with_rules(view: TableView) -> TableView:
    """Return a view whose rules tasks can check."""
    if not view.rules:
        return view
    return replace(view, rules=tuple(_read(rule, view) for rule in view.rules))


def _read(rule: RowRule, view: TableView) -> RowRule:
    found = pushed_condition(rule.text, view.schema)
    if not found.exact:
        raise UnsupportedFeatureError(
            f"Cannot write to {view.name}: rowlake cannot check its {rule.name} ({rule.text}). "
            "Nothing was written."
        )
    return replace(rule, predicate=bind(found.predicate, view.schema))
