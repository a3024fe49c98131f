"""RESTORE: the next version has the files and the definition of an earlier one.

Files that the earlier version has and the head does not are added again, those of the head that it
does not have are removed; both by location and deletion vector. Its metadata comes back too, but
marks that only grow (column ids, identity columns) never fall, and neither does the protocol, so
that the versions in between stay readable.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.delta import clustering
from rowlake.delta.add_actions import remove_actions, same_actions
from rowlake.delta.definition import definition_actions
from rowlake.delta.features import (
    APPEND_ONLY,
    IN_COMMIT_TIMES,
    implied_features,
    protocol_for,
    validate_known,
)
from rowlake.delta.live_files import with_stats
from rowlake.delta.new_version import NewVersion, Saying, new_token, new_version, token_text
from rowlake.delta.operations import Told
from rowlake.delta.row_tracking import is_tracked
from rowlake.delta.state import file_keys
from rowlake.delta.times import SINCE, SINCE_TIME
from rowlake.delta.vectors import vector_columns
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError, shown
from rowlake.model.files import INLINE_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rowlake.delta.handle import DeltaHandle
    from rowlake.delta.metadata import Metadata
    from rowlake.delta.protocol import Protocol
    from rowlake.delta.state import LogState

MAX_COLUMN_ID = "delta.columnMapping.maxColumnId"
IDENTITY_MARK, IDENTITY_STEP = "delta.identity.highWaterMark", "delta.identity.step"
_THREADS = 16


@dataclass(frozen=True)
class RestoreTo:
    """The version to go back to; `timestamp` is what a user gave instead of it, for history.

    `ignore_missing_files` brings back what is left of a version whose files are gone in part.
    """

    version: int
    timestamp: str | None = None
    ignore_missing_files: bool = False


@dataclass(frozen=True)
class Restored:
    """The version that restores an earlier one, and what it does to files, in Delta's words."""

    payload: NewVersion
    metrics: Mapping[str, int]


def restore(handle: DeltaHandle, to: RestoreTo) -> Restored | None:
    """Return the version on top of the head that restores an earlier one; None for the head."""
    handle.need_snapshot(to.version)
    if to.version == handle.snapshot_version:
        return None
    head, old = handle.state, handle.state_at(to.version)
    _validate(handle, old)
    added, removed = _missing_in(old, head), _missing_in(head, old)
    _validate_removable(handle, removed)
    if not to.ignore_missing_files:
        _validate_present(handle, added, to.version)
    described = with_stats(added, old, handle.columns_of(old))
    protocol = _protocol(old, head)
    metadata = _metadata(old.metadata, handle)
    actions = [
        *definition_actions(metadata, None if protocol == head.protocol else protocol),
        *_domains(old, head),
        *remove_actions(removed, handle.folder, deleted_ms=int(time.time() * 1000)),
        *same_actions(described, handle.folder),
    ]
    metrics = {
        "numRestoredFiles": added.num_rows,
        "restoredFilesSize": _bytes(added),
        "numRemovedFiles": removed.num_rows,
        "removedFilesSize": _bytes(removed),
        "numOfFilesAfterRestore": old.files.num_rows,
        "tableSizeAfterRestore": _bytes(old.files),
    }
    version = None if to.timestamp is not None else to.version
    told = Told("RESTORE", {"version": version, "timestamp": to.timestamp}, metrics)
    saying = Saying(told, token_text(new_token()))
    return Restored(new_version(handle, actions, saying), metrics)


def _validate(handle: DeltaHandle, old: LogState) -> None:
    validate_known(_protocol(old, handle.state), handle.name)
    missing = pc.any(pc.is_null(old.files["base_row_id"]), min_count=0).as_py()
    if is_tracked(handle.state.protocol, handle.state.metadata) and missing:
        raise UnsupportedFeatureError(
            f"Cannot restore version {old.version} of {handle.name}: its rows have no ids, which "
            "the table feature rowTracking asks for since. Nothing was changed."
        )


def _validate_removable(handle: DeltaHandle, removed: pa.Table) -> None:
    if removed.num_rows and handle.state.metadata.is_set(APPEND_ONLY):
        raise UnsupportedFeatureError(
            f"Cannot remove rows of {handle.name}: its property {APPEND_ONLY} is true. "
            "Nothing was changed."
        )


def _missing_in(one: LogState, other: LogState) -> pa.Table:
    """Return the files of a version that another does not have with the same vector."""
    files = one.files
    is_there = pc.is_in(file_keys(files), value_set=_one(file_keys(other.files)))
    return files.filter(pc.invert(is_there))


def _validate_present(handle: DeltaHandle, files: pa.Table, version: int) -> None:
    places = sorted(set(_locations(files, handle.folder)))
    with ThreadPoolExecutor(_THREADS) as pool:
        found = list(pool.map(handle.storage.exists, places))
    gone = [place for place, is_there in zip(places, found, strict=True) if not is_there]
    if gone:
        raise InvalidStatementError(
            f"Cannot restore version {version} of {handle.name}: {len(gone):,} of its files are "
            f"gone, VACUUM may have deleted them: {shown(gone)}. Nothing was changed. Restore a "
            "later version, or what is left of this one with ignore_missing_files=True "
            "(spark.sql.files.ignoreMissingFiles=true)."
        )


def _locations(files: pa.Table, folder: str) -> Iterator[str]:
    yield from files["location"].to_pylist()
    marked = files.filter(pc.is_valid(files["storage_type"]))
    if marked.num_rows:
        places = vector_columns(marked, folder)["location"].to_pylist()
        yield from (one for one in places if not one.startswith(INLINE_PREFIX))


def _protocol(old: LogState, head: LogState) -> Protocol:
    """Return the head's protocol, with features that the old version has and the head dropped."""
    dropped = implied_features(old.protocol) - implied_features(head.protocol)
    return protocol_for(dropped, head.protocol) if dropped else head.protocol


def _metadata(old: Metadata, handle: DeltaHandle) -> Metadata:
    head, configuration = handle.state.metadata, dict(old.configuration)
    if old.is_set(IN_COMMIT_TIMES) and not head.is_set(IN_COMMIT_TIMES):
        # The commits in between do not tell their own time.
        configuration[SINCE] = str(handle.snapshot_version + 1)
        configuration[SINCE_TIME] = str(handle.times.of(handle.snapshot_version) + 1)
    if MAX_COLUMN_ID in configuration:
        marks = [one.configuration.get(MAX_COLUMN_ID, "0") for one in (old, head)]
        configuration[MAX_COLUMN_ID] = str(max(int(one) for one in marks if one.isdecimal()))
    schema = _with_marks(old.schema, head.schema)
    return replace(old, table_id=head.table_id, schema=schema, configuration=configuration)


def _with_marks(schema: Mapping[str, Any], head: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema whose identity columns go on after the values that the head has given."""
    given = {one["name"]: one.get("metadata") or {} for one in head["fields"]}
    fields = [_with_mark(one, given.get(one["name"], {})) for one in schema["fields"]]
    return {**schema, "fields": fields}


def _with_mark(field: Mapping[str, Any], head: Mapping[str, Any]) -> Mapping[str, Any]:
    own = field.get("metadata") or {}
    if IDENTITY_STEP not in own or IDENTITY_MARK not in head:
        return field
    marks = [int(one[IDENTITY_MARK]) for one in (own, head) if IDENTITY_MARK in one]
    last = max(marks) if int(own[IDENTITY_STEP]) > 0 else min(marks)
    return {**field, "metadata": {**own, IDENTITY_MARK: last}}


def _domains(old: LogState, head: LogState) -> list[dict[str, Any]]:
    """Return the domains that differ: users' own, and the clustering columns."""
    before, now = old.actions.domains, head.actions.domains
    found: list[dict[str, Any]] = []
    for name in sorted({*before, *now}):
        is_own = name == clustering.DOMAIN or not name.startswith("delta.")
        if is_own and before.get(name) != now.get(name):
            body = {"domain": name, "configuration": before.get(name, now.get(name))}
            found.append({"domainMetadata": {**body, "removed": name not in before}})
    return found


def _bytes(files: pa.Table) -> int:
    return int(pc.sum(files["size"]).as_py() or 0)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks()
