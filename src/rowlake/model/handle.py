"""A table at one version, with what it takes to read it and to commit to it.

Each format has a handle of its own below this one (`rowlake.catalog.handle` for Iceberg), which
keeps the format's metadata to itself: the other rooms see the nouns declared here, and ask
`handle.format` (`rowlake.model.format`) for everything else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rowlake.errors import CorruptTableError
from rowlake.model.names import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rowlake.model.format import Capabilities, Format
    from rowlake.model.names import Identifier
    from rowlake.model.view import SnapshotInfo, TableView
    from rowlake.storage.files import Storage

MAIN = "main"


@dataclass(frozen=True)
class Ref:
    """A branch or a tag; ages and counts are None where the table's defaults hold."""

    snapshot_id: int
    kind: str
    max_ref_age_ms: int | None = None
    max_snapshot_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None

    @property
    def is_tag(self) -> bool:
        """True for a tag."""
        return self.kind == "tag"


class TableHandle(ABC):
    """A table as it was when it was loaded; `format.refresh` returns the table as it is now."""

    identifier: Identifier
    catalog: Any  # that knows the table's name
    io_properties: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name as a user writes it."""
        return quoted(self.identifier)

    @property
    @abstractmethod
    def storage(self) -> Storage:
        """The storage of the table's files."""

    @property
    @abstractmethod
    def format(self) -> Format:
        """The table format."""

    @property
    @abstractmethod
    def uuid(self) -> str:
        """What tells this table from another one that takes its name later."""

    @property
    @abstractmethod
    def location(self) -> str:
        """The table's folder."""

    @property
    @abstractmethod
    def version(self) -> str | None:
        """What every commit changes; None for a staged table, which its first commit creates."""

    @property
    @abstractmethod
    def format_version(self) -> int:
        """The version of the format, for messages; `can` says what it allows."""

    @property
    @abstractmethod
    def can(self) -> Capabilities:
        """What the table may hold."""

    @property
    @abstractmethod
    def last_updated_ms(self) -> int:
        """When the table was last changed."""

    @property
    @abstractmethod
    def schema_id(self) -> int:
        """The current schema."""

    @property
    @abstractmethod
    def properties(self) -> Mapping[str, str]:
        """The table properties."""

    @property
    @abstractmethod
    def refs(self) -> Mapping[str, Ref]:
        """The branches and tags by name."""

    @property
    @abstractmethod
    def snapshots(self) -> Sequence[SnapshotInfo]:
        """The snapshots that are kept, as the metadata lists them."""

    @property
    @abstractmethod
    def current_snapshot_id(self) -> int | None:
        """The head of main."""

    @property
    def details(self) -> Mapping[str, Any]:
        """What only this format says of a table, by the names of DESCRIBE DETAIL."""
        return {}

    @property
    def is_staged(self) -> bool:
        """True before the commit that creates the table."""
        return self.version is None

    @property
    def is_in_transaction(self) -> bool:
        """True where commits wait until the whole transaction lands."""
        return False

    @cached_property
    def _by_id(self) -> Mapping[int, SnapshotInfo]:
        return {snapshot.snapshot_id: snapshot for snapshot in self.snapshots}

    def snapshot(self, snapshot_id: int | None) -> SnapshotInfo | None:
        """Return a snapshot, None where it is not kept."""
        return None if snapshot_id is None else self._by_id.get(snapshot_id)

    def head_of(self, ref: str) -> int | None:
        """Return the snapshot that a branch or tag points to, None where there is no such ref."""
        found = self.refs.get(ref)
        return found.snapshot_id if found else None

    def ancestors(self, snapshot_id: int | None) -> Iterator[SnapshotInfo]:
        """Yield a snapshot and its ancestors, newest first, as far as they are kept.

        The one way to walk history: raises CorruptTableError where a snapshot is its own ancestor.
        """
        seen: set[int] = set()
        while (found := self.snapshot(snapshot_id)) is not None:
            if found.snapshot_id in seen:
                raise CorruptTableError(
                    self.location,
                    f"snapshot {found.snapshot_id} is its own ancestor",
                    advice="Register an older metadata file of the table, from before the damage.",
                )
            seen.add(found.snapshot_id)
            yield found
            snapshot_id = found.parent_id

    def view(
        self,
        *,
        snapshot_id: int | None = None,
        as_of_ms: int | None = None,
        ref: str | None = None,
    ) -> TableView:
        """Return the table at one snapshot: the head of main unless told otherwise."""
        return self.format.view(self, snapshot_id=snapshot_id, as_of_ms=as_of_ms, ref=ref)
