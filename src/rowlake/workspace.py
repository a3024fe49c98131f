"""What work on a lake depends on besides its text: the catalog, the engine, the current namespace.

`Lake`, its tables and their statements share one. Importing it loads neither Spark nor SQL.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rowlake.catalog import tables as catalog_tables
from rowlake.errors import UnsupportedFeatureError
from rowlake.model.names import DEFAULT_NAMESPACE, levels_of, quoted, within

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from rowlake.engine.spark import Engine
    from rowlake.model.feed import Bounds
    from rowlake.model.handle import TableHandle
    from rowlake.model.predicate import Predicate

    # Table, engine, span, columns (None: all) and predicate to a DataFrame of changes.
    ChangeFeed: TypeAlias = Callable[
        [TableHandle, Engine, Bounds, Sequence[str] | None, Predicate], Any
    ]


@dataclass(frozen=True)
class TextView:
    """A view over lake tables, kept as text and resolved at each use.

    `produced` are the columns that the query gave when the view was made, `columns` what the view
    calls them. Names in the query are looked up in `namespace`; only those in `temporary` (lower
    case) mean temporary views. `tables` has the columns of each lake table that the query read.
    `shown` is the view as the Spark session knows it, None for a view of the catalog; `mark` tells
    it from others of its name.
    """

    name: tuple[str, ...]
    query: str
    columns: tuple[str, ...]
    produced: tuple[str, ...]
    namespace: tuple[str, ...] = DEFAULT_NAMESPACE
    temporary: frozenset[str] = frozenset()
    tables: Mapping[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    shown: Any = field(default=None, repr=False, compare=False)
    mark: str = ""


@dataclass(frozen=True)
class CachedRows:
    """Rows that CACHE TABLE keeps in Spark: of a table, or of a view over tables.

    They are those of `versions`, the metadata of each table read (and of a view, under no name, its
    text); with other metadata they are read again. `level` is where Spark keeps them, None for
    its usual place.
    """

    frame: Any
    versions: Mapping[tuple[str, ...], Any]
    catalog: Any = field(repr=False)
    level: Any = None


@dataclass
class SessionState:
    """What statements leave for later ones: USE, views, cached tables and views.

    `views` are temporary ones, by their names in lower case; `cached` has the full names of tables
    and the names of views as `views` has them.
    """

    namespace: tuple[str, ...] = DEFAULT_NAMESPACE
    views: dict[tuple[str, ...], TextView] = field(default_factory=dict)
    cached: dict[tuple[str, ...], CachedRows] = field(default_factory=dict)

    def forget_rows(self, key: tuple[str, ...]) -> None:
        """Forget the cached rows of a table or view."""
        found = self.cached.pop(key, None)
        if found is not None:
            found.frame.unpersist()


@dataclass(frozen=True)
class Workspace:
    """A catalog, an engine to work on its tables, and the state of the statements run there.

    `feeds` reads changes for statements: the room that does is above those that read statements.
    """

    catalog: Any
    engine: Engine
    session: SessionState = field(default_factory=SessionState)
    feeds: ChangeFeed | None = field(default=None, repr=False)

    def change_feed(
        self,
        handle: TableHandle,
        bounds: Bounds,
        columns: Sequence[str] | None,
        predicate: Predicate,
    ) -> Any:
        """Return the changes of a table as a DataFrame; rows of no interest may be left out."""
        if self.feeds is None:
            raise UnsupportedFeatureError(f"Changes of {handle.name} cannot be read here.")
        return self.feeds(handle, self.engine, bounds, columns, predicate)

    @property
    def spark(self) -> Any:
        """The Spark session; created on first use."""
        return self.engine.spark

    def over(self, catalog: Any) -> Workspace:
        """Return the same workspace over another catalog, such as that of a transaction."""
        return replace(self, catalog=catalog)

    def in_session(self, spark: Any) -> Workspace:
        """Return the same workspace with an engine for another Spark session."""
        return replace(self, engine=self.engine.in_session(spark))

    def full_name(self, name: str | tuple[str, ...]) -> tuple[str, ...]:
        """Return a table's name with its namespace, the current one where it names none."""
        return within(self.session.namespace, levels_of(name))

    def table_names(self, namespace: str | tuple[str, ...] | None = None) -> list[str]:
        """Return the names of the tables in a namespace, or in all of them."""
        wanted = catalog_tables.all_namespaces(self.catalog) if namespace is None else [namespace]
        return sorted(
            quoted(found)
            for space in wanted
            for found in catalog_tables.list_tables(self.catalog, space)
        )
