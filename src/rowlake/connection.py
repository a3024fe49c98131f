"""`connect`: a lake opened, with the catalog, the engine and what runs statements put together.

Statements are loaded at the first one; opening a lake loads neither Spark nor SQL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowlake.catalog.open import open_catalog, properties_to_reopen
from rowlake.deferred import deferred
from rowlake.engine.spark import Engine
from rowlake.lake import Lake
from rowlake.model.ipython import running_shell, show_arrow_tables
from rowlake.secrets import redacted_repr
from rowlake.workspace import Workspace

if TYPE_CHECKING:
    from rowlake.query import relation
    from rowlake.sql.execute import statement as statements
    from rowlake.stream import source
else:  # loaded at their first use
    (statements,) = deferred("rowlake.sql.execute", "statement")
    (source,) = deferred("rowlake.stream", "source")
    (relation,) = deferred("rowlake.query", "relation")


def connect(
    warehouse: str | None = None,
    catalog: Any = None,
    spark: Any = None,
) -> Lake:
    """Open a lake.

    - `warehouse`: where tables live, a path or a URI (default `./lakehouse`);
    - `catalog`: None (SQLite inside the warehouse), a name from PyIceberg's configuration, a dict
      of PyIceberg catalog properties, a PyIceberg `Catalog`, or `"filesystem"`;
    - `spark`: a session of yours, classic or Connect; else the active one; else a local one that
      is made at first use.
    """
    show_arrow_tables(running_shell())
    opened = open_catalog(warehouse, catalog)
    defaults = _source_defaults(opened, catalog)
    engine = Engine(spark, source_planner=SourcePlanner(defaults), lake_opener=LakeOpener(defaults))
    return Lake(Workspace(opened, engine), statements)


@dataclass(frozen=True)
class LakeOpener:
    """Opens a lake again in another process, by what opened it here."""

    defaults: Mapping[str, str]

    __repr__ = redacted_repr

    def __call__(self, spark: Any) -> Lake:
        """Return the lake, with a session of that process."""
        prefix = "catalog."
        catalog: Any = {
            key[len(prefix) :]: value
            for key, value in self.defaults.items()
            if key.startswith(prefix)
        }
        return connect(
            self.defaults.get("warehouse"), catalog or self.defaults.get("catalog"), spark
        )


@dataclass(frozen=True)
class SourcePlanner:
    """Opens the table that a read's options name; `defaults` are what opens the lake."""

    defaults: Mapping[str, str]

    __repr__ = redacted_repr

    def __call__(self, options: Mapping[str, str]) -> Any:
        """Return the table as a data source reads it."""
        return relation.relation_of(self.defaults, options)

    def stream(self, options: Mapping[str, str]) -> Any:
        """Return the table as a streaming query reads it."""
        return source.stream_of(self.defaults, options)


def _source_defaults(opened: Any, catalog: Any) -> dict[str, str]:
    """Return what opens this catalog again, for reads that Spark plans in another process."""
    defaults = {"warehouse": str(opened.properties.get("warehouse", ""))}
    if isinstance(catalog, str):
        defaults["catalog"] = catalog
    elif isinstance(catalog, Mapping):
        defaults |= {f"catalog.{key}": str(value) for key, value in catalog.items()}
    elif catalog is not None:
        reopening = properties_to_reopen(opened)
        defaults |= {f"catalog.{key}": value for key, value in reopening.items()}
    return {key: value for key, value in defaults.items() if value}
