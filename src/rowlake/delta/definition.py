"""What users ask of a new or replaced table -> its `metaData` and `protocol`."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rowlake.delta import clustering
from rowlake.delta.actions import domain_action
from rowlake.delta.column_mapping import fields_in, mapped, mapping_mode
from rowlake.delta.column_rules import START
from rowlake.delta.features import (
    asked_of,
    needed_features,
    protocol_for,
    validate_asked,
    validate_defaults,
)
from rowlake.delta.metadata import Metadata, metadata_action
from rowlake.delta.new_schema import delta_schema
from rowlake.delta.protocol import Protocol, protocol_action
from rowlake.delta.row_tracking import with_row_tracking
from rowlake.delta.schema import columns_of
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.model.metadata_change import TableDefinition
    from rowlake.model.partition import PartitionBy

FORMAT_VERSION = "format-version"
COMMENT = "comment"
# A character that Delta without column mapping cannot have in a column's name.
_ODD_CHARACTERS = " ,;{}()\n\t="


@dataclass(frozen=True)
class Defined:
    """The definition of a table and the protocol that it needs."""

    metadata: Metadata
    protocol: Protocol
    domains: Mapping[str, str] = field(default_factory=dict)

    @property
    def actions(self) -> list[dict[str, Any]]:
        """The actions of all of it."""
        made = definition_actions(self.metadata, self.protocol)
        return [*made, *(domain_action(name, text) for name, text in self.domains.items())]


def definition_actions(
    metadata: Metadata, protocol: Protocol | None = None
) -> list[dict[str, Any]]:
    """Return the actions of a definition, with a protocol where there is one to set."""
    first = [] if protocol is None else [{"protocol": protocol_action(protocol)}]
    return [*first, {"metaData": metadata_action(metadata)}]


def new_definition(
    wanted: TableDefinition, *, before: Metadata | None = None, protocol: Protocol | None = None
) -> Defined:
    """Return the definition of a new table, or of one that takes the place of another.

    A table that is replaced keeps its id and the features of its protocol.
    """
    _validate(wanted)
    properties = {key: value for key, value in wanted.all_properties.items() if key != COMMENT}
    asked = asked_of(properties)
    configuration = with_row_tracking(asked.configuration)
    validate_asked(configuration)
    schema = delta_schema(wanted.schema)
    partitions = _partition_columns(wanted, schema)
    if mapping_mode(configuration) != "none":
        schema, configuration = mapped(schema, configuration)
    else:
        _validate_plain_names(schema)
    features = asked.features | needed_features(schema, configuration)
    metadata = Metadata(
        table_id=str(uuid.uuid4()) if before is None else before.table_id,
        schema=schema,
        partition_columns=partitions,
        configuration=configuration,
        name=before.name if before else None,
        description=wanted.comment,
        created_ms=int(time.time() * 1000),
    )
    domains: dict[str, str] = {}
    if wanted.cluster_by:
        features |= clustering.FEATURES
        columns = columns_of(metadata, "the new table")
        paths = clustering.physical_paths(wanted.cluster_by, columns, configuration)
        domains = {clustering.DOMAIN: clustering.domain_text(paths)}
    found = protocol_for(set(features), protocol, asked)
    validate_defaults(schema, found)
    return Defined(metadata, found, domains)


def _validate(wanted: TableDefinition) -> None:
    if wanted.sort_by:
        raise UnsupportedFeatureError("Delta tables have no sort order.")
    if FORMAT_VERSION in wanted.properties:
        raise InvalidStatementError(
            f"{FORMAT_VERSION} is a property of Iceberg tables; a Delta table has "
            "delta.minReaderVersion and delta.minWriterVersion."
        )


def _partition_columns(wanted: TableDefinition, schema: Mapping[str, Any]) -> tuple[str, ...]:
    by_name = {one["name"].lower(): one for one in schema["fields"]}
    found: list[str] = []
    for term in wanted.partition_by:
        column = _plain_column(term)
        field = by_name.get(column.lower())
        if field is None:
            raise InvalidStatementError(f"Cannot partition by {column}: there is no such column.")
        if not isinstance(field["type"], str) or field["type"] == "void":
            raise InvalidStatementError(
                f"Cannot partition by {column}: partition columns have simple types."
            )
        if START in field["metadata"]:
            raise InvalidStatementError(f"Cannot partition by {column}: it is an identity column.")
        if field["name"] in found:
            raise InvalidStatementError(f"Column {column} is there twice in the partitioning.")
        found.append(field["name"])
    if found and len(found) == len(schema["fields"]):
        raise InvalidStatementError("A Delta table cannot be partitioned by all of its columns.")
    return tuple(found)


def _plain_column(term: str | PartitionBy) -> str:
    is_plain = isinstance(term, str) or (term.transform == "identity" and len(term.column) == 1)
    column = term if isinstance(term, str) else ".".join(term.column)
    if not is_plain or "(" in column:
        shown = column if isinstance(term, str) else f"{term.transform}({column})"
        raise UnsupportedFeatureError(
            f"Cannot partition by {shown}: Delta tables are partitioned by columns, not by "
            "transforms of them."
        )
    return column.strip().strip("`")


def _validate_plain_names(schema: Mapping[str, Any]) -> None:
    for one in fields_in(schema):
        if any(character in one["name"] for character in _ODD_CHARACTERS):
            raise InvalidStatementError(
                f"Column {one['name']!r} has a character that Delta takes only with column mapping "
                "(any of ' ,;{}()\\n\\t='). Set delta.columnMapping.mode=name."
            )
