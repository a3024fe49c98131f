"""The name mapping of a table: which names in files without field ids mean which column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.table.name_mapping import create_mapping_from_schema

from rowlake.iceberg.refs import NOTHING
from rowlake.iceberg.updates import set_properties

if TYPE_CHECKING:
    from rowlake.catalog.handle import IcebergHandle
    from rowlake.iceberg.refs import Updates

NAME_MAPPING = "schema.name-mapping.default"


def default_mapping(handle: IcebergHandle) -> str:
    """Return the mapping that the table's current names make, in the spec's JSON."""
    return create_mapping_from_schema(handle.metadata.schema()).model_dump_json()


def ensure_mapping(handle: IcebergHandle) -> Updates:
    """Set the mapping where the table has none: without one, files go by position."""
    if NAME_MAPPING in handle.metadata.properties:
        return NOTHING
    return set_properties(handle, {NAME_MAPPING: default_mapping(handle)})
