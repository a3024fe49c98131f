"""Changes to a table's metadata: refs, properties, order, specs, statistics, the whole definition.

A format turns one into its payload (`Format.alter`) against the newest metadata; wrong names and
impossible moves are `InvalidStatementError` there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from rowlake.model.handle import MAIN
from rowlake.model.properties import validate_no_secrets
from rowlake.secrets import redacted_repr

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.model.expiry import Expiry
    from rowlake.model.partition import OrderBy, PartitionBy, PartitionSpec


@dataclass(frozen=True)
class Retention:
    """How long a ref and its snapshots are kept; None: the table's defaults."""

    max_ref_age_ms: int | None = None
    max_snapshot_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None


DEFAULT_RETENTION = Retention()


@dataclass(frozen=True)
class CreateRef:
    """Create or replace a branch or a tag at a snapshot, the current one by default.

    Without `create`, one that is not there is an error; without `replace`, one that is.
    """

    name: str
    kind: str
    snapshot_id: int | None = None
    retention: Retention = DEFAULT_RETENTION
    replace: bool = False
    if_not_exists: bool = False
    create: bool = True


@dataclass(frozen=True)
class DropRef:
    """Drop a branch or a tag (either where `kind` is None); main stays."""

    name: str
    if_exists: bool = False
    kind: str | None = None


@dataclass(frozen=True)
class MoveRef:
    """Point a branch to another snapshot; it keeps its retention."""

    name: str
    snapshot_id: int


@dataclass(frozen=True)
class Rollback:
    """Move a branch back to one of its ancestors."""

    snapshot_id: int
    branch: str = MAIN


@dataclass(frozen=True)
class FastForward:
    """Move a branch to the head of another one that it is an ancestor of."""

    branch: str
    to: str


@dataclass(frozen=True)
class SetProperties:
    """Set properties; `format-version` upgrades the table instead of being stored."""

    properties: Mapping[str, str]

    __repr__ = redacted_repr

    def __post_init__(self) -> None:
        """Refuse secrets."""
        validate_no_secrets(self.properties)


@dataclass(frozen=True)
class UnsetProperties:
    """Remove properties."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class AddConstraint:
    """Add a CHECK constraint, which all rows of snapshot `checked_at` satisfy."""

    name: str
    text: str
    checked_at: int | None


@dataclass(frozen=True)
class DropConstraint:
    """Drop a CHECK constraint; without `if_exists`, one that is not there is an error."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class MoveMark:
    """Say how far an identity column has come, as the rows of snapshot `checked_at` show."""

    column: str
    mark: int
    checked_at: int | None


@dataclass(frozen=True)
class SetSortOrder:
    """Set the order that new files are written in; none means unsorted."""

    order: tuple[OrderBy, ...]


@dataclass(frozen=True)
class SetClustering:
    """Set the columns that OPTIMIZE clusters files by; none means that it does not."""

    columns: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class AddSpec:
    """Add a partition spec beside the default one."""

    spec: PartitionSpec


@dataclass(frozen=True)
class AddNameMapping:
    """Add the mapping of names to field ids that files without ids are read by, if none is set."""


@dataclass(frozen=True)
class TableDefinition:
    """What a new table looks like; `format` is empty for the catalog's own, or that of a path."""

    schema: Any
    partition_by: tuple[str | PartitionBy, ...] = ()
    sort_by: tuple[OrderBy, ...] = ()
    cluster_by: tuple[tuple[str, ...], ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None
    comment: str | None = None
    format: str = ""

    __repr__ = redacted_repr

    def __post_init__(self) -> None:
        """Refuse secrets."""
        validate_no_secrets(self.properties)

    @property
    def all_properties(self) -> dict[str, str]:
        """The properties to store, the comment among them."""
        comment = {} if self.comment is None else {"comment": self.comment}
        return {str(key): str(value) for key, value in self.properties.items()} | comment


@dataclass(frozen=True)
class Redefine:
    """Give a table a new schema and layout and no rows, keeping its history (REPLACE TABLE)."""

    definition: TableDefinition


@dataclass(frozen=True)
class ExpireSnapshots:
    """Remove snapshots and what goes with them (`Format.expiry`), for exactly this moment."""

    expiry: Expiry


MetadataChange: TypeAlias = (
    CreateRef
    | DropRef
    | MoveRef
    | Rollback
    | FastForward
    | SetProperties
    | UnsetProperties
    | AddConstraint
    | DropConstraint
    | MoveMark
    | SetSortOrder
    | SetClustering
    | AddSpec
    | AddNameMapping
    | Redefine
    | ExpireSnapshots
)
