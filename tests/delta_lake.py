"""A lake of Delta tables by names: real `Table` objects over folders of a warehouse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.catalog.open import open_catalog
from rowlake.commit.metadata import commit_metadata
from rowlake.connection import statements
from rowlake.delta.format import DELTA
from rowlake.engine.spark import Engine
from rowlake.errors import TableNotFoundError
from rowlake.lake import Lake
from rowlake.model.metadata_change import Redefine, TableDefinition
from rowlake.model.names import levels_of, table_levels
from rowlake.table import Table
from rowlake.verbs.create import already_there
from rowlake.verbs.schema_input import schema_of
from rowlake.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.model.names import Name

FORMAT_VERSION = "format-version"


def delta_lake(folder: str, engine: Engine | None = None) -> DeltaLake:
    """Return a lake of the Delta tables below a folder."""
    return DeltaLake(Workspace(open_catalog(folder, None), engine or Engine(None)), folder)


class DeltaLake(Lake):
    """What suites need of a lake: deletion vectors from version 2 on, no transforms of columns."""

    def __init__(self, workspace: Workspace, folder: str) -> None:
        super().__init__(workspace, statements)
        self.folder = folder

    def _path(self, name: Name) -> str:
        return "/".join([self.folder, *table_levels(name)])

    def table(self, name: Name) -> Table:
        handle = DELTA.load_path(self.catalog, table_levels(name), self._path(name))
        return Table(handle, self)

    def exists(self, name: Name) -> bool:
        try:
            self.table(name)
        except TableNotFoundError:
            return False
        return True

    def create_table(
        self,
        name: Name,
        schema: Any,
        *,
        properties: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
        replace: bool = False,
        **layout: Any,
    ) -> Table:
        given = dict(properties or {})
        if given.pop(FORMAT_VERSION, "2") != "1":
            given = {"delta.enableDeletionVectors": "true", **given}
        terms = layout.get("partition_by", ())
        terms = (terms,) if isinstance(terms, str) else tuple(terms)
        layout = {"partition_by": tuple(one for one in terms if "(" not in str(one))}
        definition = TableDefinition(
            schema_of(schema), properties=given, location=self._path(name), **layout
        )
        if self.exists(name):
            if not replace and not if_not_exists:
                raise already_there(table_levels(name))
            if replace:
                commit_metadata(self.table(name).handle, "REPLACE TABLE", Redefine(definition))
            return self.table(name)
        return Table(DELTA.create(self.catalog, table_levels(name), definition), self)

    def create_namespace(
        self,
        name: Name,
        properties: Mapping[str, str] | None = None,
        *,
        if_not_exists: bool = False,
    ) -> None:
        super().create_namespace(levels_of(name), properties, if_not_exists=if_not_exists)
