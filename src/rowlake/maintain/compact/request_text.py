"""What texts say of a compaction: which files, in which order their rows come out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.errors import InvalidStatementError
from rowlake.maintain.compact.rewrite_tasks import RewriteLayout
from rowlake.maintain.compact.zcurve import check_columns
from rowlake.model.names import quoted
from rowlake.model.partition import SortField
from rowlake.model.schema import field_id
from rowlake.model.view import CLUSTERED
from rowlake.prune.bind import resolve
from rowlake.query.row_condition import whole_condition
from rowlake.sqltext.cursor import Cursor
from rowlake.sqltext.terms import take_sort_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowlake.engine.spark import Engine
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate
    from rowlake.model.view import TableView

Path = tuple[str, ...]
STRATEGIES = ("binpack", "sort", "zorder", "cluster")


def files_where(
    engine: Engine, handle: TableHandle, view: TableView, where: str | Predicate | None
) -> Predicate | None:
    """Return the filter of the files to rewrite: those that may hold a matching row."""
    if where is None:
        return None
    return whole_condition(engine, handle, view.schema, where, "rewrite files of")


def layout_for(view: TableView, strategy: str, order: str | Sequence[str] | None) -> RewriteLayout:
    """Return how rows are to be ordered; `order` is text as in ORDERED BY, or names."""
    if strategy not in STRATEGIES:
        raise InvalidStatementError(
            f"Unknown strategy {strategy!r} (expected one of: {', '.join(STRATEGIES)})."
        )
    if strategy == "cluster":
        return _clustered(view, order)
    text = order if order is None or isinstance(order, str) else _joined(view, order)
    columns = _zorder_columns(text)
    if strategy == "zorder" or columns is not None:
        return _zorder(view, columns if columns is not None else _paths(text))
    if strategy == "binpack":
        if text:
            raise InvalidStatementError("binpack keeps rows as they are: give strategy sort.")
        return RewriteLayout()
    return _sorted(view, text)


def _clustered(view: TableView, order: object) -> RewriteLayout:
    if order or not view.cluster_by:
        raise InvalidStatementError(
            f"Cannot cluster {view.name}: the columns are the table's own, and it must have some "
            "(ALTER TABLE … CLUSTER BY)."
        )
    check_columns(view.schema, view.cluster_by)
    return RewriteLayout(zorder=view.cluster_by, sort_order_id=CLUSTERED)


def _joined(view: TableView, terms: Sequence[str]) -> str:
    """Return terms as one text; what is the name of a column means that column, as it is."""
    names = frozenset(view.schema.arrow.names)
    return ", ".join(quoted((term,)) if term in names else term for term in terms)


def _sorted(view: TableView, text: str | None) -> RewriteLayout:
    if text is None:
        if not view.sort_order.fields:
            raise InvalidStatementError(
                f"Cannot sort {view.name}: it has no sort order. Give one, such as order='a DESC', "
                "or set one with ALTER TABLE … WRITE ORDERED BY."
            )
        return RewriteLayout(view.sort_order.fields, view.sort_order.order_id)
    cursor = Cursor(text)
    terms = take_sort_terms(cursor)
    cursor.expect_end()
    keys = tuple(
        SortField(_field_id(view, term.column), term.transform, term.ascending, term.nulls_first)
        for term in terms
    )
    same = [order.order_id for order in view.sort_orders.values() if order.fields == keys]
    return RewriteLayout(keys, same[0] if same else 0)


def _zorder_columns(text: str | None) -> tuple[Path, ...] | None:
    """Return the columns of `zorder(a, b)`, None for anything else."""
    stripped = (text or "").strip()
    if not stripped.lower().startswith("zorder") or not stripped.endswith(")"):
        return None
    return _paths(stripped[len("zorder") :].strip()[1:-1])


def _paths(text: str | None) -> tuple[Path, ...]:
    """Return the columns of a list of them; their names are dotted, and quoted where odd."""
    if not text or not text.strip():
        return ()
    cursor = Cursor(text)
    paths = cursor.name_list()
    cursor.expect_end()
    return paths


def _zorder(view: TableView, paths: tuple[Path, ...]) -> RewriteLayout:
    if not paths:
        raise InvalidStatementError(
            f"Cannot Z-order {view.name}: give the columns, such as order='zorder(a, b)'."
        )
    columns = tuple(_field_id(view, path) for path in paths)
    check_columns(view.schema, columns)
    return RewriteLayout(zorder=columns)


def _field_id(view: TableView, path: tuple[str, ...]) -> int:
    return int(field_id(resolve(path, view.schema)) or 0)
