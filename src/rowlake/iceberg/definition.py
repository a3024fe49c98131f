"""What users ask of a new table -> PyIceberg's schema, spec and sort order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.iceberg.layout import order_from, spec_from
from rowlake.iceberg.metadata_files import Definition
from rowlake.iceberg.replace import replace_updates
from rowlake.iceberg.schema import (
    check_schema,
    schema_from_arrow,
    schema_from_iceberg,
    schema_from_json,
)
from rowlake.model.column_rules import (
    DEFAULT_KEY,
    GENERATED_KEY,
    IDENTITY_KEY,
    WRITE_DEFAULT_KEY,
)
from rowlake.model.reserved_columns import validate_column_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowlake.catalog.handle import IcebergHandle
    from rowlake.iceberg.refs import Updates
    from rowlake.model.metadata_change import TableDefinition
    from rowlake.model.schema import Schema

FORMAT_VERSIONS = ("1", "2", "3")
DEFAULT_VERSION = "2"


def new_definition(wanted: TableDefinition) -> Definition:
    """Return the definition of a table that is to be created."""
    refuse_clustering(wanted.cluster_by)
    version = wanted.properties.get("format-version", DEFAULT_VERSION)
    schema = iceberg_schema(wanted.schema, version)
    return Definition(
        schema=schema,
        spec=spec_from(wanted.partition_by, schema),
        sort_order=order_from(wanted.sort_by, schema),
        properties=wanted.all_properties,
        location=wanted.location,
    )


def redefining_updates(handle: IcebergHandle, wanted: TableDefinition) -> Updates:
    """Return the updates that make a table look like the definition."""
    refuse_clustering(wanted.cluster_by)
    metadata = handle.metadata
    version = wanted.properties.get("format-version", str(metadata.format_version))
    schema = iceberg_schema(
        wanted.schema,
        version,
        known=schema_from_iceberg(metadata.schema()),
        last_id=metadata.last_column_id,
    )
    return replace_updates(
        handle,
        schema,
        spec_from(wanted.partition_by, schema),
        order_from(wanted.sort_by, schema),
        wanted.all_properties,
    )


def refuse_clustering(columns: Sequence[tuple[str, ...]]) -> None:
    """Refuse CLUSTER BY, and say what takes its place."""
    if columns:
        named = ", ".join(".".join(one) for one in columns)
        raise UnsupportedFeatureError(
            f"Cannot cluster an Iceberg table by {named}: Iceberg has sort orders. Write ALTER "
            f"TABLE … WRITE ORDERED BY {named}, or cluster the files that are there with "
            f"OPTIMIZE … ZORDER BY ({named})."
        )


def _refuse_made_columns(schema: Mapping[str, Any]) -> None:
    for one in schema["fields"]:
        if GENERATED_KEY in one or IDENTITY_KEY in one:
            raise UnsupportedFeatureError(
                f"Cannot make column {one['name']}: Iceberg tables have no generated columns and "
                "no identity columns."
            )
        if DEFAULT_KEY in one and WRITE_DEFAULT_KEY not in one:
            raise UnsupportedFeatureError(
                f"Cannot make column {one['name']}: its default {one[DEFAULT_KEY]} is no plain "
                "literal, so that Spark must evaluate it. Create the table with CREATE TABLE "
                "(lake.sql)."
            )


def iceberg_schema(
    schema: Any, format_version: str, *, known: Schema | None = None, last_id: int = 0
) -> Any:
    """Return a PyIceberg schema for what a user gave as one.

    Columns that `known` has under the same path keep their ids, others get ids above `last_id`.
    """
    version = _known_version(format_version)
    if isinstance(schema, dict):
        _refuse_made_columns(schema)
        schema = schema_from_json(schema)
    if hasattr(schema, "find_field"):
        schema = schema_from_iceberg(schema).arrow
    elif not isinstance(schema, pa.Schema):
        raise InvalidStatementError(
            f"A {type(schema).__name__} is no schema: give a pyarrow or PyIceberg schema, or a "
            "table or frame that has one."
        )
    for name in schema.names:
        validate_column_name(name)
    try:
        found = schema_from_arrow(schema, nanoseconds=version >= 3, known=known, last_id=last_id)
        check_schema(found, version)
    except ValueError as error:
        raise InvalidStatementError(f"Cannot make a table of this schema: {error}.") from error
    return found


def _known_version(text: str) -> int:
    if str(text) not in FORMAT_VERSIONS:
        raise UnsupportedFeatureError(
            f"Unsupported format version {text} (supported: {', '.join(FORMAT_VERSIONS)})."
        )
    return int(text)
