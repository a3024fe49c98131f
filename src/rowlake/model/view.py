"""What an operation sees of a table: its metadata at one snapshot.

Comes in: table metadata, of which each format builds views (`Format.view`). Goes out: plain
values that plan, scan, write and row-level code use. Invariant: a view never changes; the
branch may have moved on since.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rowlake.model.file_layout import DEFAULT_LAYOUT
from rowlake.secrets import redacted_repr

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.model.file_layout import FileLayout
    from rowlake.model.format import Capabilities, Format
    from rowlake.model.partition import PartitionSpec, SortOrder
    from rowlake.model.row_rules import RowRule
    from rowlake.model.schema import Schema
    from rowlake.model.task import NameMapping


DATA_PATH = "write.data.path"


@dataclass(frozen=True)
class SnapshotInfo:
    """One snapshot of a table."""

    snapshot_id: int
    parent_id: int | None
    sequence_number: int
    timestamp_ms: int
    manifest_list: str | None
    operation: str
    summary: Mapping[str, str]
    schema_id: int | None = None
    first_row_id: int | None = None
    added_rows: int | None = None

    __repr__ = redacted_repr


# The order of files that are clustered by the columns of their table.
CLUSTERED = 1


@dataclass(frozen=True)
class TableView:
    """A table at one snapshot (None: a table without any).

    `schema` is the one to read with: the current schema for the head of a branch, the
    snapshot's own schema for time travel. `io_properties` are what opens its files
    (`rowlake.storage`), `name_mapping` what gives field ids to those without. `can` says what may
    be written, `layout` how files hold it, `rules` what rows satisfy; `cluster_by` are
    the columns that OPTIMIZE clusters files by; `name` and `format_version` are for messages.
    """

    name: str
    uuid: str
    location: str
    format_version: int
    schema: Schema
    schemas: Mapping[int, Schema]
    specs: Mapping[int, PartitionSpec]
    default_spec_id: int
    sort_orders: Mapping[int, SortOrder]
    default_sort_order_id: int
    properties: Mapping[str, str]
    snapshot: SnapshotInfo | None
    format: Format
    can: Capabilities
    io_properties: Mapping[str, str] = field(default_factory=dict)
    name_mapping: NameMapping | None = None
    layout: FileLayout = DEFAULT_LAYOUT
    rules: tuple[RowRule, ...] = ()
    cluster_by: tuple[int, ...] = ()

    __repr__ = redacted_repr

    @property
    def spec(self) -> PartitionSpec:
        """The spec that new files are written with."""
        return self.specs[self.default_spec_id]

    @property
    def write_properties(self) -> Mapping[str, str]:
        """The properties that files are written by: the table's, but for what the format says."""
        return {**self.properties, **self.layout.settings}

    @property
    def data_folder(self) -> str:
        """Where data files and delete files are written."""
        return (self.write_properties.get(DATA_PATH) or f"{self.location}/data").rstrip("/")

    @property
    def sort_order(self) -> SortOrder:
        """The order that new files are written in."""
        return self.sort_orders[self.default_sort_order_id]

    def at(self, snapshot: SnapshotInfo | None) -> TableView:
        """Return the files of another snapshot under the schema and specs of this view."""
        return replace(self, snapshot=snapshot)

    @property
    def snapshot_id(self) -> int | None:
        """The id of the snapshot seen."""
        return self.snapshot.snapshot_id if self.snapshot else None
