"""The first version of a clone: the definition and the files of a version of another table.

A shallow clone refers to the files of its source by absolute paths, files of deletion vectors
included. A deep clone has copies of them; `copies_of` says from where to where. Rows of a clone get
ids of their own where the source tracks rows.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.delta import clustering
from rowlake.delta.actions import FILES, domain_action, with_columns
from rowlake.delta.add_actions import same_actions
from rowlake.delta.definition import Defined, definition_actions
from rowlake.delta.features import (
    asked_of,
    needed_features,
    protocol_for,
    validate_asked,
    validate_known,
)
from rowlake.delta.paths import paths_of
from rowlake.delta.row_id_backfill import numbered
from rowlake.delta.row_tracking import (
    ROW_ID_COLUMN,
    ROW_VERSION_COLUMN,
    is_tracked,
    mark_action,
    with_row_tracking,
)
from rowlake.delta.times import SINCE, SINCE_TIME
from rowlake.delta.touched_files import TouchedFiles
from rowlake.delta.vectors import descriptor_of, vector_columns
from rowlake.errors import InvalidStatementError
from rowlake.model.files import INLINE_PREFIX
from rowlake.storage.locations import join

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.delta.handle import DeltaHandle
    from rowlake.delta.state import LogState

_VECTOR = ("storage_type", "vector_path", "vector_offset", "vector_size", "vector_cardinality")


@dataclass(frozen=True)
class Cloned:
    """What is cloned: a version of a table, its files with statistics, its definition."""

    source: DeltaHandle
    state: LogState
    files: pa.Table
    defined: Defined
    row_count: int = 0  # where rows are tracked


def clone_of(source: DeltaHandle, version: int, properties: Mapping[str, str]) -> Cloned:
    """Return what a clone of a version has; properties that are given win over the source's."""
    source.need_snapshot(version)
    state = source.state_at(version)
    columns = source.columns_of(state)
    touched = TouchedFiles(state, columns, state.files["location"].to_pylist())
    files = touched.with_stats(touched.files)
    defined = _defined(state, properties, source.name)
    if not is_tracked(defined.protocol, defined.metadata):
        return Cloned(source, state, files, defined)
    counts = touched.record_counts(touched.files)
    rows = int(pc.sum(counts).as_py() or 0)
    return Cloned(source, state, numbered(files, counts, 0, 0), defined, rows)


def _defined(state: LogState, given: Mapping[str, str], table: str) -> Defined:
    asked = asked_of({str(key): str(value) for key, value in given.items()})
    before = state.metadata
    own = {SINCE, SINCE_TIME, ROW_ID_COLUMN, ROW_VERSION_COLUMN}
    kept = {key: one for key, one in before.configuration.items() if key not in own}
    configuration = with_row_tracking({**kept, **asked.configuration})
    validate_asked(configuration)
    metadata = replace(
        before,
        table_id=str(uuid.uuid4()),
        configuration=configuration,
        name=None,
        description=None,
        created_ms=int(time.time() * 1000),
    )
    if metadata.column_mapping != before.column_mapping:
        raise InvalidStatementError(
            f"Cannot clone {table} with another column mapping: its files depend on it."
        )
    features = asked.features | needed_features(metadata.schema, configuration)
    protocol = protocol_for(set(features), state.protocol, asked)
    validate_known(protocol, f"a clone of {table}")
    return Defined(metadata, protocol)


def first_actions(cloned: Cloned, files: pa.Table, folder: str) -> list[dict[str, Any]]:
    """Return the actions of the first version of a clone with these files, in a folder."""
    actions = definition_actions(cloned.defined.metadata, cloned.defined.protocol)
    columns = cloned.state.actions.domains.get(clustering.DOMAIN)
    if columns is not None:
        actions.append(domain_action(clustering.DOMAIN, columns))
    if cloned.row_count:
        actions.append(mark_action(cloned.row_count - 1))
    return [*actions, *same_actions(files, folder)]


def copies_of(cloned: Cloned, folder: str) -> dict[str, str]:
    """Return where each file of a clone is copied to, data and vector files alike."""
    places = cloned.files["location"].to_pylist()
    places += [one for one in _vector_places(cloned) if one is not None]
    return {one: _copy_of(one, cloned.source.folder, folder) for one in dict.fromkeys(places)}


def _copy_of(location: str, source: str, folder: str) -> str:
    """Return where a file is copied to: the same path below the folder, unless it has odd steps."""
    base = join(source, "")
    rest = location[len(base) :]
    is_plain = location.startswith(base) and not {"", ".", ".."} & set(rest.split("/"))
    return join(folder, rest if is_plain else f"{uuid.uuid4()}-{rest.rpartition('/')[2]}")


def located(cloned: Cloned, folder: str, copies: Mapping[str, str]) -> pa.Table:
    """Return the files of a clone where they are: at their copies, else where the source has them.

    Descriptors of vectors in files get paths that readers of the clone can follow.
    """
    files = cloned.files
    places = [copies.get(one, one) for one in files["location"].to_pylist()]
    paths = paths_of(pa.array(places, pa.string()), folder)
    moved = with_columns(files, {"location": pa.array(places, pa.string()), "path": paths})
    kept = {name: moved[name].to_pylist() for name in _VECTOR}
    for row, (place, described) in enumerate(_vectors(cloned)):
        if place is None:
            continue
        row_of = {**described, "location": copies.get(place, place)}
        found = descriptor_of(row_of, folder).json()
        kept["storage_type"][row] = found["storageType"]
        kept["vector_path"][row] = found["pathOrInlineDv"]
    return with_columns(
        moved, {name: pa.array(kept[name], FILES.field(name).type) for name in _VECTOR}
    )


def _vector_places(cloned: Cloned) -> list[str | None]:
    return [place for place, _ in _vectors(cloned)]


def _vectors(cloned: Cloned) -> list[tuple[str | None, dict[str, Any]]]:
    """Return for each file where its vector is, None without one in a file, and what it is."""
    files = cloned.files
    marked = pc.is_valid(files["storage_type"])
    if not pc.any(marked, min_count=0).as_py():
        return [(None, {})] * files.num_rows
    described = vector_columns(files.filter(marked), cloned.source.folder)
    names = ("content_offset", "content_size_in_bytes", "record_count", "location")
    values = [described[one].to_pylist() for one in names]
    rows = iter([dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)])
    found: list[tuple[str | None, dict[str, Any]]] = []
    for is_marked in marked.to_pylist():
        row = next(rows) if is_marked else {}
        place = row.get("location")
        is_file = place is not None and not place.startswith(INLINE_PREFIX)
        found.append((place if is_file else None, row))
    return found
