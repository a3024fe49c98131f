"""Symlink manifests: lists of a table's live files for engines that cannot read its log.

`_symlink_format_manifest/[column=value/]manifest` has one location per line, as Hive's symlink
input format reads it. They are rewritten whole by GENERATE, and after every commit where the
property `delta.compatibility.symlinkFormatManifest.enabled` is true. Such engines know no deletion
vectors, so a table that has any is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa

from rowlake.delta.partitions import HIVE_NULL
from rowlake.errors import UnsupportedFeatureError
from rowlake.storage.locations import join
from rowlake.storage.places import are_below_without_links

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.delta.state import LogState

FOLDER, FILE = "_symlink_format_manifest", "manifest"
ENABLED = "delta.compatibility.symlinkFormatManifest.enabled"
MODE = "symlink_format_manifest"


def is_enabled(state: LogState) -> bool:
    """Return whether manifests follow every commit."""
    return state.metadata.is_set(ENABLED)


def write_manifests(state: LogState) -> list[str]:
    """Write the manifests of a version, and delete those of partitions that it does not have.

    Raises UnsupportedFeatureError for a version with deletion vectors.
    """
    if state.files["storage_type"].null_count < state.files.num_rows:
        raise UnsupportedFeatureError(
            f"Cannot list the files of {state.table} for other engines: some have deletion "
            "vectors, whose deleted rows these would show. Run REORG TABLE … APPLY (PURGE) first."
        )
    root = join(state.table, FOLDER)
    texts = _texts(state)
    written = []
    for folder, lines in sorted(texts.items()):
        location = join(root, folder, FILE) if folder else join(root, FILE)
        state.storage.write(location, "".join(f"{one}\n" for one in lines).encode())
        written.append(location)
    _delete_others(state, root, set(written))
    return written


def _delete_others(state: LogState, root: str, written: set[str]) -> None:
    """Delete the manifests that were not written; what a link leads to stays."""
    listed = [one.location for one in state.storage.list(root)]
    stale = [one for one in listed if one not in written and one.endswith(f"/{FILE}")]
    places = pa.array(stale, pa.string())
    own = are_below_without_links(places, [state.table])
    state.storage.delete(places.filter(pa.array(own)).to_pylist())


def _texts(state: LogState) -> dict[str, list[str]]:
    """Return the lines of each manifest, by its folder."""
    names = state.metadata.partition_columns
    physical = _physical_names(state)
    found: dict[str, list[str]] = {} if names else {"": []}
    columns = (state.files["partition_values"].to_pylist(), state.files["location"].to_pylist())
    for values, location in zip(*columns, strict=True):
        given = dict(values or ())
        folder = "/".join(f"{_escaped(one)}={_value(given, physical[one])}" for one in names)
        found.setdefault(folder, []).append(_line(location))
    return found


def _physical_names(state: LogState) -> dict[str, str]:
    fields = {one["name"]: one.get("metadata") or {} for one in state.metadata.schema["fields"]}
    key = "delta.columnMapping.physicalName"
    return {one: str(fields.get(one, {}).get(key, one)) for one in state.metadata.partition_columns}


def _value(values: Mapping[str, str | None], name: str) -> str:
    value = values.get(name)
    return HIVE_NULL if value is None or value == "" else _escaped(value)


def _escaped(text: str) -> str:
    """Return a name as a folder of Hive has it."""
    return quote(text, safe=" !$&()+,-.;<>@_|~`")


def _line(location: str) -> str:
    return f"file:{location}" if location.startswith("/") else location
