"""A Delta table that mirrors a table of another format, in the same folder.

Files carry the field ids of the other format, so columns are mapped by `id`. A physical name is
given once and kept, whatever the column is called later. Invariant: nobody else writes a mirror,
nor removes files by it: its protocol lists a writer feature that only mirrors have, which VACUUM
of Delta on Spark checks too.
"""

from __future__ import annotations

import itertools
import json
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.delta import type_widening
from rowlake.delta.actions import Actions
from rowlake.delta.column_mapping import MODE, MOST_ID, fields_in
from rowlake.delta.commit_file import validate_storage
from rowlake.delta.definition import definition_actions
from rowlake.delta.features import MIRROR_FEATURE, needed_features, protocol_for
from rowlake.delta.handle import DeltaHandle
from rowlake.delta.load import folder_of, load_path
from rowlake.delta.log_files import LOG_FOLDER, LogFiles, Segment, list_log
from rowlake.delta.metadata import Metadata
from rowlake.delta.new_schema import delta_schema
from rowlake.delta.new_version import NewVersion, Saying, new_token, new_version, token_text
from rowlake.delta.operations import Told
from rowlake.delta.schema import COLUMN_ID, PHYSICAL_NAME
from rowlake.delta.state import PendingState
from rowlake.errors import UnsupportedFeatureError
from rowlake.model.mirror import MIRROR_OF, MirrorDefinition, are_twins
from rowlake.model.schema import INITIAL_DEFAULT, children, field_id
from rowlake.storage.files import Storage
from rowlake.storage.filesystems import io_properties
from rowlake.storage.locations import join

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.delta.protocol import Protocol
    from rowlake.model.handle import TableHandle

VECTORS = "delta.enableDeletionVectors"


def find_mirror(source: TableHandle) -> DeltaHandle | None:
    """Return the mirror in the folder of a table; None where the folder has no log."""
    folder = folder_of(source.location)
    storage = Storage(io_properties(source.catalog.properties))
    if list_log(folder, storage).is_empty:
        return None
    found = load_path(source.catalog, source.identifier, folder)
    if not are_twins(source, found):
        raise UnsupportedFeatureError(
            f"Cannot mirror {source.name}: there is a Delta table at {folder} that is no mirror of "
            "it. Nothing was changed."
        )
    return found


def stage_mirror(source: TableHandle, definition: MirrorDefinition) -> DeltaHandle:
    """Return a mirror that its first commit creates."""
    folder = folder_of(source.location)
    properties = io_properties(source.catalog.properties)
    storage, log = Storage(properties), join(folder, LOG_FOLDER)
    validate_storage(folder, storage)
    metadata = _metadata(definition, None)
    changed = Actions(protocol=_protocol(metadata), metadata=metadata)
    pending = PendingState(folder, Segment(log, -1, None, ()), storage, changed)
    return DeltaHandle(
        source.identifier, source.catalog, folder, LogFiles(log), properties, pending
    )


def redefine(mirror: DeltaHandle, definition: MirrorDefinition) -> NewVersion | None:
    """Return the version that makes a mirror look like a definition, None where it does."""
    before = mirror.state.metadata
    metadata = _metadata(definition, before)
    if metadata == before:
        return None
    protocol = _protocol(metadata, mirror.state.protocol)
    is_new = protocol != mirror.state.protocol
    actions = definition_actions(metadata, protocol if is_new else None)
    saying = Saying(Told("CHANGE COLUMNS", {}, {}), token_text(new_token()))
    return new_version(mirror, actions, saying)


def release(mirror: DeltaHandle) -> NewVersion:
    """Return the version that makes a mirror a table which can be written."""
    before = mirror.state
    configuration = {k: v for k, v in before.metadata.configuration.items() if k != MIRROR_OF}
    writing = tuple(one for one in before.protocol.writer_features if one != MIRROR_FEATURE)
    protocol = replace(before.protocol, writer_features=writing)
    metadata = replace(before.metadata, configuration=configuration)
    saying = Saying(Told("CONVERT", {"source": "iceberg"}, {}), token_text(new_token()))
    return new_version(mirror, definition_actions(metadata, protocol), saying)


def retire(handle: DeltaHandle, successor: str) -> NewVersion:
    """Return the version that makes a table the mirror of what takes its place."""
    before = handle.state
    configuration = {**before.metadata.configuration, MIRROR_OF: successor}
    protocol = protocol_for({MIRROR_FEATURE}, before.protocol)
    metadata = replace(before.metadata, configuration=configuration)
    saying = Saying(Told("CONVERT", {"to": "iceberg"}, {}), token_text(new_token()))
    return new_version(handle, definition_actions(metadata, protocol), saying)


def _protocol(metadata: Metadata, before: Protocol | None = None) -> Protocol:
    features = needed_features(metadata.schema, metadata.configuration)
    return protocol_for({*features, MIRROR_FEATURE}, before)


def _metadata(definition: MirrorDefinition, before: Metadata | None) -> Metadata:
    schema = _schema(definition, _known_names(before))
    names = {one["metadata"][COLUMN_ID]: one["name"] for one in schema["fields"]}
    known = dict(before.configuration) if before else {}
    most = max([int(known.get(MOST_ID, 0)), *(_id(one) for one in fields_in(schema))])
    has_changes = any(type_widening.CHANGES in one["metadata"] for one in fields_in(schema))
    wanted = {
        **known,
        MODE: "id",
        MOST_ID: str(most),
        MIRROR_OF: definition.uuid,
        **({VECTORS: "true"} if definition.has_vectors else {}),
        **({type_widening.ENABLE: "true"} if has_changes else {}),
    }
    return Metadata(
        table_id=before.table_id if before else str(uuid.uuid4()),
        schema=schema,
        partition_columns=tuple(names[one] for one in definition.partition_ids),
        configuration=wanted,
        name=before.name if before else None,
        description=definition.comment,
        created_ms=before.created_ms if before else int(time.time() * 1000),
    )


def _id(field: Mapping[str, Any]) -> int:
    return int(field["metadata"][COLUMN_ID])


def _known_names(before: Metadata | None) -> dict[int, str]:
    """Return the physical names that a mirror has given, by field id."""
    if before is None:
        return {}
    return {_id(one): one["metadata"][PHYSICAL_NAME] for one in fields_in(before.schema)}


def _schema(definition: MirrorDefinition, known: Mapping[int, str]) -> dict[str, Any]:
    _validate_columns_given(definition)
    arrow = definition.schema.arrow
    made = delta_schema(pa.schema([_without_defaults(one) for one in arrow]))
    _identify_all(made["fields"], list(arrow), definition, known)
    return made


def _identify_all(
    described: list[dict[str, Any]],
    fields: list[pa.Field],
    definition: MirrorDefinition,
    known: Mapping[int, str],
) -> None:
    """Give the fields of a struct their ids and physical names: the name that files begin with.

    Readers that match names although they should match ids then find what was never renamed.
    """
    numbers = [int(field_id(one) or 0) for one in fields]
    taken = {known[one].lower() for one in numbers if one in known}
    for json_field, arrow_field, number in zip(described, fields, numbers, strict=True):
        name = json_field["name"]
        if number in known:
            physical = known[number]
        else:
            physical = f"{name}-{number}" if name.lower() in taken else name
            taken.add(physical.lower())
        json_field["metadata"] |= {COLUMN_ID: number, PHYSICAL_NAME: physical}
        _identify(json_field, arrow_field, definition, known)


def _validate_columns_given(definition: MirrorDefinition) -> None:
    """Refuse what a Delta table would read as something else."""
    for path, one in definition.schema.walk():
        if pa.types.is_timestamp(one.type) and one.type.unit == "ns":
            raise UnsupportedFeatureError(
                f"Cannot mirror column {'.'.join(path)}: Delta has no type of nanoseconds."
            )
        if INITIAL_DEFAULT in (one.metadata or {}):
            raise UnsupportedFeatureError(
                f"Cannot mirror column {'.'.join(path)}: files that lack it hold its default, and "
                "Delta tables read nulls there."
            )


def _without_defaults(field: pa.Field) -> pa.Field:
    """Return a column without the default of new rows: nobody writes rows to a mirror."""
    kept = {k: v for k, v in (field.metadata or {}).items() if not k.endswith(b"-default")}
    return field.with_metadata(kept)


def _identify(
    json_field: dict[str, Any],
    arrow_field: pa.Field,
    definition: MirrorDefinition,
    known: Mapping[int, str],
) -> None:
    """Note the types that a field had, and identify those below it."""
    number = int(field_id(arrow_field) or 0)
    metadata = json_field["metadata"]
    changes = _type_changes(definition.earlier_types.get(number, ()), json_field["type"])
    if changes:
        metadata[type_widening.CHANGES] = changes
    _identify_below(json_field["type"], arrow_field, definition, known)


def _identify_below(
    kind: Any, arrow_field: pa.Field, definition: MirrorDefinition, known: Mapping[int, str]
) -> None:
    if not isinstance(kind, dict):
        return
    below = children(arrow_field.type)
    if kind["type"] == "struct":
        _identify_all(kind["fields"], below, definition, known)
        return
    keys = ("elementType",) if kind["type"] == "array" else ("keyType", "valueType")
    for key, child in zip(keys, below, strict=True):
        number = field_id(child)
        if number in definition.earlier_types:
            raise UnsupportedFeatureError(
                f"Cannot mirror {arrow_field.name}: the type of its elements was widened."
            )
        _identify_below(kind[key], child, definition, known)


def _type_changes(earlier: tuple[pa.DataType, ...], now: Any) -> list[dict[str, Any]]:
    """Return the widenings of a column, oldest first, as Delta notes them."""
    names = [delta_schema(pa.schema([pa.field("x", one)]))["fields"][0]["type"] for one in earlier]
    steps = [*names, now]
    return [{"fromType": before, "toType": after} for before, after in itertools.pairwise(steps)]


# --- a Delta table as the source of a mirror


def mirror_definition(handle: DeltaHandle) -> MirrorDefinition:
    """Return what a mirror in another format must know of a Delta table."""
    state = handle.state
    columns = handle.columns_of(state)
    is_mapped = state.metadata.column_mapping != "none"
    _validate_columns(handle, is_mapped=is_mapped)
    # A table that was switched to mapping has files without ids, under the names of then.
    mode, names = state.metadata.column_mapping, columns.file_names.values()
    all_have_ids = mode == "id" or (is_mapped and all(one.startswith("col-") for one in names))
    return MirrorDefinition(
        uuid=handle.uuid,
        schema=columns.schema,
        partition_ids=tuple(one.source_id for one in columns.spec.fields),
        has_vectors=True,
        has_ids=is_mapped,
        name_mapping=None if all_have_ids else columns.name_mapping.text,
        earlier_types=_earlier_types(state.metadata, handle.name),
        comment=state.metadata.description,
    )


def _validate_columns(handle: DeltaHandle, *, is_mapped: bool) -> None:
    schema = handle.columns_of(handle.state).schema
    for path, one in schema.walk():
        kind = one.type
        if pa.types.is_null(kind):
            raise _refused(handle, path, "it has the type void, which files do not hold")
        if is_mapped and (pa.types.is_list(kind) or pa.types.is_map(kind)):
            cause = (
                "columns are mapped, and Delta's files give no ids to elements of arrays and maps, "
                "by which Iceberg finds them"
            )
            raise _refused(handle, path, cause)


def _refused(handle: DeltaHandle, path: tuple[str, ...], cause: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"Cannot mirror {handle.name}: column {'.'.join(path)}: {cause}. Nothing was changed."
    )


def _earlier_types(metadata: Metadata, name: str) -> dict[int, tuple[pa.DataType, ...]]:
    """Refuse types that were widened: files hold the narrower ones."""
    for one in fields_in(metadata.schema):
        changes = (one.get("metadata") or {}).get(type_widening.CHANGES)
        if changes:
            raise UnsupportedFeatureError(
                f"Cannot mirror {name}: the type of {one['name']} was widened "
                f"({json.dumps(changes)[:120]}). Nothing was changed."
            )
    return {}
