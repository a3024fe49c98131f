"""An Iceberg table as its catalog holds it.

The one place where PyIceberg's metadata becomes the nouns of `rowlake.model.handle`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, cast

from rowlake.iceberg.capabilities import capabilities_of
from rowlake.model.handle import Ref, TableHandle
from rowlake.model.view import SnapshotInfo
from rowlake.secrets import without_passwords
from rowlake.storage.files import Storage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.refs import SnapshotRef
    from pyiceberg.table.snapshots import Snapshot

    from rowlake.model.format import Capabilities, Format
    from rowlake.model.names import Identifier


@dataclass(frozen=True)
class IcebergHandle(TableHandle):
    """A table's metadata at one time, with what it takes to commit to it.

    `metadata_location` is None for a table that is staged: it is there only in this handle
    until the first commit creates it. `io_properties` open its files; `config` is what a REST
    catalog sent along.
    """

    identifier: Identifier
    catalog: Catalog
    metadata: TableMetadata
    metadata_location: str | None
    io_properties: Mapping[str, str]
    config: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        # The metadata's text is long, and all of these may hold secrets.
        return (
            f"IcebergHandle({self.name}, {without_passwords(self.metadata_location or 'staged')})"
        )

    @property
    def format(self) -> Format:
        """The Iceberg format; loaded at its first use, since metadata needs none of it."""
        from rowlake.iceberg.format import ICEBERG

        return ICEBERG

    @cached_property
    def storage(self) -> Storage:
        """The storage of the table's files."""
        return Storage(self.io_properties)

    @property
    def is_in_transaction(self) -> bool:
        """True where the catalog is a transaction's."""
        transaction = sys.modules.get("rowlake.catalog.transaction")
        return transaction is not None and transaction.holding(self) is not None

    @property
    def uuid(self) -> str:
        """The table's uuid."""
        return str(self.metadata.table_uuid)

    @property
    def location(self) -> str:
        """The table's folder, as the metadata has it."""
        return self.metadata.location

    @property
    def version(self) -> str | None:
        """The metadata file."""
        return self.metadata_location

    @property
    def format_version(self) -> int:
        """The version of the spec."""
        return self.metadata.format_version

    @property
    def can(self) -> Capabilities:
        """What the table may hold."""
        return capabilities_of(self.metadata.format_version)

    @property
    def last_updated_ms(self) -> int:
        """When the metadata were last changed."""
        return self.metadata.last_updated_ms

    @property
    def schema_id(self) -> int:
        """The current schema."""
        return self.metadata.current_schema_id

    @property
    def properties(self) -> Mapping[str, str]:
        """The table properties."""
        return self.metadata.properties

    @cached_property
    def refs(self) -> Mapping[str, Ref]:
        """The branches and tags by name."""
        return {name: ref_of(ref) for name, ref in self.metadata.refs.items()}

    @cached_property
    def snapshots(self) -> Sequence[SnapshotInfo]:
        """The snapshots that are kept, as the metadata lists them."""
        return tuple(snapshot_info(snapshot) for snapshot in self.metadata.snapshots)

    @property
    def current_snapshot_id(self) -> int | None:
        """The head of main."""
        return self.metadata.current_snapshot_id

    def to_pyiceberg(self) -> Table:
        """Return the table as PyIceberg's own object; its commits follow rowlake's rules."""
        from rowlake.catalog.guarded import GuardedCatalog

        if self.is_in_transaction:
            return self._pyiceberg_table(self.catalog)
        catalog = cast("Catalog", GuardedCatalog(self))
        return self._pyiceberg_table(catalog)

    def plain_pyiceberg(self) -> Table:
        """Return the table as an object for PyIceberg's own catalog methods."""
        return self._pyiceberg_table(self.catalog)

    def _pyiceberg_table(self, catalog: Catalog) -> Table:
        from pyiceberg.table import Table

        from rowlake.catalog.io import StorageFileIO

        return Table(
            self.identifier,
            self.metadata,
            self.metadata_location or "",
            StorageFileIO(dict(self.io_properties)),
            catalog,
            dict(self.config),
        )


def ref_of(ref: SnapshotRef) -> Ref:
    """Return the model's form of a branch or tag."""
    return Ref(
        ref.snapshot_id,
        str(getattr(ref.snapshot_ref_type, "value", ref.snapshot_ref_type)),
        ref.max_ref_age_ms,
        ref.max_snapshot_age_ms,
        ref.min_snapshots_to_keep,
    )


def snapshot_info(snapshot: Snapshot) -> SnapshotInfo:
    """Return the model's form of a snapshot."""
    summary = snapshot.summary
    return SnapshotInfo(
        snapshot_id=snapshot.snapshot_id,
        parent_id=snapshot.parent_snapshot_id,
        sequence_number=snapshot.sequence_number or 0,
        timestamp_ms=snapshot.timestamp_ms,
        manifest_list=snapshot.manifest_list,
        operation=summary.operation.value if summary else "",
        summary=dict(summary.additional_properties) if summary else {},
        schema_id=snapshot.schema_id,
        first_row_id=snapshot.first_row_id,
        added_rows=snapshot.added_rows,
    )
