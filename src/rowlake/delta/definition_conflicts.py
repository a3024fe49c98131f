"""Whether files that were written for one definition of a table may land in a later one.

They may where nothing that the other writer changed has to do with what files hold: columns that
were added at the end and may be null (files without them have nulls there), properties of the log,
and properties that are not Delta's. Anything else is a conflict: the operation is planned again, or
fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowlake.delta.column_rules import without_marks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.delta.metadata import Metadata
    from rowlake.delta.protocol import Protocol

# Properties and features that say nothing about what files hold.
_HARMLESS_PROPERTIES = frozenset(
    {
        "delta.checkpointInterval",
        "delta.checkpointPolicy",
        "delta.checkpoint.writeStatsAsJson",
        "delta.checkpoint.writeStatsAsStruct",
        "delta.columnMapping.maxColumnId",
        "delta.deletedFileRetentionDuration",
        "delta.enableExpiredLogCleanup",
        "delta.logRetentionDuration",
        "delta.setTransactionRetentionDuration",
    }
)
_HARMLESS_FEATURES = frozenset(
    {"clustering", "domainMetadata", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
)
_HARMLESS_METADATA = frozenset(
    {"comment", "delta.columnMapping.id", "delta.columnMapping.physicalName"}
)


def find_conflict(
    before: tuple[Metadata, Protocol], after: tuple[Metadata, Protocol], *, moves_marks: bool
) -> str | None:
    """Return what another writer changed that files written before do not fit, None if nothing.

    `moves_marks`: the files hold new values of identity columns, so their marks must not move.
    """
    schema, known = after[0].schema, before[0].schema
    if schema != known and not moves_marks:
        schema, known = without_marks(schema), without_marks(known)
    has_same_parts = after[0].partition_columns == before[0].partition_columns
    if not has_same_parts or not _only_adds(known, schema):
        return "another writer changed the table's schema"
    if not _is_harmless(before[0].configuration, after[0].configuration):
        return "another writer changed the table's properties"
    if not _is_raised_harmlessly(before[1], after[1]):
        return "another writer changed the table's protocol"
    return None


def _only_adds(known: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Return whether a schema has only new, plain columns at its end, which may be null."""
    old, new = list(known["fields"]), list(now["fields"])
    if old != new[: len(old)]:
        return False
    added = new[len(old) :]
    # Elements of lists and maps are numbered after all columns: a new one would take their number.
    return not added or (all(map(_is_plain, added)) and not _has_elements(known))


def _is_plain(field: Mapping[str, Any]) -> bool:
    carried = set(field.get("metadata") or ())
    may_be_null = field.get("nullable", True)
    return may_be_null and isinstance(field["type"], str) and carried <= _HARMLESS_METADATA


def _has_elements(kind: Any) -> bool:
    if not isinstance(kind, dict):
        return False
    if kind.get("type") != "struct":
        return True
    return any(_has_elements(field["type"]) for field in kind["fields"])


def _is_harmless(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    changed = {name for name, _ in before.items() ^ after.items()}
    return all(one in _HARMLESS_PROPERTIES or not one.startswith("delta.") for one in changed)


def _is_raised_harmlessly(before: Protocol, after: Protocol) -> bool:
    if before == after:
        return True
    gained = set(after.features) - set(before.features)
    has_lists = before.writer_version == after.writer_version == 7
    return (
        has_lists and set(before.features) <= set(after.features) and (gained <= _HARMLESS_FEATURES)
    )
