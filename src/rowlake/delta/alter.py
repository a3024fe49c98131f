"""Changes of a table's definition: properties, a new definition, columns -> the next version.

A protocol is raised only by a property that asks for it. What Delta tables lack (branches, tags,
sort orders, other partition specs) is refused by name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rowlake.delta import clustering
from rowlake.delta.actions import domain_action
from rowlake.delta.add_actions import remove_actions
from rowlake.delta.column_mapping import MODE, mapped, mapping_mode
from rowlake.delta.column_rules import with_marks
from rowlake.delta.definition import definition_actions, new_definition
from rowlake.delta.features import (
    CONSTRAINTS,
    IN_COMMIT_TIMES,
    asked_of,
    needed_features,
    protocol_for,
    validate_asked,
)
from rowlake.delta.new_version import NewVersion, Saying, new_token, new_version, token_text
from rowlake.delta.operations import Told
from rowlake.delta.protocol import protocol_action
from rowlake.delta.restore import RestoreTo, restore
from rowlake.delta.row_id_backfill import backfill_actions
from rowlake.delta.row_tracking import ENABLE as ENABLE_ROW_TRACKING
from rowlake.delta.row_tracking import with_row_tracking
from rowlake.delta.times import SINCE, SINCE_TIME
from rowlake.delta.writable import validate_writable
from rowlake.errors import CommitConflictError, InvalidStatementError, UnsupportedFeatureError
from rowlake.model import metadata_change as changes
from rowlake.model.handle import MAIN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.delta.handle import DeltaHandle
    from rowlake.delta.metadata import Metadata
    from rowlake.delta.protocol import Protocol
    from rowlake.model.metadata_change import MetadataChange

_REFUSED = {
    changes.CreateRef: "branches or tags",
    changes.DropRef: "branches or tags",
    changes.MoveRef: "branches or tags",
    changes.FastForward: "branches or tags",
    changes.SetSortOrder: "sort order",
    changes.AddSpec: "partition specs beside the one",
}


def alter(handle: DeltaHandle, change: MetadataChange) -> NewVersion | None:
    """Return the version that a change makes, None where there is nothing to change."""
    validate_writable(handle)
    if type(change) in _REFUSED:
        raise UnsupportedFeatureError(
            f"Cannot change {handle.name}: Delta tables have no {_REFUSED[type(change)]}."
        )
    if isinstance(change, changes.SetProperties):
        return _set_properties(handle, change.properties)
    if isinstance(change, changes.UnsetProperties):
        return _unset_properties(handle, change.names)
    if isinstance(change, changes.AddConstraint):
        return _add_constraint(handle, change)
    if isinstance(change, changes.DropConstraint):
        return _drop_constraint(handle, change)
    if isinstance(change, changes.MoveMark):
        return _move_mark(handle, change)
    if isinstance(change, changes.SetClustering):
        return _cluster(handle, change)
    if isinstance(change, changes.Redefine):
        return _redefine(handle, change)
    if isinstance(change, changes.Rollback):
        return _roll_back(handle, change)
    return None  # a name mapping is made from the schema, and versions do not expire here


def _set_properties(handle: DeltaHandle, properties: Mapping[str, str]) -> NewVersion | None:
    given = {str(key): str(value) for key, value in properties.items()}
    metadata = handle.state.metadata
    asked = asked_of(given)
    if "format-version" in given:
        raise InvalidStatementError(
            "format-version is a property of Iceberg tables; a Delta table has "
            "delta.minReaderVersion and delta.minWriterVersion."
        )
    configuration = {**metadata.configuration, **asked.configuration}
    _validate_change(handle, metadata, configuration)
    configuration = _with_times(handle, metadata, configuration)
    schema = metadata.schema
    if mapping_mode(configuration) != "none" and metadata.column_mapping == "none":
        schema, configuration = mapped(schema, configuration, keeps_names=True)
    changed = replace(metadata, schema=schema, configuration=configuration)
    told = Told("SET TBLPROPERTIES", {"properties": given}, {})
    features = asked.features | needed_features(schema, configuration)
    protocol = protocol_for(set(features), handle.state.protocol, asked)
    if changed == metadata and protocol == handle.state.protocol:
        return None
    actions = definition_actions(changed, _if_new(handle, protocol))
    if changed.is_set(ENABLE_ROW_TRACKING) and not metadata.is_set(ENABLE_ROW_TRACKING):
        actions += backfill_actions(handle)
    return _version(handle, actions, told)


def _validate_change(
    handle: DeltaHandle, before: Metadata, configuration: Mapping[str, str]
) -> None:
    validate_asked(configuration)
    mode = mapping_mode(configuration)
    if mode != before.column_mapping and (before.column_mapping, mode) != ("none", "name"):
        raise UnsupportedFeatureError(
            f"Cannot change {MODE} of {handle.name} from {before.column_mapping} to {mode}: only "
            "none can become name."
        )


def _with_times(
    handle: DeltaHandle, before: Metadata, configuration: Mapping[str, str]
) -> dict[str, str]:
    """Return properties that say since when commits tell their own time, where that is new."""
    found = with_row_tracking(configuration)
    is_new = str(found.get(IN_COMMIT_TIMES, "false")).lower() == "true"
    if is_new and not before.is_set(IN_COMMIT_TIMES) and not handle.is_staged:
        found[SINCE] = str(handle.snapshot_version + 1)
        found[SINCE_TIME] = str(handle.times.of(handle.snapshot_version) + 1)
    return found


def _unset_properties(handle: DeltaHandle, names: tuple[str, ...]) -> NewVersion | None:
    metadata = handle.state.metadata
    left = {key: value for key, value in metadata.configuration.items() if key not in names}
    if left == dict(metadata.configuration):
        return None
    if MODE in names and metadata.column_mapping != "none":
        raise UnsupportedFeatureError(f"Cannot unset {MODE} of {handle.name}: files depend on it.")
    told = Told("UNSET TBLPROPERTIES", {"properties": list(names), "ifExists": True}, {})
    return _version(handle, definition_actions(replace(metadata, configuration=left)), told)


def _add_constraint(handle: DeltaHandle, change: changes.AddConstraint) -> NewVersion | None:
    metadata = handle.state.metadata
    key = CONSTRAINTS + change.name.lower()
    if key in {name.lower() for name in metadata.configuration}:
        raise InvalidStatementError(f"{handle.name} has a constraint {change.name} already.")
    _validate_head(handle, change.checked_at, "ADD CONSTRAINT")
    configuration = {**metadata.configuration, key: change.text}
    told = Told("ADD CONSTRAINT", {"name": change.name, "expr": change.text}, {})
    return metadata_version(handle, replace(metadata, configuration=configuration), told)


def _drop_constraint(handle: DeltaHandle, change: changes.DropConstraint) -> NewVersion | None:
    metadata = handle.state.metadata
    wanted = (CONSTRAINTS + change.name).lower()
    left = {key: one for key, one in metadata.configuration.items() if key.lower() != wanted}
    gone = [one for key, one in metadata.configuration.items() if key.lower() == wanted]
    if not gone:
        if change.if_exists:
            return None
        raise InvalidStatementError(f"{handle.name} has no constraint {change.name}.")
    said = {"name": change.name, "expr": gone[0], "existed": "true"}
    told = Told("DROP CONSTRAINT", said, {})
    return _version(handle, definition_actions(replace(metadata, configuration=left)), told)


def _move_mark(handle: DeltaHandle, change: changes.MoveMark) -> NewVersion | None:
    metadata = handle.state.metadata
    _validate_head(handle, change.checked_at, "SYNC IDENTITY")
    schema = with_marks(metadata.schema, {change.column: change.mark})
    told = Told("CHANGE COLUMN", {"column": change.column}, {})
    return metadata_version(handle, replace(metadata, schema=schema), told)


def _validate_head(handle: DeltaHandle, checked_at: int | None, act: str) -> None:
    """Refuse a change that is true of the rows of another version."""
    if handle.snapshot_version != checked_at:
        raise CommitConflictError(
            act, handle.name, "another writer changed the table meanwhile", retryable=True
        )


def _cluster(handle: DeltaHandle, change: changes.SetClustering) -> NewVersion | None:
    state = handle.state
    columns, domains = handle.columns_of(state), state.actions.domains
    wanted = clustering.physical_paths(change.columns, columns, state.metadata.configuration)
    if wanted == clustering.clustering_paths(domains):
        return None
    said = {
        "oldClusteringColumns": ",".join(clustering.clustering_names(domains, columns)),
        "newClusteringColumns": ",".join(".".join(one) for one in change.columns),
    }
    protocol = _if_new(handle, protocol_for(set(clustering.FEATURES), state.protocol))
    raised = [] if protocol is None else [{"protocol": protocol_action(protocol)}]
    domain = domain_action(clustering.DOMAIN, clustering.domain_text(wanted))
    return _version(handle, [*raised, domain], Told("CLUSTER BY", said, {}))


def _redefine(handle: DeltaHandle, change: changes.Redefine) -> NewVersion:
    state = handle.state
    defined = new_definition(change.definition, before=state.metadata, protocol=state.protocol)
    told = Told(
        "CREATE OR REPLACE TABLE",
        {
            "partitionBy": list(defined.metadata.partition_columns),
            "properties": dict(defined.metadata.configuration),
            "description": defined.metadata.description,
            "isManaged": False,
        },
        {},
    )
    actions = definition_actions(defined.metadata, _if_new(handle, defined.protocol))
    domains = dict(defined.domains)
    if clustering.clustering_paths(state.actions.domains):
        domains.setdefault(clustering.DOMAIN, clustering.domain_text([]))
    actions += [domain_action(name, text) for name, text in domains.items()]
    deleted_ms = defined.metadata.created_ms or 0
    actions += remove_actions(state.files, handle.folder, deleted_ms=deleted_ms)
    return _version(handle, actions, told, keeps_files=False)


def _roll_back(handle: DeltaHandle, change: changes.Rollback) -> NewVersion | None:
    if change.branch != MAIN:
        raise UnsupportedFeatureError(
            f"Cannot change {handle.name}: Delta tables have no branches or tags."
        )
    restored = restore(handle, RestoreTo(change.snapshot_id))
    return None if restored is None else restored.payload


def metadata_version(handle: DeltaHandle, metadata: Metadata, told: Told) -> NewVersion | None:
    """Return the version with another definition; its protocol has what the definition needs."""
    if metadata == handle.state.metadata:
        return None
    before = handle.state.metadata
    features = needed_features(metadata.schema, metadata.configuration)
    features -= needed_features(before.schema, before.configuration)
    protocol = protocol_for(features, handle.state.protocol)
    return _version(handle, definition_actions(metadata, _if_new(handle, protocol)), told)


def _if_new(handle: DeltaHandle, protocol: Protocol) -> Protocol | None:
    return None if protocol == handle.state.protocol else protocol


def _version(
    handle: DeltaHandle,
    actions: Sequence[Mapping[str, Any]],
    told: Told,
    *,
    keeps_files: bool = True,
) -> NewVersion:
    saying = Saying(told, token_text(new_token()))
    return new_version(handle, actions, saying, keeps_files=keeps_files)
