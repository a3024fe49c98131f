"""A change becomes the actions of a commit, on top of one head.

Comes in: a `Change` whose files are written, and the table at its head. Goes out: `Produced`. Data
files become adds, files that go become removes with the vector that they have, and a new vector is
a remove and an add of the same file (PROTOCOL.md, "Deletion Vectors"). Nothing is written here:
the commit is one file, which `swap` puts into the log unless its version is taken.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowlake.delta.add_actions import (
    Adding,
    RowIds,
    add_actions,
    cdc_actions,
    readd_actions,
    remove_actions,
)
from rowlake.delta.column_rules import MARKS_ONLY, with_marks, without_marks
from rowlake.delta.definition import definition_actions
from rowlake.delta.features import APPEND_ONLY, CHANGE_FEED, ROW_TRACKING
from rowlake.delta.new_version import NewVersion, Saying, altered, new_version, token_text
from rowlake.delta.operations import USER_METADATA, FileCounts, tags_of, told_of
from rowlake.delta.row_tracking import high_water_mark, is_tracked, mark_action
from rowlake.delta.touched_files import TouchedFiles
from rowlake.delta.vectors import descriptor_of
from rowlake.delta.written_for import rules_of, takes_files_of
from rowlake.errors import UnsupportedFeatureError
from rowlake.model.change import Operation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.delta.handle import DeltaHandle
    from rowlake.delta.metadata import Metadata
    from rowlake.delta.protocol import Protocol
    from rowlake.delta.vector_file import VectorDescriptor
    from rowlake.model.change import Change


# What replaces whole files: their rows are deletes, the new ones inserts, as readers find them.
_REPLACING = ("overwrite", "create")


@dataclass(frozen=True)
class Prepared:
    """What all attempts share: the definition that files were written for.

    `moves_marks`: the files hold new values of identity columns. `read_version` is that which a
    change of existing files was made from, None where there are new rows alone.
    """

    token: int
    metadata: Metadata
    protocol: Protocol
    written: tuple[str, ...] = ()
    moves_marks: bool = False
    read_version: int | None = None


@dataclass(frozen=True)
class Produced:
    """One attempt; a commit is one file, which is written when it is swapped in."""

    payload: NewVersion
    missing: tuple[str, ...]
    written: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


def outdated(handle: DeltaHandle, prepared: Prepared) -> str | None:
    """Return why files that were written for one definition cannot land in the table as it is."""
    metadata, before = handle.state.metadata, prepared.metadata
    schema, known = metadata.schema, before.schema
    if schema != known and not prepared.moves_marks:
        schema, known = without_marks(schema), without_marks(known)
    fits = takes_files_of(schema, known)
    if not fits or metadata.partition_columns != before.partition_columns:
        return "another writer changed the table's schema"
    if rules_of(metadata) != rules_of(before):
        return "another writer changed the table's properties"
    if handle.state.protocol != prepared.protocol:
        return "another writer changed the table's protocol"
    # What was deleted may be back, so what was made of the rows is no longer true.
    if prepared.read_version is not None and _is_restored(handle, prepared.read_version):
        return "another writer restored an earlier version of the table"
    return None


def _is_restored(handle: DeltaHandle, since: int) -> bool:
    versions = [one for one in handle.log.commits if since < one <= handle.snapshot_version]
    infos = (handle.commit_at(version).other.commit_info for version in versions)
    return any((info or {}).get("operation") == "RESTORE" for info in infos)


def read_version_of(change: Change) -> int | None:
    """Return the version that a change of existing files was made from; None for new rows alone."""
    touches = change.removed_data or change.added_deletes.num_rows or change.removed_deletes
    return change.requirements.starting_snapshot_id if touches else None


def produce(
    handle: DeltaHandle, change: Change, prepared: Prepared, first: NewVersion | None
) -> Produced:
    """Make the commit of a change on top of the table's head, after what lands `first`."""
    attempt = _Attempt(handle, change, first)
    return Produced(attempt.version(prepared.token), attempt.missing)


class _Attempt:
    """One change on one head."""

    def __init__(self, handle: DeltaHandle, change: Change, first: NewVersion | None) -> None:
        self.handle, self.change, self.first = handle, change, first
        self.base = handle if first is None else altered(handle, first)
        self.state = self.base.state
        self.columns = self.base.columns_of(self.state)
        self.is_change = change.operation is not Operation.REPLACE
        self.now = int(time.time() * 1000)
        self.new_vectors = _by_data_file(change.added_deletes)
        self.own = set(change.added_data["location"].to_pylist())
        self.live = TouchedFiles(self.state, self.columns, self._touched(), change.removed_deletes)

    def _touched(self) -> set[str]:
        return {*self.change.removed_data, *(self.new_vectors.keys() - self.own)}

    @property
    def removed(self) -> pa.Table:
        """The live files that go."""
        return self.live.at(self.change.removed_data)

    @property
    def missing(self) -> tuple[str, ...]:
        """What the change removes or deletes rows of, and the head does not have."""
        gone = self._touched() - self.live.locations
        keys = self.live.vector_keys
        gone |= {location for location, _ in self.change.removed_deletes - keys.keys()}
        # A vector that the new one was not made from would be lost.
        unknown = keys.keys() - self.change.removed_deletes
        gone |= {keys[key] for key in unknown if keys[key] in self.new_vectors}
        return tuple(sorted(gone))

    def version(self, token: int) -> NewVersion:
        """Return the commit."""
        self._validate_allowed()
        changed = self._changed_definition()
        first = () if self.first is None else self.first.definition
        if changed:  # a commit has one definition, and this one has all of the first
            first = tuple(one for one in first if "metaData" not in one)
        actions = [*self._created(), *first, *changed, *self._transaction()]
        actions += self._files()
        told = told_of(self.change, self.state.metadata, self._counts())
        saying = Saying(
            told,
            token_text(token),
            is_blind_append=not self._touched() and not first and not self._reads,
            user_metadata=self.change.properties.get(USER_METADATA),
            tags=self._tags,
            preserves_row_ids=not (self.change.added_data.num_rows and self._touched()),
        )
        return new_version(self.handle, actions, saying)

    @property
    def _reads(self) -> bool:
        return self.change.requirements.conflict_detection_filter is not None

    def _created(self) -> list[dict[str, Any]]:
        """Return the definition of a table that this commit creates."""
        if not self.handle.is_staged or self.first is not None:
            return []
        return definition_actions(self._definition, self.state.protocol)

    def _changed_definition(self) -> list[dict[str, Any]]:
        """Return the definition where the change makes another one of it."""
        is_new = self.handle.is_staged and self.first is None
        if is_new or self._definition == self.state.metadata:
            return []
        return definition_actions(self._definition)

    @property
    def _definition(self) -> Metadata:
        """The table's definition with the properties and the marks that the change sets."""
        metadata = self.state.metadata
        configuration = {**metadata.configuration, **self.change.table_properties}
        marks = {one.column: one.after for one in self.change.moved_marks}
        schema = with_marks(metadata.schema, marks) if marks else metadata.schema
        return replace(metadata, configuration=configuration, schema=schema)

    @property
    def _tags(self) -> dict[str, str]:
        only_marks = self.change.moved_marks and not self.change.table_properties
        return tags_of(self.change) | ({MARKS_ONLY: "true"} if only_marks else {})

    def _transaction(self) -> list[dict[str, Any]]:
        batch = self.change.app_batch
        if batch is None:
            return []
        body = {"appId": batch.app_id, "version": batch.batch_id, "lastUpdated": self.now}
        return [{"txn": body}]

    def _files(self) -> list[dict[str, Any]]:
        added = self._added()
        kept = self._kept()
        folder = self.handle.folder
        removed = remove_actions(
            pa.concat_tables([self.removed, kept]),
            folder,
            deleted_ms=self.now,
            data_change=self.is_change,
        )
        again = readd_actions(
            self.live.with_stats(kept),
            folder,
            self._descriptors(),
            record_counts=self.live.record_counts(kept),
            data_change=self.is_change,
        )
        return [*removed, *again, *added, *cdc_actions(self.change.images, self._adding)]

    def _kept(self) -> pa.Table:
        """Return the live files that stay with another vector, or without theirs."""
        places = {place for place in self.new_vectors if place not in self.own}
        keys = self.live.vector_keys
        places |= {keys[one] for one in self.change.removed_deletes if one in keys}
        return self.live.at(places - self.change.removed_data)

    def _added(self) -> list[dict[str, Any]]:
        change, state = self.change, self.state
        if not change.added_data.num_rows:
            return []
        ids, mark = None, []
        if is_tracked(state.protocol):
            first = high_water_mark(state.actions.domains) + 1
            ids = RowIds(first, self.handle.snapshot_version + 1)
            rows = pc.sum(change.added_data["record_count"]).as_py() or 0
            mark = [mark_action(first + rows - 1)]
        adds = add_actions(
            change.added_data,
            self._adding,
            modified_ms=self.now,
            data_change=self.is_change,
            row_ids=ids,
            vectors=self._descriptors(),
        )
        return [*mark, *adds]

    @property
    def _adding(self) -> Adding:
        metadata, protocol = self.state.metadata, self.state.protocol
        return Adding(self.handle.folder, self.columns, dict(metadata.configuration), protocol)

    def _descriptors(self) -> Mapping[str, VectorDescriptor]:
        return {
            place: descriptor_of(row, self.handle.folder) for place, row in self.new_vectors.items()
        }

    def _counts(self) -> FileCounts:
        replaced = [one for one in self.change.removed_deletes if one in self.live.vector_keys]
        return FileCounts(
            self.removed,
            self.live.live_rows(self.removed),
            vectors_added=len(self.new_vectors),
            vectors_removed=len(replaced),
        )

    def _validate_allowed(self) -> None:
        """Refuse what the table's properties forbid, or what its readers could not follow."""
        metadata, change = self.state.metadata, self.change
        touches = bool(self._touched())
        if touches and self.is_change and metadata.is_set(APPEND_ONLY):
            raise UnsupportedFeatureError(
                f"Cannot remove rows of {self.handle.name}: its property {APPEND_ONLY} is true. "
                "Nothing was changed."
            )
        if not touches or not change.added_data.num_rows:
            return
        shows = change.images.num_rows or change.verb in _REPLACING
        if self.is_change and metadata.is_set(CHANGE_FEED) and not shows:
            raise UnsupportedFeatureError(
                f"Cannot change rows of {self.handle.name}: its property {CHANGE_FEED} is true, "
                f"and this {change.verb or 'operation'} wrote no change data files. Nothing was "
                "changed."
            )
        if metadata.is_set(ROW_TRACKING):
            raise UnsupportedFeatureError(
                f"Cannot rewrite rows of {self.handle.name}: its property {ROW_TRACKING} is true, "
                "and rowlake would give these rows new ids. Nothing was changed."
            )


def _by_data_file(deletes: pa.Table) -> dict[str, dict[str, Any]]:
    """Return the new vectors by the data file that each is of."""
    names = ["location", "content_offset", "content_size_in_bytes", "record_count"]
    rows = deletes.select(["referenced_data_file", *names]).to_pylist()
    return {row["referenced_data_file"]: row for row in rows}
