"""Catalogs that do it all themselves, through PyIceberg's methods: REST, Hive, Glue, …."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSortOrderUpdate,
    AssertCreate,
    AssignUUIDUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetLocationUpdate,
    SetPropertiesUpdate,
    UpgradeFormatVersionUpdate,
)

from rowlake.catalog.handle import IcebergHandle
from rowlake.catalog.outdated import delete_outdated
from rowlake.iceberg._compat import staged_table, without_code_of_tables
from rowlake.iceberg.metadata_checks import validate_metadata
from rowlake.model.names import quoted
from rowlake.storage.filesystems import io_properties
from rowlake.storage.table_io import table_io_properties

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableRequirement, TableUpdate

    from rowlake.iceberg.metadata_files import Definition
    from rowlake.model.names import Identifier


@dataclass(frozen=True)
class GenericBackend:
    """A catalog used through PyIceberg's public methods only."""

    catalog: Catalog

    def load(self, identifier: Identifier, known: IcebergHandle | None) -> IcebergHandle:  # noqa: ARG002
        """Return the table as it is now."""
        with without_code_of_tables(self.catalog):
            table = self.catalog.load_table(identifier)
        found = handle_of(self.catalog, identifier, table)
        validate_metadata(found.metadata, found.metadata_location or found.metadata.location)
        return found

    def exists(self, identifier: Identifier) -> bool:
        """Return whether there is such a table."""
        return bool(self.catalog.table_exists(identifier))

    def register(self, identifier: Identifier, metadata_location: str) -> None:
        """Add a table whose metadata file is there."""
        with without_code_of_tables(self.catalog):
            self.catalog.register_table(identifier, metadata_location)

    def rename(self, identifier: Identifier, to: Identifier) -> None:
        """Give a table another name."""
        with without_code_of_tables(self.catalog):
            self.catalog.rename_table(identifier, to)

    def default_location(self, identifier: Identifier) -> str | None:  # noqa: ARG002
        """Return None: only the catalog itself knows where it puts tables."""
        return None

    def pointers(self) -> list[str]:
        """Return nothing: it matters only beside a default location."""
        return []

    def stage(self, identifier: Identifier, definition: Definition) -> IcebergHandle:
        """Return a table that the first commit creates; a REST catalog says where it will be."""
        if not self.catalog.namespace_exists(identifier[:-1]):  # not every server looks
            raise NoSuchNamespaceError(f"Namespace does not exist: {identifier[:-1]}")
        with without_code_of_tables(self.catalog):
            transaction = self.catalog.create_table_transaction(
                identifier,
                definition.schema,
                definition.location,
                definition.spec,
                definition.sort_order,
                dict(definition.properties),
            )
        staged = handle_of(self.catalog, identifier, staged_table(transaction))
        return replace(staged, metadata=transaction.table_metadata, metadata_location=None)

    def commit(
        self,
        handle: IcebergHandle,
        updates: Sequence[TableUpdate],
        requirements: Sequence[TableRequirement],
    ) -> IcebergHandle:
        """Let the catalog validate, apply and swap."""
        if handle.is_staged:
            updates = [*creation_updates(handle.metadata), *updates]
            requirements = [AssertCreate()]
        with without_code_of_tables(self.catalog):
            answer = self.catalog.commit_table(
                handle.plain_pyiceberg(), tuple(requirements), tuple(updates)
            )
        landed = replace(
            handle, metadata=answer.metadata, metadata_location=answer.metadata_location
        )
        if not is_rest(self.catalog):  # a server cleans up itself
            delete_outdated(handle, landed.metadata, landed.metadata_location, landed.storage)
        return landed


def is_rest(catalog: Catalog) -> bool:
    """Return whether a server applies the updates of a commit, by its own rules."""
    return any(kind.__name__ == "RestCatalog" for kind in type(catalog).__mro__)


def handle_of(catalog: Catalog, identifier: Identifier, table: Table) -> IcebergHandle:
    """Return the handle of a table that PyIceberg loaded."""
    return IcebergHandle(
        identifier,
        catalog,
        table.metadata,
        table.metadata_location,
        _io_properties(catalog, table, quoted(identifier)),
        dict(table.config),
    )


def _io_properties(catalog: Catalog, table: Table, name: str) -> dict[str, str]:
    """Return what opens the files; what a REST server sent along counts as the catalog's."""
    said = table.metadata.properties
    sent = {
        key: value
        for key, value in io_properties(table.io.properties).items()
        if key in table.config or said.get(key) != value
    }
    return table_io_properties({**catalog.properties, **sent}, said, name=name)


def creation_updates(metadata: TableMetadata) -> list[TableUpdate]:
    """Return the updates that make this table out of nothing."""
    spec = metadata.spec()
    order = UNSORTED_SORT_ORDER if metadata.sort_order().is_unsorted else metadata.sort_order()
    return [
        AssignUUIDUpdate(uuid=metadata.table_uuid),
        UpgradeFormatVersionUpdate(format_version=metadata.format_version),
        AddSchemaUpdate(schema_=metadata.schema()),
        SetCurrentSchemaUpdate(schema_id=-1),
        AddPartitionSpecUpdate(
            spec=UNPARTITIONED_PARTITION_SPEC if spec.is_unpartitioned() else spec
        ),
        SetDefaultSpecUpdate(spec_id=-1),
        AddSortOrderUpdate(sort_order=order),
        SetDefaultSortOrderUpdate(sort_order_id=-1),
        SetLocationUpdate(location=metadata.location),
        SetPropertiesUpdate(updates=dict(metadata.properties)),
    ]
