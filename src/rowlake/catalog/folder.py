"""One table in one folder, as Java's HadoopTables reads it: version files and a hint, no names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowlake.catalog.filesystem import FileSystemCatalog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.typedef import Identifier


class FolderCatalog(FileSystemCatalog):
    """The file-system catalog of a single table; every name is that table's."""

    def __init__(self, folder: str, properties: Mapping[str, str]) -> None:
        given = {key: value for key, value in properties.items() if key not in ("type", "name")}
        super().__init__("folder", **{**given, "warehouse": folder})

    def folder_of(self, identifier: str | Identifier) -> str:  # noqa: ARG002
        """Return the folder of the table."""
        return self.warehouse
