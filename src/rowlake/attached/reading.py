"""`spark.table`, `spark.read` and `spark.catalog` in an attached session."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from rowlake.attached import owners
from rowlake.catalog import tables as catalog_tables
from rowlake.engine.attachments.drop_in import TableFacts
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.model.names import levels_of, quoted
from rowlake.model.schema import field_id
from rowlake.query.lookup import TableLookup
from rowlake.query.refusals import plain_error, run_plainly
from rowlake.query.run import run_query
from rowlake.sqltext.lexer import quote_parts, string_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rowlake.lake import Lake
    from rowlake.sqltext.names import Name

# Options of other readers that would change which rows come back; all else are hints.
_NOT_HERE = ("start-snapshot-id", "end-snapshot-id", "readchangefeed", "readchangedata")


def table(lake: Lake, name: str, options: Mapping[str, str]) -> Any | None:
    """Return a table of the lake, or a view over its tables; None where it is neither."""
    parts = owners.parts_of(name)
    if parts is None:
        return None
    lookup = TableLookup(lake.workspace)
    if lookup.target(parts) is None and lookup.view(parts) is None:
        return None
    return _rows(lake, lookup, parts, options)


def load(lake: Lake, provider: str, path: str, options: Mapping[str, str]) -> Any | None:
    """Return a table by name, or a Delta table by its path; None where the lake has none."""
    name = named_by(provider, path)
    if name is None:
        return None
    lookup = TableLookup(lake.workspace)
    return None if lookup.target(name) is None else _rows(lake, lookup, name, options)


def named_by(provider: str, path: str) -> Name | None:
    """Return the table that the argument of `load` or `save` names; None for other formats."""
    provider = provider.lower()
    if provider not in owners.TABLE_FORMATS:
        return None
    parts = owners.parts_of(path)
    if provider == "delta" and ("/" in path or parts is None):
        return (provider, path)
    return parts


def _rows(lake: Lake, lookup: TableLookup, name: Name, options: Mapping[str, str]) -> Any:
    text = f"SELECT * FROM {quote_parts(name)}{_moment(name, options)}"
    with run_plainly(lake.workspace, text):
        found = run_query(lookup, text)
    return lake.engine.raising_plainly(found, partial(plain_error, text=text))


def _moment(name: Name, options: Mapping[str, str]) -> str:
    """Return the clause for the snapshot that options select."""
    given = {key.lower(): value for key, value in options.items()}
    for key in _NOT_HERE:
        if key in given:
            raise UnsupportedFeatureError(
                f"Cannot read {quoted(name)} with the option {key}: read changes by SELECT * FROM "
                f"table_changes('{quoted(name)}', start, end), or lake.table(name).changes()."
            )
    found = [clause(given[key]) for key, clause in _MOMENTS.items() if given.get(key)]
    if len(found) > 1:
        raise InvalidStatementError(
            f"{quoted(name)} is read at one snapshot: give one of the options "
            f"{', '.join(_MOMENTS)}."
        )
    return "".join(found)


def _version(value: str) -> str:
    return f" VERSION AS OF {value if value.isdecimal() else string_literal(value)}"


def _reference(value: str) -> str:
    return f" VERSION AS OF {string_literal(value)}"


def _milliseconds(value: str) -> str:
    if not value.lstrip("-").isdecimal():
        raise InvalidStatementError(f"as-of-timestamp is in ms since 1970, not {value!r}.")
    return f" TIMESTAMP AS OF timestamp_millis({value})"


def _time(value: str) -> str:
    return f" TIMESTAMP AS OF {string_literal(value)}"


_MOMENTS: dict[str, Callable[[str], str]] = {
    "snapshot-id": _version,
    "branch": _reference,
    "tag": _reference,
    "as-of-timestamp": _milliseconds,
    "versionasof": _version,
    "timestampasof": _time,
}


# --- spark.catalog


def facts(lake: Lake, name: str) -> TableFacts | None:
    """Return what `spark.catalog` says of a table of the lake."""
    parts = owners.parts_of(name)
    target = None if parts is None else owners.lake_target(lake.workspace, parts)
    if target is None or not target.is_current:
        return None
    handle = lake.table(target.table).handle
    view, identifier = handle.view(), tuple(handle.identifier)
    columns = {field_id(column): column.name for column in view.schema.arrow}
    return TableFacts(
        identifier[-1],
        identifier[:-1],
        handle.properties.get("comment"),
        lake.engine.from_arrow(view.schema.arrow.empty_table()).schema,
        [columns[each.source_id] for each in view.spec.fields if each.source_id in columns],
    )


def table_facts(lake: Lake, namespace: str | None) -> list[TableFacts] | None:
    """Return the tables of a namespace; None where the lake does not have it."""
    current = lake.workspace.session.namespace
    parts = current if namespace is None else owners.parts_of(namespace)
    if parts is None or not owners.has_namespace(lake.workspace, parts):
        return None
    names = [levels_of(name) for name in lake.tables(parts)]
    return [TableFacts(name[-1], tuple(name[:-1])) for name in names]


def namespaces(lake: Lake) -> list[str]:
    """Return all namespaces of the lake."""
    return sorted(quoted(name) for name in catalog_tables.all_namespaces(lake.catalog))


def use(lake: Lake, namespace: str) -> bool:
    """Make a namespace the current one; False where it is Spark's, which has to do the same."""
    parts = owners.parts_of(namespace)
    if parts is None:
        return False
    own = owners.has_namespace(lake.workspace, parts)
    if own or owners.is_sparks_namespace(lake.workspace, parts):
        lake.workspace.session.namespace = parts
    return own
