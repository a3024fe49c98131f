"""A table as `spark.read.format("rowlake")` reads it, from nothing but options.

Spark plans such a read in a process of its own, so the catalog is opened again there.

Options: `path` (what `load` is given) or `table`, the name; `warehouse`, `catalog` as `connect`
takes them; `catalog.<property>` for a catalog of given PyIceberg properties; `snapshot-id`,
`as-of-timestamp` (ms since 1970), `branch`, `tag`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.catalog.formats import load_table
from rowlake.catalog.open import open_catalog
from rowlake.errors import InvalidStatementError
from rowlake.plan.tasks import scan_tasks
from rowlake.scan.kernel import scan_kernel
from rowlake.verbs.read import planned_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa

    from rowlake.model.handle import TableHandle
    from rowlake.model.view import TableView

SLOTS = 8
CATALOG_PREFIX = "catalog."
_OPENING = ("path", "table", "warehouse", "catalog", "branch")
_BATCH = ("tag", "snapshot-id", "as-of-timestamp")
_STREAM = (
    *("changes", "starting", "start-timestamp", "max-files-per-trigger", "max-rows-per-trigger"),
)
# Spark asks for the columns of a table before it says whether a read is a stream.
OPTIONS = (*_OPENING, *_BATCH, *_STREAM)


class TableRelation:
    """A table at one snapshot; picklable, and keeps to that snapshot however long a read takes."""

    def __init__(self, view: TableView) -> None:
        self._view = view

    @property
    def schema(self) -> pa.Schema:
        """The columns, in the table's types."""
        return self._view.schema.arrow

    def plan(self) -> tuple[Callable[[Any], Iterable[pa.RecordBatch]], Sequence[Any]]:
        """Return the scan kernel and its tasks."""
        read = planned_view(self._view)
        return scan_kernel, scan_tasks(read.plan, read.context, slots=SLOTS)


def relation_of(defaults: Mapping[str, str], options: Mapping[str, str]) -> TableRelation:
    """Return the table that a read's options name; `defaults` are the lake's own."""
    handle, given = table_of_options(defaults, options)
    return TableRelation(_view(handle, given))


def _validate_options(options: Mapping[str, str]) -> None:
    """Refuse options that no read has: a mistyped one would read other rows than meant."""
    for key in options:
        name = key.lower()
        if name not in OPTIONS and not name.startswith(CATALOG_PREFIX):
            raise InvalidStatementError(
                f"Unknown option {key!r} of a read of format rowlake "
                f"(expected one of: {', '.join(OPTIONS)}, catalog.<property>)."
            )


def table_of_options(
    defaults: Mapping[str, str], options: Mapping[str, str]
) -> tuple[TableHandle, dict[str, str]]:
    """Return the table that options name, and all options, their names in lower case."""
    _validate_options(options)
    given = {**defaults, **{key.lower(): value for key, value in options.items()}}
    name = given.get("table") or given.get("path")
    if not name:
        raise InvalidStatementError(
            'Name the table: spark.read.format("rowlake").load("namespace.table").'
        )
    properties = {
        key.removeprefix(CATALOG_PREFIX): value
        for key, value in given.items()
        if key.startswith(CATALOG_PREFIX)
    }
    catalog = open_catalog(given.get("warehouse"), properties or given.get("catalog"))
    return load_table(catalog, name), given


def _view(handle: TableHandle, options: Mapping[str, str]) -> TableView:
    return handle.view(
        snapshot_id=_whole_number(options, "snapshot-id"),
        as_of_ms=_whole_number(options, "as-of-timestamp"),
        ref=options.get("branch") or options.get("tag"),
    )


def _whole_number(options: Mapping[str, str], name: str) -> int | None:
    found = options.get(name)
    try:
        return None if found is None else int(found)
    except ValueError as error:
        raise InvalidStatementError(f"Option {name} is a whole number, not {found!r}.") from error
