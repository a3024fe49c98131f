# ruff: noqa: ARG002  (the signatures are PyIceberg's)
"""What a catalog without a server refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from pyiceberg.catalog import Catalog, PropertiesUpdateSummary
from pyiceberg.typedef import EMPTY_DICT

from rowlake.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.typedef import Identifier, Properties
    from pyiceberg.view import View


def refuse(what: str) -> NoReturn:
    """Refuse; `what` completes "cannot …"."""
    raise UnsupportedFeatureError(f"The file-system catalog cannot {what}.")


class ServerlessCatalog(Catalog):
    """No renaming, no registering, no properties of namespaces, no views."""

    def register_table(
        self, identifier: str | Identifier, metadata_location: str, overwrite: bool = False
    ) -> Table:
        """Not possible: a table is where its name says."""
        refuse("register a table; it is found by its folder")

    def rename_table(
        self, from_identifier: str | Identifier, to_identifier: str | Identifier
    ) -> Table:
        """Not possible: the location of a table is its name."""
        refuse("rename a table")

    def update_namespace_properties(
        self,
        namespace: str | Identifier,
        removals: set[str] | None = None,
        updates: Properties = EMPTY_DICT,
    ) -> PropertiesUpdateSummary:
        """Not possible: a folder has no properties."""
        refuse("keep properties of namespaces")

    def supports_server_side_planning(self) -> bool:
        """There is no server."""
        return False

    def list_views(self, namespace: str | Identifier) -> list[Identifier]:
        """Return no views: there are none."""
        return []

    def view_exists(self, identifier: str | Identifier) -> bool:
        """Return False: there are no views."""
        return False

    def load_view(self, identifier: str | Identifier) -> View:
        """Not possible."""
        refuse("keep views")

    def create_view(self, *_: Any, **__: Any) -> View:
        """Not possible."""
        refuse("keep views")

    def register_view(self, identifier: str | Identifier, metadata_location: str) -> View:
        """Not possible."""
        refuse("keep views")

    def drop_view(self, identifier: str | Identifier) -> None:
        """Not possible."""
        refuse("keep views")
