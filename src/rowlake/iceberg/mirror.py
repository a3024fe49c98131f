"""An Iceberg table that mirrors a table of another format, in the same folder.

The mirror is of format version 3, since it has deletion vectors. Its metadata are version files
with a hint (`metadata/v3.metadata.json`, `metadata/version-hint.text`), which Java's HadoopTables
and every `register_table` read. Invariant: nobody removes files by a mirror: `gc.enabled` is false.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSchemaUpdate,
    AddSortOrderUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    AssignUUIDUpdate,
    RemovePropertiesUpdate,
    SetCurrentSchemaUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetLocationUpdate,
    SetPropertiesUpdate,
    TableUpdate,
    UpgradeFormatVersionUpdate,
)
from pyiceberg.transforms import IdentityTransform

from rowlake.catalog.backend import backend_of
from rowlake.catalog.folder import FolderCatalog
from rowlake.catalog.handle import IcebergHandle
from rowlake.errors import UnsupportedFeatureError
from rowlake.iceberg.metadata_files import from_nothing
from rowlake.iceberg.name_mapping import NAME_MAPPING
from rowlake.iceberg.schema import check_schema, schema_from_arrow, schema_from_iceberg
from rowlake.model.handle import MAIN
from rowlake.model.mirror import MIRROR_OF, MirrorDefinition, are_twins
from rowlake.model.schema import field_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.schema import Schema as IcebergSchema
    from pyiceberg.table.metadata import TableMetadata

    from rowlake.iceberg.refs import Updates
    from rowlake.model.handle import TableHandle
    from rowlake.model.schema import Schema

FORMAT_VERSION = 3
GC_ENABLED = "gc.enabled"
COMMENT = "comment"
_LAST_ADDED = -1
_FIRST_PARTITION_ID = 1000


def find_mirror(source: TableHandle) -> IcebergHandle | None:
    """Return the mirror in the folder of a table; None where the folder has no metadata."""
    catalog = FolderCatalog(source.location, source.catalog.properties)
    backend = backend_of(catalog)
    if not backend.exists(source.identifier):
        return None
    found = backend.load(source.identifier, None)
    if not are_twins(source, found):
        raise UnsupportedFeatureError(
            f"Cannot mirror {source.name}: there is an Iceberg table at {source.location} that is "
            "no mirror of it. Nothing was changed."
        )
    return found


def stage_mirror(source: TableHandle, definition: MirrorDefinition) -> IcebergHandle:
    """Return a mirror that its first commit creates."""
    catalog = FolderCatalog(source.location, source.catalog.properties)
    schema = _schema(definition, None)
    metadata = from_nothing(
        (
            AssignUUIDUpdate(uuid=uuid.uuid4()),
            UpgradeFormatVersionUpdate(format_version=FORMAT_VERSION),
            SetLocationUpdate(location=source.location.rstrip("/")),
            AddSchemaUpdate(schema_=schema),
            SetCurrentSchemaUpdate(schema_id=_LAST_ADDED),
            AddPartitionSpecUpdate(spec=_spec(definition, schema, None)),
            SetDefaultSpecUpdate(spec_id=_LAST_ADDED),
            AddSortOrderUpdate(sort_order=UNSORTED_SORT_ORDER),
            SetDefaultSortOrderUpdate(sort_order_id=_LAST_ADDED),
            SetPropertiesUpdate(updates=_properties(definition, schema)),
        )
    )
    properties = dict(source.io_properties)
    return IcebergHandle(source.identifier, catalog, metadata, None, properties)


def redefine(mirror: IcebergHandle, definition: MirrorDefinition) -> Updates | None:
    """Return the updates that make a mirror look like a definition, None where it does."""
    metadata = mirror.metadata
    schema = _schema(definition, metadata)
    updates: list[TableUpdate] = []
    if schema.fields != metadata.schema().fields:
        updates += _schema_updates(metadata, schema)
    spec = _spec(definition, schema, metadata)
    if spec.fields != metadata.spec().fields:
        updates += _spec_updates(metadata, spec)
    wanted = _properties(definition, schema)
    changed = {k: v for k, v in wanted.items() if metadata.properties.get(k) != v}
    if changed:
        updates.append(SetPropertiesUpdate(updates=changed))
    return (tuple(updates), (AssertTableUUID(uuid=metadata.table_uuid),)) if updates else None


def release(mirror: IcebergHandle) -> Updates:
    """Return the updates that make a mirror a table which can be written."""
    removed = RemovePropertiesUpdate(removals=[MIRROR_OF, GC_ENABLED])
    return (removed,), (AssertTableUUID(uuid=mirror.metadata.table_uuid),)


def retire(handle: IcebergHandle, successor: str) -> Updates:
    """Return the updates that make a table the mirror of what takes its place."""
    metadata = handle.metadata
    wanted = SetPropertiesUpdate(updates={MIRROR_OF: successor, GC_ENABLED: "false"})
    head = metadata.refs.get(MAIN)
    same_head = AssertRefSnapshotId(ref=MAIN, snapshot_id=head.snapshot_id if head else None)
    return (wanted,), (AssertTableUUID(uuid=metadata.table_uuid), same_head)


def _schema(definition: MirrorDefinition, metadata: TableMetadata | None) -> IcebergSchema:
    """Return the schema of the mirror: with the ids of files, else with those that it gave."""
    known: Schema | None = definition.schema
    last = 0
    if not definition.has_ids:
        known = None if metadata is None else schema_from_iceberg(metadata.schema())
        last = 0 if metadata is None else metadata.last_column_id
    made = schema_from_arrow(definition.schema.arrow, known=known, last_id=last)
    check_schema(made, FORMAT_VERSION)
    return made.model_copy(update={"schema_id": 0 if metadata is None else _next_schema(metadata)})


def _next_schema(metadata: TableMetadata) -> int:
    return max(one.schema_id for one in metadata.schemas) + 1


def _schema_updates(metadata: TableMetadata, schema: IcebergSchema) -> list[TableUpdate]:
    for known in metadata.schemas:
        if known.fields == schema.fields:
            return [SetCurrentSchemaUpdate(schema_id=known.schema_id)]
    return [AddSchemaUpdate(schema_=schema), SetCurrentSchemaUpdate(schema_id=_LAST_ADDED)]


def _spec_updates(metadata: TableMetadata, spec: PartitionSpec) -> list[TableUpdate]:
    for known in metadata.partition_specs:
        if known.fields == spec.fields:
            return [SetDefaultSpecUpdate(spec_id=known.spec_id)]
    return [AddPartitionSpecUpdate(spec=spec), SetDefaultSpecUpdate(spec_id=_LAST_ADDED)]


def _spec(
    definition: MirrorDefinition, schema: IcebergSchema, metadata: TableMetadata | None
) -> PartitionSpec:
    """Return the spec of a definition; fields that mean the same keep their ids."""
    specs = [] if metadata is None else list(metadata.partition_specs)
    known = {one.source_id: one for spec in specs for one in spec.fields}
    last = max([_FIRST_PARTITION_ID - 1, *(one.field_id for one in known.values())])
    ids = ids_in(definition.schema, schema)
    fields = []
    for number in definition.partition_ids:
        source_id = ids[number]
        last += source_id not in known
        identity = known[source_id].field_id if source_id in known else last
        name = schema.find_column_name(source_id) or str(source_id)
        fields.append(PartitionField(source_id, identity, IdentityTransform(), name))
    spec_id = max([-1, *(spec.spec_id for spec in specs)]) + 1
    return PartitionSpec(*fields, spec_id=spec_id)


def ids_in(schema: Schema, mirrored: IcebergSchema) -> dict[int, int]:
    """Return the ids of a mirror's columns by those of the table's own."""
    there = schema_from_iceberg(mirrored)
    found = {}
    for path, one in schema.walk():
        twin = there.find(path, case_sensitive=True)
        if twin is not None:
            found[int(field_id(one) or 0)] = int(field_id(twin) or 0)
    return found


def _properties(definition: MirrorDefinition, schema: IcebergSchema) -> dict[str, str]:
    found = {MIRROR_OF: definition.uuid, GC_ENABLED: "false"}
    if definition.name_mapping is not None:
        ids = ids_in(definition.schema, schema)
        mapping = [_renumbered(one, ids) for one in json.loads(definition.name_mapping)]
        found[NAME_MAPPING] = json.dumps(mapping)
    if definition.comment is not None:
        found[COMMENT] = definition.comment
    return found


def _renumbered(one: Mapping[str, Any], ids: Mapping[int, int]) -> dict[str, Any]:
    """Return a field of a name mapping with the ids of the mirror."""
    below = [_renumbered(child, ids) for child in one.get("fields", ())]
    found = {"field-id": ids[one["field-id"]], "names": one["names"]}
    return {**found, "fields": below} if below else found


# --- an Iceberg table as the source of a mirror


def mirror_definition(handle: IcebergHandle) -> MirrorDefinition:
    """Return what a mirror in another format must know of an Iceberg table."""
    metadata = handle.metadata
    if NAME_MAPPING in metadata.properties:
        raise UnsupportedFeatureError(
            f"Cannot mirror {handle.name}: its property {NAME_MAPPING} says that it has files "
            "without field ids, by which the mirror would find their columns. Nothing was changed."
        )
    schema = schema_from_iceberg(metadata.schema())
    partition_ids, notes = _partition_ids(metadata)
    others = sorted(name for name in metadata.refs if name != "main")
    if others:
        notes = (*notes, f"branches and tags are not mirrored: {', '.join(others[:3])}")
    return MirrorDefinition(
        uuid=handle.uuid,
        schema=schema,
        partition_ids=partition_ids,
        has_vectors=handle.can.deletion_vectors,
        earlier_types=_earlier_types(metadata, schema),
        comment=metadata.properties.get(COMMENT),
        notes=notes,
    )


# Types whose values a log of texts holds without loss.
_PARTITION_TYPES = {"boolean", "int", "long", "date", "string"}


def _partition_ids(metadata: TableMetadata) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the columns that all files are partitioned by, as they are; none with a reason."""
    layouts = {
        tuple((f.source_id, str(f.transform)) for f in s.fields) for s in metadata.partition_specs
    }
    if layouts == {()}:
        return (), ()
    if len(layouts) > 1:
        return (), ("the mirror is not partitioned: the table has several partition specs",)
    fields = next(iter(layouts))
    schema = metadata.schema()
    top = {one.field_id: one for one in schema.fields}
    for number, transform in fields:
        if transform != "identity" or number not in top:
            shown = schema.find_column_name(number) or number
            return (), (
                f"the mirror is not partitioned: {transform} of {shown} has no counterpart",
            )
        if str(top[number].field_type) not in _PARTITION_TYPES:
            return (), (
                f"the mirror is not partitioned: {top[number].name} has a type that it "
                "cannot be partitioned by",
            )
    if len(fields) == len(top):
        return (), ("the mirror is not partitioned: all columns are partition columns",)
    return tuple(number for number, _ in fields), ()


def _earlier_types(metadata: TableMetadata, schema: Schema) -> dict[int, tuple[Any, ...]]:
    """Return the types that columns had in older schemas, oldest first."""
    found: dict[int, list[Any]] = {}
    for older in sorted(metadata.schemas, key=lambda one: one.schema_id):
        for number, one in schema_from_iceberg(older).by_id.items():
            now = schema.by_id.get(number)
            types = found.setdefault(number, [])
            if now is not None and not one.type.num_fields and one.type not in (now.type, *types):
                types.append(one.type)
    return {number: tuple(types) for number, types in found.items() if types}
