"""CREATE, ALTER, DROP and SHOW of views.

A temporary view over lake tables is kept as text beside the Spark session, which has a view of the
same name too: Spark says whether a name is taken, lists it and describes it. Read without rowlake
(`spark.table`), that one shows the rows of the moment when it was made. A temporary view that reads
nothing of the lake is Spark's alone. Views with a namespace are the catalog's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from rowlake.catalog import views as catalog_views
from rowlake.engine.session_rows import marked
from rowlake.errors import InvalidStatementError, TableNotFoundError
from rowlake.model.names import quoted
from rowlake.query.cached_rows import outdate_views
from rowlake.query.lookup import TableLookup, new_name
from rowlake.query.refusals import told_plainly
from rowlake.query.run import run_query
from rowlake.query.views import described
from rowlake.sql import statements as s
from rowlake.sql.execute.show import matches, namespace_of
from rowlake.sqltext.lexer import Lexer, TokenKind, quote, quote_parts, readable
from rowlake.sqltext.schema_json import schema_json
from rowlake.sqltext.spark_types import columns_of
from rowlake.workspace import TextView

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.lake import Lake
    from rowlake.sqltext.names import Name

GLOBAL = "global_temp"


def create_temp_view(lake: Lake, statement: s.CreateTempView, text: str, args: Any) -> None:
    """CREATE [GLOBAL] TEMPORARY VIEW."""
    name = statement.name
    if len(name) > 1:
        raise InvalidStatementError(
            f"Cannot create the temporary view {readable(name)}: such views are in no namespace. "
            f"Name it {readable(name[-1:])}."
        )
    key = (GLOBAL, name[0].lower()) if statement.is_global else (name[0].lower(),)
    _show_temporary(lake, key, statement, text, args)


def _show_temporary(
    lake: Lake, key: Name, statement: s.CreateTempView, text: str, args: Any
) -> None:
    """Have a temporary view in the session, and keep its text where it reads the lake."""
    session = lake.workspace.session
    lookup = TableLookup(lake.workspace)
    frame = _rows(lookup, statement.query, text)
    if not lookup.loaded and not lookup.views:
        run_query(lookup, text, args)
        _forget(lake, key)
        return
    made = _defined(lookup, key, statement.query, frame, statement.columns)
    if statement.replace:
        _refuse_recursion(lookup, made)
    made = replace(made, mark=uuid4().hex)
    shown = marked(_named(frame, made.columns, statement.comments), made.mark)
    verb = "createOrReplace" if statement.replace else "create"
    with told_plainly(lake.workspace, text, moved=True):
        getattr(shown, f"{verb}{'Global' if key[0] == GLOBAL else ''}TempView")(statement.name[-1])
    _forget(lake, key)
    written = (*key[:-1], statement.name[-1])
    session.views[key] = replace(made, name=written, shown=lake.spark.table(quote_parts(written)))


def _rows(lookup: TableLookup, query: str, text: str) -> Any:
    """Return a view's rows; raises where its query is wrong, or has parameters."""
    if any(token.kind is TokenKind.PARAMETER for token in Lexer(query).all()):
        raise InvalidStatementError(
            "A view cannot have parameters: it is kept as text. Write their values.",
            statement=text,
        )
    return run_query(lookup, query, statement=text)


def _defined(
    lookup: TableLookup, name: Name, query: str, frame: Any, columns: tuple[str, ...]
) -> TextView:
    produced = tuple(frame.columns)
    if columns and len(columns) != len(produced):
        raise InvalidStatementError(
            f"The view {readable(name)} names {len(columns)} columns, but its query gives "
            f"{len(produced)}: {', '.join(produced)}."
        )
    named = columns or produced
    doubled = _doubled(named, case_sensitive=lookup.names.case_sensitive)
    if doubled is not None:
        raise InvalidStatementError(
            f"The view {readable(name)} has two columns {doubled}: give one of them another name."
        )
    if columns and _doubled(produced, case_sensitive=lookup.names.case_sensitive) is not None:
        raise InvalidStatementError(
            f"The query of the view {readable(name)} gives two columns of one name: name them "
            "apart in the query."
        )
    namespace = lookup.workspace.session.namespace
    return described(lookup, TextView(name, query, named, produced, namespace))


def _doubled(names: tuple[str, ...], *, case_sensitive: bool) -> str | None:
    seen = set[str]()
    for name in names:
        known = name if case_sensitive else name.lower()
        if known in seen:
            return name
        seen.add(known)
    return None


def _refuse_recursion(lookup: TableLookup, made: TextView) -> None:
    """Raise where a view would read itself: what it replaces is gone then."""
    key = tuple(part.lower() for part in made.name)
    if any(tuple(part.lower() for part in view.name) == key for view in lookup.views):
        raise InvalidStatementError(
            f"The view {readable(made.name)} would read itself. Give the new view another name."
        )


def _named(frame: Any, columns: tuple[str, ...], comments: Mapping[str, str]) -> Any:
    """Return a view's rows under its own names, with their comments."""
    shown = frame if tuple(frame.columns) == columns else frame.toDF(*columns)
    for column, comment in comments.items():
        shown = shown.withMetadata(column, {"comment": comment})
    return shown


def _forget(lake: Lake, key: Name) -> None:
    """Forget the text and the cached rows of a view that is gone."""
    session = lake.workspace.session
    session.views.pop(key, None)
    session.forget_rows(key)
    outdate_views(session)


def create_view(lake: Lake, statement: s.CreateView, text: str, _args: Any) -> None:
    """CREATE VIEW: one of the catalog, where it keeps views."""
    workspace = lake.workspace
    name = new_name(workspace, statement.name)
    catalog_views.validate_keeps_views(lake.catalog, f"create view {quoted(name)}")
    lookup = TableLookup(workspace)
    if lookup.stored(name) is not None:
        raise InvalidStatementError(f"Cannot create view {quoted(name)}: it is a table.")
    known = catalog_views.load_view(lake.catalog, name)
    if known is not None and statement.if_not_exists:
        return
    if known is not None and not statement.replace:
        raise InvalidStatementError(f"The view {quoted(name)} already exists.")
    frame = _rows(lookup, statement.query, text)
    made = _defined(lookup, name, statement.query, frame, statement.columns)
    if made.temporary:
        raise InvalidStatementError(
            f"The view {quoted(name)} cannot read a temporary view ({', '.join(made.temporary)}): "
            "that is gone with the session."
        )
    _refuse_recursion(lookup, made)
    _swap(lake, made, _named(frame, made.columns, statement.comments), statement, known)


def _swap(
    lake: Lake,
    made: TextView,
    shown: Any,
    statement: s.CreateView,
    known: catalog_views.CatalogView | None,
) -> None:
    """Put a view into the catalog; PyIceberg cannot change one, so that an old one is dropped."""
    found = catalog_views.CatalogView(
        made.name, made.query, made.columns, made.produced, made.namespace, statement.comment
    )
    schema = schema_json(columns_of(shown.schema.jsonValue()))
    if known is not None:
        catalog_views.drop_view(lake.catalog, made.name)
    catalog_views.create_view(lake.catalog, found, schema, statement.properties)


def alter_view(lake: Lake, statement: s.AlterView, text: str, args: Any) -> None:
    """ALTER VIEW … AS: another query for a view that is there."""
    view = TableLookup(lake.workspace).view(statement.name)
    if view is not None and view.shown is None:
        create_view(lake, s.CreateView(view.name, statement.query, replace=True), text, args)
        return
    if view is None and not _is_sparks(lake, statement.name):
        raise TableNotFoundError(readable(statement.name), kind="view")
    key = tuple(part.lower() for part in statement.name)
    again = s.CreateTempView(
        statement.name[-1:], statement.query, replace=True, is_global=key[0] == GLOBAL
    )
    _show_temporary(lake, key, again, text, args)


def rename_view(lake: Lake, statement: s.RenameView, text: str, _args: Any) -> None:
    """ALTER VIEW … RENAME TO: of temporary views; PyIceberg's catalogs rename none."""
    lookup = TableLookup(lake.workspace)
    view = lookup.view(statement.name)
    if view is not None and view.shown is None:
        raise InvalidStatementError(
            f"Cannot rename the view {quoted(view.name)}: create it under its new name and drop "
            "the old one."
        )
    run_query(lookup, text)
    if view is not None:
        key = tuple(part.lower() for part in statement.name)
        to = (*statement.name[:-1], statement.to[-1])
        _forget(lake, key)
        shown = lake.spark.table(quote_parts(to))
        views = lake.workspace.session.views
        views[tuple(part.lower() for part in to)] = replace(view, name=to, shown=shown)


def drop_view(lake: Lake, statement: s.DropView, text: str, _args: Any) -> None:
    """DROP VIEW: a temporary one first, then one of the catalog."""
    lookup = TableLookup(lake.workspace)
    view = lookup.view(statement.name)
    if view is not None and view.shown is None:
        catalog_views.drop_view(lake.catalog, view.name)
        _forget(lake, tuple(part.lower() for part in view.name))
        return
    if view is not None or _is_sparks(lake, statement.name):
        run_query(lookup, text)
        _forget(lake, tuple(part.lower() for part in statement.name))
        return
    if lookup.stored(statement.name) is not None:
        raise InvalidStatementError(
            f"{readable(statement.name)} is a table, not a view: use DROP TABLE."
        )
    if not statement.if_exists:
        raise TableNotFoundError(readable(statement.name), kind="view")


def _is_sparks(lake: Lake, name: Name) -> bool:
    """Return whether Spark has a table or view of a name."""
    session = lake.engine.current_session
    if session is None or len(name) > 3:
        return False
    with told_plainly(lake.workspace, readable(name), moved=True):
        return bool(session.catalog.tableExists(quote_parts(name)))


def describe_view(lookup: TableLookup, statement: Any) -> pa.Table:
    """DESCRIBE, SHOW COLUMNS and SHOW CREATE TABLE of a view of the catalog."""
    view = lookup.view(statement.name)
    assert view is not None
    if isinstance(statement, s.ShowColumns):
        return pa.table({"col_name": pa.array(view.columns, pa.string())})
    if isinstance(statement, s.ShowCreateTable):
        listed = ", ".join(map(quote, view.columns))
        text = f"CREATE VIEW {quote_parts(view.name)} ({listed}) AS\n{view.query}\n"
        return pa.table({"createtab_stmt": pa.array([text], pa.string())})
    if isinstance(statement, s.DescribeTable) and statement.column is None:
        fields = run_query(lookup, f"SELECT * FROM {quote_parts(view.name)}").schema.fields
        return pa.table(
            {
                "col_name": pa.array([one.name for one in fields], pa.string()),
                "data_type": pa.array([one.dataType.simpleString() for one in fields], pa.string()),
                "comment": pa.array([one.metadata.get("comment") for one in fields], pa.string()),
            }
        )
    raise InvalidStatementError(f"{quoted(view.name)} is a view, and the statement is for tables.")


def show_views(lake: Lake, statement: s.ShowViews) -> pa.Table:
    """SHOW VIEWS: namespace, viewName, isTemporary; Spark's temporary views last."""
    namespace = namespace_of(lake, statement.namespace)
    rows = []
    if namespace != (GLOBAL,):
        found = catalog_views.list_views(lake.catalog, namespace)
        rows = [(quoted(name[:-1]), name[-1], False) for name in found]
    rows += _temporary_views(lake, is_global=namespace == (GLOBAL,))
    rows = [row for row in rows if matches(row[1], statement.pattern)]
    return pa.table(
        {
            "namespace": pa.array([row[0] for row in rows], pa.string()),
            "viewName": pa.array([row[1] for row in rows], pa.string()),
            "isTemporary": pa.array([row[2] for row in rows], pa.bool_()),
        }
    )


def _temporary_views(lake: Lake, *, is_global: bool) -> list[tuple[str, str, bool]]:
    session = lake.engine.current_session
    if session is None:
        return []
    asked = session.sql(f"SHOW VIEWS IN {GLOBAL}" if is_global else "SHOW VIEWS").collect()
    return [(row[0], row[1], True) for row in asked if row[2]]
