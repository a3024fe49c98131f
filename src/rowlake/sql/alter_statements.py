"""What ALTER TABLE asks for: one frozen dataclass per action.

Actions that need nothing resolved are the model's own (`rowlake.model.metadata_change`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.model.metadata_change import (
    CreateRef,
    DropConstraint,
    DropRef,
    SetClustering,
    SetProperties,
    UnsetProperties,
)

if TYPE_CHECKING:
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
class AddCheck:
    """ADD CONSTRAINT name CHECK (condition)."""

    name: str
    text: str


@dataclass(frozen=True)
class SyncIdentity:
    """ALTER COLUMN … SYNC IDENTITY."""

    column: Name


@dataclass(frozen=True)
class ReplaceColumns:
    """REPLACE COLUMNS (…)."""

    columns: tuple[Field, ...]


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


AlterAction = (
    RenameTable
    | AddColumns
    | DropColumns
    | RenameColumn
    | AlterColumn
    | AddCheck
    | DropConstraint
    | SyncIdentity
    | ReplaceColumns
    | SetProperties
    | UnsetProperties
    | SetLocation
    | AddPartitionField
    | DropPartitionField
    | ReplacePartitionField
    | SetWriteOrder
    | SetClustering
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
