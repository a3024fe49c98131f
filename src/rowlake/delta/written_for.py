"""Whether files that were written for one definition of a table fit a newer one.

They do where the table got columns at its end that may be null and have no rules: files without
them read as nulls. Properties of users say nothing about files; Delta's own may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.delta.column_mapping import MOST_ID
from rowlake.delta.schema import COLUMN_ID, PHYSICAL_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.delta.metadata import Metadata

_PLAIN = {COLUMN_ID, PHYSICAL_NAME, "comment"}


def takes_files_of(schema: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    """Return whether files of a schema are files of another one."""
    before, now = known["fields"], schema["fields"]
    if now[: len(before)] != before:
        return False
    added = now[len(before) :]
    # Elements of lists and maps are numbered after all columns: a new one would take their number.
    return not added or (all(map(_is_plain, added)) and not _has_elements(known))


def _is_plain(field: Mapping[str, Any]) -> bool:
    carried = set(field.get("metadata") or ())
    return bool(field["nullable"]) and isinstance(field["type"], str) and carried <= _PLAIN


def _has_elements(kind: Any) -> bool:
    if not isinstance(kind, dict):
        return False
    if kind.get("type") != "struct":
        return True
    return any(_has_elements(field["type"]) for field in kind["fields"])


def rules_of(metadata: Metadata) -> dict[str, str]:
    """Return the properties that files have to keep to."""
    return {
        name: value
        for name, value in metadata.configuration.items()
        if name.startswith("delta.") and name != MOST_ID
    }
