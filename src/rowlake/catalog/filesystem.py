"""A catalog without a server: namespaces are folders, tables are folders with version files.

Java's `HadoopCatalog` reads and writes the same tables. Commits are put-if-absent, so any number
of rowlake writers is safe on local disks and on S3. (Java's own commits on a local disk rename
without that check; do not let both write at the same moment there.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.table import CommitTableResponse, CreateTableTransaction, StagedTable, Table
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.typedef import EMPTY_DICT

from rowlake.catalog import versions
from rowlake.catalog.handle import IcebergHandle
from rowlake.catalog.outdated import delete_outdated
from rowlake.catalog.serverless import ServerlessCatalog, refuse
from rowlake.deferred import deferred
from rowlake.errors import (
    InvalidStatementError,
    MissingFileError,
    StorageError,
    UnsupportedFeatureError,
)
from rowlake.iceberg.metadata_checks import validate_commit
from rowlake.iceberg.metadata_files import (
    METADATA_PATH,
    Definition,
    apply_updates,
    extension,
    from_nothing,
    new_metadata,
    read_metadata,
    to_bytes,
    validate,
)
from rowlake.model.names import folder_name, new_folder_name, quoted
from rowlake.model.properties import validate_no_secrets
from rowlake.storage.files import Storage
from rowlake.storage.locations import is_remote, join

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.io import FileIO
    from pyiceberg.schema import Schema
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableRequirement, TableUpdate
    from pyiceberg.typedef import Identifier, Properties

    from rowlake.catalog.versions import Version
    from rowlake.storage import places
else:  # loaded at its first use: loading a table compares no places
    (places,) = deferred("rowlake.storage", "places")


class FileSystemCatalog(ServerlessCatalog):
    """Tables as folders below the property `warehouse`; other properties open the storage."""

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        if not properties.get("warehouse"):
            raise InvalidStatementError("The file-system catalog needs a warehouse.")
        self.warehouse = properties["warehouse"].rstrip("/") or "/"
        self.storage = Storage(properties)

    # -- tables -------------------------------------------------------------------------------

    def folder_of(self, identifier: str | Identifier) -> str:
        """Return the folder of a table or a namespace."""
        levels = map(folder_name, self.identifier_to_tuple(identifier))
        return join(self.warehouse, *levels)

    def newest(self, identifier: str | Identifier) -> Version:
        """Return the newest version of a table."""
        found = versions.newest_version(self.folder_of(identifier), self.storage)
        if found is None:
            raise NoSuchTableError(f"Table does not exist: {identifier}")
        return found

    def load_table(self, identifier: str | Identifier) -> Table:
        """Return the table at its newest version."""
        version = self.newest(identifier)
        return self._table(identifier, read_metadata(version.location, self.storage), version)

    def table_exists(self, identifier: str | Identifier) -> bool:
        """Return whether there is such a table."""
        folder = self.folder_of(identifier)
        return versions.newest_version(folder, self.storage) is not None

    def new_table_metadata(
        self, identifier: str | Identifier, definition: Definition
    ) -> TableMetadata:
        """Return the metadata of a table to be; its location follows from its name."""
        namespace = self.namespace_from(identifier)
        if not self.namespace_exists(namespace):
            raise NoSuchNamespaceError(f"Namespace does not exist: {namespace}")
        if self.table_exists(identifier):
            raise TableAlreadyExistsError(f"Table already exists: {identifier}")
        folder = self.folder_of(identifier)
        if definition.location and definition.location.rstrip("/") != folder:
            raise UnsupportedFeatureError(
                f"The file-system catalog has this table at {folder}: leave the location out."
            )
        metadata = new_metadata(definition, folder)
        _check_metadata_stays(metadata)
        return metadata

    def create_table(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Properties = EMPTY_DICT,
    ) -> Table:
        """Create a table."""
        made = self._staged(identifier, schema, location, partition_spec, sort_order, properties)
        version = self.write_version(identifier, 1, made.metadata, made.metadata)
        return self._table(identifier, made.metadata, version)

    def create_table_transaction(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        location: str | None = None,
        partition_spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        sort_order: SortOrder = UNSORTED_SORT_ORDER,
        properties: Properties = EMPTY_DICT,
    ) -> CreateTableTransaction:
        """Return a transaction whose commit creates the table."""
        return CreateTableTransaction(
            self._staged(identifier, schema, location, partition_spec, sort_order, properties)
        )

    def _staged(
        self,
        identifier: str | Identifier,
        schema: Schema | pa.Schema,
        location: str | None,
        spec: PartitionSpec,
        order: SortOrder,
        properties: Properties,
    ) -> StagedTable:
        validate_no_secrets(properties)
        given = {key: str(value) for key, value in properties.items()}
        version = int(given.get("format-version", 2))
        converted = self._convert_schema_if_needed(schema, version)  # type: ignore[arg-type]
        definition = Definition(converted, spec, order, given, location)
        metadata = self.new_table_metadata(identifier, definition)
        return StagedTable(
            identifier=self.identifier_to_tuple(identifier),
            metadata=metadata,
            metadata_location=versions.version_location(
                metadata.location, 1, extension(metadata.properties)
            ),
            io=self._io(metadata),
            catalog=self,
        )

    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        """Make the next version of a table; CommitFailedException where another made it."""
        validate_commit(table, updates)
        identifier = table.name()
        try:
            current = self.newest(identifier)
        except NoSuchTableError:
            if not isinstance(table, StagedTable):
                raise
            return self._commit_first(table, requirements, updates)
        known = table.metadata_location == current.location
        base = table.metadata if known else read_metadata(current.location, self.storage)
        metadata, version = self.commit_version(
            identifier, base, current, requirements=requirements, updates=updates
        )
        return _answer(metadata, version)

    def _commit_first(
        self,
        table: StagedTable,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        validate(requirements, None)
        metadata = from_nothing(updates)
        version = self.write_version(table.name(), 1, metadata, metadata)
        return _answer(metadata, version)

    def commit_version(
        self,
        identifier: str | Identifier,
        base: TableMetadata,
        current: Version,
        *,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> tuple[TableMetadata, Version]:
        """Apply updates to the newest version and make the next one."""
        self.check_place(identifier, base)
        validate(requirements, base)
        metadata = apply_updates(base, current.location, updates)
        if metadata == base:
            return base, current
        if metadata.location.rstrip("/") != base.location.rstrip("/"):
            raise UnsupportedFeatureError("The file-system catalog cannot move a table.")
        _check_metadata_stays(metadata)
        made = self.write_version(identifier, current.number + 1, base, metadata)
        levels = self.identifier_to_tuple(identifier)
        before = IcebergHandle(levels, self, base, current.location, self.properties)
        delete_outdated(before, metadata, made.location, self.storage)
        return metadata, made

    def check_place(self, identifier: str | Identifier, metadata: TableMetadata) -> None:
        """Check that a table says that it is where it is: else it would touch files elsewhere."""
        folder = self.folder_of(identifier)
        if places.place_of(metadata.location) == places.place_of(folder):
            return
        name = quoted(self.identifier_to_tuple(identifier))
        raise UnsupportedFeatureError(
            f"Cannot change {name}: it is at {folder}, but its metadata says that it is at "
            f"{metadata.location}. Nothing was changed, and it can be read. To change it, bring "
            f"its paths in line with rewrite_table_path, or register its metadata file in a SQL "
            f"or REST catalog."
        )

    def write_version(
        self,
        identifier: str | Identifier,
        number: int,
        base: TableMetadata,
        metadata: TableMetadata,
    ) -> Version:
        """Make a version by put-if-absent, then move the hint.

        The name depends on the base alone: writers of the same version must meet at one name.
        """
        folder = self.folder_of(identifier)
        location = versions.version_location(folder, number, extension(base.properties))
        if not self._create(location, to_bytes(metadata, location)):
            if number == 1:
                raise TableAlreadyExistsError(f"Table already exists: {identifier}")
            raise CommitFailedException(f"version {number} was made by another commit")
        versions.write_hint(folder, number, self.storage)
        return versions.Version(number, location)

    def _create(self, location: str, data: bytes) -> bool:
        """Put a version if absent; what failed may have taken effect, so it is looked at."""
        try:
            return self.storage.create(location, data)
        except StorageError as error:
            try:
                return self.storage.read(location) == data
            except MissingFileError:
                # A request to an object store that got no answer may still arrive.
                if not is_remote(location):
                    raise error from None
                raise CommitStateUnknownException(str(error)) from error
            except StorageError:
                raise CommitStateUnknownException(str(error)) from error

    def drop_table(self, identifier: str | Identifier) -> None:
        """Delete the table's folder with all in it, as Java does; files elsewhere stay."""
        self.newest(identifier)
        self.storage.delete_folder(self.folder_of(identifier))

    @staticmethod
    def _delete_old_metadata(*_: object) -> None:
        """Do nothing: `commit_version` deletes what is the table's own."""

    def purge_table(self, identifier: str | Identifier) -> None:
        """Delete the table's folder with all in it."""
        self.drop_table(identifier)

    # -- namespaces ---------------------------------------------------------------------------

    def namespace_exists(self, namespace: str | Identifier) -> bool:
        """Return whether there is such a folder, and it is no table."""
        folder = self.folder_of(namespace)
        return self.storage.exists(folder) and not self._is_table(folder)

    def create_namespace(
        self, namespace: str | Identifier, properties: Properties = EMPTY_DICT
    ) -> None:
        """Make the folder of a namespace."""
        for level in self.identifier_to_tuple(namespace):
            new_folder_name(level)
        if properties:
            refuse("keep properties of namespaces")
        if self.storage.exists(self.folder_of(namespace)):
            raise NamespaceAlreadyExistsError(f"Namespace already exists: {namespace}")
        self.storage.make_folder(self.folder_of(namespace))

    def drop_namespace(self, namespace: str | Identifier) -> None:
        """Delete the folder of a namespace that has nothing in it."""
        self._check_namespace(namespace)
        folder = self.folder_of(namespace)
        if self.storage.folders(folder) or self.storage.children(folder):
            raise NamespaceNotEmptyError(f"Namespace is not empty: {namespace}")
        self.storage.delete_empty_folders(folder)
        if self.storage.exists(folder):
            raise NamespaceNotEmptyError(f"Namespace is not empty: {namespace}")

    def list_tables(self, namespace: str | Identifier) -> list[Identifier]:
        """Return the tables of a namespace, sorted."""
        return [levels for levels, is_table in self._children(namespace) if is_table]

    def list_namespaces(self, namespace: str | Identifier = ()) -> list[Identifier]:
        """Return the namespaces right below one, sorted."""
        return [levels for levels, is_table in self._children(namespace) if not is_table]

    def _children(self, namespace: str | Identifier) -> list[tuple[Identifier, bool]]:
        levels = self.identifier_to_tuple(namespace)
        if levels:
            self._check_namespace(levels)
        folder = self.folder_of(levels) if levels else self.warehouse
        found = [
            ((*levels, name), self._is_table(join(folder, name)))
            for name in self.storage.folders(folder)
        ]
        # A hidden folder is a table where it has one's metadata, but no namespace by itself.
        return [one for one in found if one[1] or not one[0][-1].startswith((".", "_"))]

    def _is_table(self, folder: str) -> bool:
        return versions.newest_version(folder, self.storage) is not None

    def _check_namespace(self, namespace: str | Identifier) -> None:
        if not self.namespace_exists(namespace):
            raise NoSuchNamespaceError(f"Namespace does not exist: {namespace}")

    def load_namespace_properties(self, namespace: str | Identifier) -> Properties:
        """Return where a namespace is; it has no other properties."""
        self._check_namespace(namespace)
        return {"location": self.folder_of(namespace)}

    def _table(
        self, identifier: str | Identifier, metadata: TableMetadata, version: Version
    ) -> Table:
        levels = self.identifier_to_tuple(identifier)
        return Table(levels, metadata, version.location, self._io(metadata), self)

    def _io(self, metadata: TableMetadata) -> FileIO:
        # Without the table's properties: they must not name classes, nor where secrets are sent.
        return self._load_file_io(location=metadata.location)


def _check_metadata_stays(metadata: TableMetadata) -> None:
    if metadata.properties.get(METADATA_PATH):
        raise UnsupportedFeatureError(
            f"{METADATA_PATH} cannot be set in the file-system catalog: the metadata is what it "
            f"finds tables by."
        )


def _answer(metadata: TableMetadata, version: Version) -> CommitTableResponse:
    return CommitTableResponse(metadata=metadata, metadata_location=version.location)
