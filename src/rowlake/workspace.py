"""What work on a lake depends on besides its text: the catalog, the engine, the current namespace.

`Lake`, its tables and their statements share one. Importing it loads neither Spark nor SQL.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rowlake.catalog import tables as catalog_tables
from rowlake.model.names import quoted

if TYPE_CHECKING:
    from rowlake.engine.spark import Engine


@dataclass
class SessionState:
    """What USE changes."""

    namespace: tuple[str, ...] = ()


@dataclass(frozen=True)
class Workspace:
    """A catalog, an engine to work on its tables, and the state of the statements run there."""

    catalog: Any
    engine: Engine
    session: SessionState = field(default_factory=SessionState)

    @property
    def spark(self) -> Any:
        """The Spark session; created on first use."""
        return self.engine.spark

    def over(self, catalog: Any) -> Workspace:
        """Return the same workspace over another catalog, such as that of a transaction."""
        return replace(self, catalog=catalog)

    def table_names(self, namespace: str | tuple[str, ...] | None = None) -> list[str]:
        """Return the names of the tables in a namespace, or in all of them."""
        wanted = catalog_tables.all_namespaces(self.catalog) if namespace is None else [namespace]
        return sorted(
            quoted(found)
            for space in wanted
            for found in catalog_tables.list_tables(self.catalog, space)
        )
