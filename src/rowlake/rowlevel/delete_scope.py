"""Where equality deletes go: to the partitions that their keys name, or to the whole table.

Comes in: a table and key columns. Goes out: the specs in which the deletes are written. Equality
deletes of a partitioned spec apply to data files of that spec and partition alone (spec, Scan
Planning), so:

- where every spec with data files partitions by key columns alone, the deletes are written once
  per such spec, by partition: readers then match a data file with few keys;
- else they are written in an unpartitioned spec and apply to the whole table. A table that has no
  such spec gets one, which no data file uses, in the same commit.

Deletes by partition are also what other programs handle best: Iceberg Java's removal of dangling
deletes (an option of its compaction) takes those of a spec without data files for dangling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.errors import CommitConflictError, InvalidStatementError
from rowlake.model.metadata_change import AddSpec
from rowlake.model.partition import PartitionSpec
from rowlake.model.predicate import TRUE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowlake.model.format import Payload
    from rowlake.model.handle import TableHandle
    from rowlake.model.view import TableView
    from rowlake.storage.files import Storage

SCOPES = ("auto", "partition", "global")


@dataclass(frozen=True)
class DeleteScope:
    """The specs in which deletes are written; `added` is one that the table does not have yet."""

    specs: tuple[PartitionSpec, ...]
    added: PartitionSpec | None = None

    @property
    def is_global(self) -> bool:
        """True where the deletes apply to the whole table."""
        return self.specs[0].is_unpartitioned


def delete_scope(
    view: TableView, field_ids: tuple[int, ...], storage: Storage, asked: str = "auto"
) -> DeleteScope:
    """Return where deletes by these columns go; `asked` is one of `SCOPES`."""
    if asked not in SCOPES:
        raise InvalidStatementError(
            f"Unknown scope {asked!r} of deletes (expected one of: {', '.join(SCOPES)})."
        )
    used = _used_specs(view, storage)
    undetermined = [spec for spec in used if not _is_determined(spec, field_ids)]
    if asked != "global" and not undetermined:
        return DeleteScope(tuple(used))
    if asked == "partition":
        names = ", ".join(".".join(view.schema.paths.get(each, ("?",))) for each in field_ids)
        raise InvalidStatementError(
            f"Cannot write deletes of {view.name} by partition: its partitions do not follow from "
            f"{names}. Choose keys that hold every partition column, or write them globally."
        )
    return _global_scope(view)


def _used_specs(view: TableView, storage: Storage) -> list[PartitionSpec]:
    """Return the specs that data files have, and the one that new files get."""
    if len(view.specs) == 1 or view.snapshot is None:
        return [view.spec]
    found = {view.default_spec_id, *view.format.list_files(view, TRUE, storage).data_spec_ids}
    return [view.specs[each] for each in sorted(found)]


def _is_determined(spec: PartitionSpec, field_ids: tuple[int, ...]) -> bool:
    """Return whether a key names one partition; one of no partitions belongs to the whole table."""
    sources = {field.source_id for field in spec.fields if field.transform != "void"}
    return bool(sources) and sources <= set(field_ids)


def _global_scope(view: TableView) -> DeleteScope:
    whole = [spec for spec in view.specs.values() if spec.is_unpartitioned]
    if whole:
        return DeleteScope((min(whole, key=lambda spec: (len(spec.fields), spec.spec_id)),))
    added = PartitionSpec(max(view.specs) + 1)
    return DeleteScope((added,), added)


def scope_updates(
    scopes: Sequence[DeleteScope], view: TableView
) -> Callable[[TableHandle], Payload | None]:
    """Return what lands before the deletes: the spec that they need, if it is not there.

    Refuses to go on where a spec came meanwhile: data files of it may hold rows that the deletes
    do not reach.
    """
    added = next((scope.added for scope in scopes if scope.added), None)
    by_partition = any(not scope.is_global for scope in scopes)

    def updates(handle: TableHandle) -> Payload | None:
        now = handle.view().specs
        other = now.get(added.spec_id) if added else None
        is_there = other is not None and other.is_unpartitioned  # by another writer
        known = {*view.specs, added.spec_id} if added and is_there else set(view.specs)
        if now.keys() != known and (by_partition or (added and not is_there)):
            raise CommitConflictError(
                "equality deletes", handle.name, "its partition spec was changed meanwhile"
            )
        if added is None or is_there:
            return None
        return handle.format.alter(handle, AddSpec(added))

    return updates
