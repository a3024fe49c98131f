"""What ALTER TABLE asks for: one frozen dataclass per action."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.secrets import redacted_repr

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.sqltext.names import Name
    from rowlake.sqltext.terms import PartitionTerm, SortTerm
    from rowlake.sqltext.types import Field, Type


@dataclass(frozen=True)
class RenameTable:
    """RENAME TO."""

    new_name: Name


@dataclass(frozen=True)
class NewColumn:
    """A column to add: `parent` is the struct it goes into; `after` a sibling, '' for FIRST."""

    field: Field
    parent: Name = ()
    after: str | None = None


@dataclass(frozen=True)
class AddColumns:
    """ADD COLUMN[S]."""

    columns: tuple[NewColumn, ...]
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropColumns:
    """DROP COLUMN[S]."""

    columns: tuple[Name, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class RenameColumn:
    """RENAME COLUMN a.b TO c."""

    column: Name
    new_name: str


@dataclass(frozen=True)
class AlterColumn:
    """ALTER COLUMN: each part is None where it stays; `after` '' is FIRST.

    `default` is the text of an SQL expression; '' drops the default.
    """

    column: Name
    type: Type | None = None
    required: bool | None = None
    comment: str | None = None
    after: str | None = None
    default: str | None = None


@dataclass(frozen=True)
class ReplaceColumns:
    """REPLACE COLUMNS (…)."""

    columns: tuple[Field, ...]


@dataclass(frozen=True)
class SetProperties:
    """SET TBLPROPERTIES."""

    properties: Mapping[str, str]

    __repr__ = redacted_repr


@dataclass(frozen=True)
class UnsetProperties:
    """UNSET TBLPROPERTIES."""

    keys: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class SetLocation:
    """SET LOCATION."""

    location: str


@dataclass(frozen=True)
class AddPartitionField:
    """ADD PARTITION FIELD transform [AS name]."""

    term: PartitionTerm


@dataclass(frozen=True)
class DropPartitionField:
    """DROP PARTITION FIELD; a lone column is the identity of it, or the name of a field."""

    term: PartitionTerm


@dataclass(frozen=True)
class ReplacePartitionField:
    """REPLACE PARTITION FIELD a WITH b [AS name]."""

    old: PartitionTerm
    new: PartitionTerm


@dataclass(frozen=True)
class SetWriteOrder:
    """WRITE …: the distribution mode and the sort order; None leaves as it is."""

    distribution: str | None
    order: tuple[SortTerm, ...] | None


@dataclass(frozen=True)
class SetIdentifierFields:
    """SET IDENTIFIER FIELDS."""

    columns: tuple[Name, ...]


@dataclass(frozen=True)
class DropIdentifierFields:
    """DROP IDENTIFIER FIELDS."""

    columns: tuple[Name, ...]


@dataclass(frozen=True)
class CreateRef:
    """CREATE [OR REPLACE] / REPLACE BRANCH | TAG; `kind` is branch or tag, times are in ms."""

    kind: str
    ref: str
    mode: str = "create"
    if_not_exists: bool = False
    snapshot_id: int | None = None
    max_ref_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None


@dataclass(frozen=True)
class DropRef:
    """DROP BRANCH | TAG."""

    kind: str
    ref: str
    if_exists: bool = False


AlterAction = (
    RenameTable
    | AddColumns
    | DropColumns
    | RenameColumn
    | AlterColumn
    | ReplaceColumns
    | SetProperties
    | UnsetProperties
    | SetLocation
    | AddPartitionField
    | DropPartitionField
    | ReplacePartitionField
    | SetWriteOrder
    | SetIdentifierFields
    | DropIdentifierFields
    | CreateRef
    | DropRef
)


@dataclass(frozen=True)
class AlterTable:
    """ALTER TABLE t action; ALTER COLUMN a …, b … gives several actions."""

    name: Name
    actions: tuple[AlterAction, ...]
