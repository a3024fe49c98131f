"""CREATE TABLE: a schema, a layout and properties become a table.

Comes in: what a user asks for. Goes out: the handle of the table. A table of that name is an
error, unless it may be there (`if_not_exists`) or is to be replaced: a replaced table keeps its
history, its refs and its uuid, as Iceberg's REPLACE TABLE does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.catalog import tables as catalog_tables
from rowlake.catalog.metadata import Definition
from rowlake.commit.metadata import commit_metadata
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.iceberg.layout import order_from, spec_from
from rowlake.iceberg.replace import replace_updates
from rowlake.iceberg.schema import (
    check_schema,
    schema_from_arrow,
    schema_from_iceberg,
    schema_from_json,
)
from rowlake.model.names import quoted
from rowlake.model.properties import validate_no_secrets
from rowlake.secrets import redacted_repr

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.catalog import Catalog

    from rowlake.iceberg.refs import Updates
    from rowlake.model.handle import TableHandle
    from rowlake.model.partition import OrderBy, PartitionBy
    from rowlake.model.schema import Schema


FORMAT_VERSIONS = ("1", "2", "3")


@dataclass(frozen=True)
class Layout:
    """What a new table looks like."""

    schema: Any
    partition_by: tuple[str | PartitionBy, ...] = ()
    sort_by: tuple[OrderBy, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None
    comment: str | None = None

    __repr__ = redacted_repr

    def __post_init__(self) -> None:
        validate_no_secrets(self.properties)

    @property
    def all_properties(self) -> dict[str, str]:
        """The properties to store, the comment among them."""
        comment = {} if self.comment is None else {"comment": self.comment}
        return {str(key): str(value) for key, value in self.properties.items()} | comment


def create_table(
    catalog: Catalog,
    identifier: tuple[str, ...],
    layout: Layout,
    *,
    if_not_exists: bool = False,
    replace: bool = False,
    staged: bool = False,
) -> TableHandle:
    """Create a table, or replace one; `staged` leaves the creating to the first commit."""
    if catalog_tables.table_exists(catalog, identifier):
        handle = catalog_tables.load_table(catalog, identifier)
        if if_not_exists:
            return handle
        if not replace:
            raise already_there(identifier)
        return replace_table(handle, layout)
    version = layout.properties.get("format-version", "2")
    schema = iceberg_schema(layout.schema, version)
    definition = Definition(
        schema=schema,
        spec=spec_from(layout.partition_by, schema),
        sort_order=order_from(layout.sort_by, schema),
        properties=layout.all_properties,
        location=layout.location,
    )
    make = catalog_tables.stage_table if staged else catalog_tables.create_table
    return make(catalog, identifier, definition)


def already_there(identifier: tuple[str, ...]) -> InvalidStatementError:
    """Return the error for a table that must not exist."""
    return InvalidStatementError(
        f"There is a table {quoted(identifier)} already. "
        "Use IF NOT EXISTS to keep it, or CREATE OR REPLACE TABLE to replace it."
    )


def replace_table(handle: TableHandle, layout: Layout) -> TableHandle:
    """Give a table a new schema, layout and no rows, keeping its history."""
    return commit_metadata(handle, "REPLACE TABLE", lambda found: replacing_updates(found, layout))


def replacing_updates(handle: TableHandle, layout: Layout) -> Updates:
    """Return the updates that make a table look like the layout."""
    metadata = handle.metadata
    version = layout.properties.get("format-version", str(metadata.format_version))
    schema = iceberg_schema(
        layout.schema,
        version,
        known=schema_from_iceberg(metadata.schema()),
        last_id=metadata.last_column_id,
    )
    return replace_updates(
        handle,
        schema,
        spec_from(layout.partition_by, schema),
        order_from(layout.sort_by, schema),
        layout.all_properties,
    )


def iceberg_schema(
    schema: Any, format_version: str, *, known: Schema | None = None, last_id: int = 0
) -> Any:
    """Return a PyIceberg schema for what a user gave as one.

    Columns that `known` has under the same path keep their ids, others get ids above `last_id`.
    """
    version = _known_version(format_version)
    if isinstance(schema, dict):
        schema = schema_from_json(schema)
    if hasattr(schema, "find_field"):
        schema = schema_from_iceberg(schema).arrow
    elif not isinstance(schema, pa.Schema):
        raise InvalidStatementError(
            f"A {type(schema).__name__} is no schema: give a pyarrow or PyIceberg schema, or a "
            "table or frame that has one."
        )
    try:
        found = schema_from_arrow(schema, nanoseconds=version >= 3, known=known, last_id=last_id)
        check_schema(found, version)
    except ValueError as error:
        raise InvalidStatementError(f"Cannot make a table of this schema: {error}.") from error
    return found


def _known_version(text: str) -> int:
    if str(text) not in FORMAT_VERSIONS:
        raise UnsupportedFeatureError(
            f"There is no format version {text} here: rowlake writes {', '.join(FORMAT_VERSIONS)}."
        )
    return int(text)
