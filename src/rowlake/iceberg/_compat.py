"""What PyIceberg 0.12 gets wrong about metadata, mended in one place.

- It refuses to serialise v3 metadata and to upgrade a table to v3, and leaves out
  `next-row-id`, which v3 requires.
- It drops the defaults of fields when it gives a new table fresh ids.
- It knows no JSON form for nanosecond timestamps and nested defaults.
- Removing snapshots, it leaves gaps in the snapshot log (time travel then answers with the wrong
  snapshot), forgets the statistics of partitions, and cuts parents off.
- It compares the names of partition fields of all specs with columns, also where the source of a
  field was dropped: a column could then never be added again under its name.
- It loads classes that the properties of a table name (`py-io-impl`,
  `write.py-location-provider.impl`): whoever writes a table runs code where it is loaded. What
  rowlake calls does not (`without_code_of_tables`); what users call themselves is left alone.

The private names of PyIceberg's that this room uses are here too, each behind a function.
Each mend replaces or adds to a name of PyIceberg's; `tests/unit/catalog/test_compat.py` fails
when one of these names moves, or when a mend is no longer needed.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from pyiceberg import io as file_io
from pyiceberg import partitioning
from pyiceberg.conversions import from_json, to_json
from pyiceberg.schema import _SetFreshIDs
from pyiceberg.table import locations, update
from pyiceberg.table.metadata import TableMetadataV3
from pyiceberg.typedef import IcebergBaseModel
from pyiceberg.types import (
    ListType,
    MapType,
    NestedField,
    StructType,
    TimestampNanoType,
    TimestamptzNanoType,
)

from rowlake.model.properties import MOST, whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyiceberg.catalog import Catalog
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.schema import Schema
    from pyiceberg.table import CreateTableTransaction, Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.transforms import Transform
    from pyiceberg.types import IcebergType
    from sqlalchemy import ColumnElement

PREVIOUS_VERSIONS = "write.metadata.previous-versions-max"
# rowlake's own file access, by the name that PyIceberg loads it by.
OWN_FILE_IO = "rowlake.catalog.io.StorageFileIO"
# Types whose defaults stay in their JSON form, since no Python value holds them.
KEPT_AS_JSON = (TimestampNanoType, TimestamptzNanoType, StructType, ListType, MapType)


def install() -> None:
    """Mend PyIceberg; doing it again changes nothing."""
    TableMetadataV3.model_dump_json = _dump_v3  # type: ignore[method-assign, assignment]
    update.SUPPORTED_TABLE_FORMAT_VERSION = 3  # type: ignore[attr-defined]
    _SetFreshIDs.struct = _struct_with_defaults  # type: ignore[method-assign]
    for kind in KEPT_AS_JSON:
        to_json.register(kind, _as_it_is)
        from_json.register(kind, _as_it_is)
    update._apply_table_update.register(update.RemoveSnapshotsUpdate, _remove_snapshots)
    file_io._import_file_io = _file_io_of_catalog
    locations._import_location_provider = _location_provider_of_catalog
    partitioning.validate_partition_name = _validate_partition_name


# The class that the catalog names for its files, while rowlake calls PyIceberg.
_named_by_catalog: ContextVar[str | None] = ContextVar("named_by_catalog", default=None)
_LOCATION_PROVIDER = "write.py-location-provider.impl"
_PYICEBERGS_OWN = frozenset(name for names in file_io.SCHEMA_TO_FILE_IO.values() for name in names)
_import_file_io = file_io._import_file_io
_import_location_provider = locations._import_location_provider


@contextmanager
def without_code_of_tables(catalog: Catalog) -> Iterator[None]:
    """Load no class in this block that a table names; those that the catalog names are fine."""
    before = _named_by_catalog.set(str(catalog.properties.get(file_io.PY_IO_IMPL) or OWN_FILE_IO))
    try:
        yield
    finally:
        _named_by_catalog.reset(before)


def _file_io_of_catalog(io_impl: str, properties: dict[str, Any]) -> file_io.FileIO | None:
    own = _named_by_catalog.get()
    if own is not None and io_impl not in _PYICEBERGS_OWN:
        return _import_file_io(own, properties)
    return _import_file_io(io_impl, properties)


def _location_provider_of_catalog(
    location_provider_impl: str, table_location: str, table_properties: dict[str, Any]
) -> locations.LocationProvider | None:
    if _named_by_catalog.get() is None:
        return _import_location_provider(location_provider_impl, table_location, table_properties)
    others = {key: value for key, value in table_properties.items() if key != _LOCATION_PROVIDER}
    return locations.load_location_provider(table_location, others)


_validate_name = partitioning.validate_partition_name


def _validate_partition_name(
    field_name: str,
    partition_transform: Transform[Any, Any],
    source_id: int,
    schema: Schema,
    partition_names: set[str],
) -> None:
    """Check a partition field's name as Java does: not where its source is no column any more."""
    if schema.find_column_name(source_id) is not None:
        _validate_name(field_name, partition_transform, source_id, schema, partition_names)
    elif field_name in partition_names:
        raise ValueError(f"Partition name has to be unique: {field_name}")


def metadata_after(
    base: TableMetadata, updates: Sequence[update.TableUpdate], base_location: str | None
) -> TableMetadata:
    """Return the metadata after updates; both share what did not change.

    PyIceberg's `update_table_metadata`, without the copy of every snapshot at its end.
    """
    context = update._TableMetadataUpdateContext()
    after = base
    for each in updates:
        after = update._apply_table_update(each, after, context)
    if context.has_changes():
        if base_location:
            # PyIceberg raises a bare ValueError for what is no number.
            whole_number(after.properties, PREVIOUS_VERSIONS, 1, least=-MOST)
            after = update._update_table_metadata_log(after, base_location, base.last_updated_ms)
        if base.last_updated_ms == after.last_updated_ms:
            after = after.model_copy(update={"last_updated_ms": time.time_ns() // 1_000_000})
    # What others wrote into the table stays as it is; only what these updates change is checked.
    if after.schema() != base.schema() or after.spec() != base.spec():
        after.spec().check_compatible(after.schema())
    if after.schema() != base.schema() or after.sort_order() != base.sort_order():
        after.sort_order().check_compatible(after.schema())
    return after


def next_row_id(metadata: TableMetadata) -> int | None:
    """Return the first row id not yet given (spec, Row Lineage); None below v3.

    A table without the field has it at the end of what its snapshots took: 0 for a fresh table
    and for one just upgraded.
    """
    if metadata.format_version < 3:
        return None
    known = getattr(metadata, "next_row_id", None)
    taken = (
        snapshot.first_row_id + (snapshot.added_rows or 0)
        for snapshot in metadata.snapshots
        if snapshot.first_row_id is not None
    )
    return known if known is not None else max(taken, default=0)


def rest_session(catalog: Catalog) -> Any:
    """Return the HTTP session of a REST catalog, with its authorisation."""
    return catalog._session  # type: ignore[attr-defined]


def rest_offers(catalog: Catalog, endpoint: str) -> bool:
    """Return whether a REST server has an endpoint; True where it does not say which it has."""
    from pyiceberg.catalog.rest import DEFAULT_ENDPOINTS, VIEW_ENDPOINTS, Endpoint

    offered = frozenset(catalog._supported_endpoints)  # type: ignore[attr-defined]
    said_nothing = offered in (DEFAULT_ENDPOINTS, DEFAULT_ENDPOINTS | VIEW_ENDPOINTS)
    return said_nothing or Endpoint.from_string(endpoint) in offered


def sql_row(catalog: SqlCatalog, namespace: str, table: str, location: str) -> dict[str, Any]:
    """Return the row of a new table, as the layout of this database wants it."""
    return catalog._create_table_row(namespace, table, location)


def sql_table_filter(catalog: SqlCatalog) -> list[ColumnElement[bool]]:
    """Return the conditions that leave out views, where the layout can tell them apart."""
    condition = catalog._iceberg_type_filter()
    return [] if condition is None else [condition]


def staged_table(transaction: CreateTableTransaction) -> Table:
    """Return the table that a transaction is about to create."""
    return transaction._table


def _dump_v3(self: TableMetadataV3, **options: Any) -> str:
    whole = self.model_copy(update={"next_row_id": next_row_id(self)})
    return IcebergBaseModel.model_dump_json(whole, **options)


def _struct_with_defaults(
    self: _SetFreshIDs, struct: StructType, field_results: list[Callable[[], IcebergType]]
) -> StructType:
    # All ids of one level come before those below it.
    new_ids = [self._get_and_increment(field.field_id) for field in struct.fields]
    fields = [
        NestedField(
            new_id,
            field.name,
            result(),
            required=field.required,
            doc=field.doc,
            initial_default=field.initial_default,
            write_default=field.write_default,
        )
        for new_id, field, result in zip(new_ids, struct.fields, field_results, strict=True)
    ]
    return StructType(*fields)


def _as_it_is(_: IcebergType, value: Any) -> Any:
    return value


def _remove_snapshots(
    removal: update.RemoveSnapshotsUpdate, base: TableMetadata, context: Any
) -> TableMetadata:
    """Remove snapshots with their refs and statistics; ids that are not there are passed over.

    Spec, Table Metadata: log entries before one of a removed snapshot go too, since the times
    between would be told wrong.
    """
    gone = set(removal.snapshot_ids)
    log = base.snapshot_log
    ends = [at for at, entry in enumerate(log) if entry.snapshot_id in gone]
    context.add_update(removal)
    is_cut = base.current_snapshot_id in gone
    return base.model_copy(
        update={
            "snapshots": [one for one in base.snapshots if one.snapshot_id not in gone],
            "snapshot_log": log[ends[-1] + 1 :] if ends else log,
            "refs": {name: ref for name, ref in base.refs.items() if ref.snapshot_id not in gone},
            "current_snapshot_id": None if is_cut else base.current_snapshot_id,
            "statistics": [one for one in base.statistics if one.snapshot_id not in gone],
            "partition_statistics": [
                one for one in base.partition_statistics if one.snapshot_id not in gone
            ],
        }
    )
