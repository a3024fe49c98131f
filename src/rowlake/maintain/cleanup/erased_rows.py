"""Read which rows an erasure removes: keys, or a condition, as an exact predicate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rowlake.errors import InvalidStatementError
from rowlake.model.predicate import Leaf, Op, conjunction, disjunction
from rowlake.prune.bind import bind
from rowlake.query.row_condition import whole_condition

if TYPE_CHECKING:
    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate
    from rowlake.model.view import TableView


def rows_to_erase(
    engine: Engine, handle: TableHandle, keys: Any = None, where: str | Predicate | None = None
) -> Predicate:
    """Return which rows are meant; either keys or a condition is given."""
    if (keys is None) == (where is None):
        raise InvalidStatementError("erase needs either keys or where.")
    view = handle.view()
    if where is not None:
        return whole_condition(engine, handle, view.schema, where, "erase rows of")
    rows = [keys] if isinstance(keys, Mapping) else _listed(keys)
    if not rows:
        raise InvalidStatementError("erase is given no keys.")
    named = [row if isinstance(row, Mapping) else {_identifier(view): row} for row in rows]
    return bind(disjunction(*(_row(row) for row in named)), view.schema)


def _listed(keys: Any) -> list[Any]:
    is_list = isinstance(keys, Sequence) and not isinstance(keys, (str, bytes))
    return list(keys) if is_list or isinstance(keys, (set, frozenset)) else [keys]


def _row(row: Mapping[str, Any]) -> Predicate:
    parts = [
        Leaf((str(name),), Op.IS_NULL) if value is None else Leaf((str(name),), Op.EQ, (value,))
        for name, value in row.items()
    ]
    return conjunction(*parts)


def _identifier(view: TableView) -> str:
    """Return the name of the one identifier field."""
    ids = sorted(view.schema.identifier_field_ids)
    if len(ids) != 1:
        raise InvalidStatementError(
            f"Table {view.name} has {len(ids)} identifier fields: give keys as dicts of columns, "
            "such as [{'id': 7}]."
        )
    return ".".join(view.schema.paths[ids[0]])
