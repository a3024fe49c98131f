"""Schema changes: a builder over Delta's JSON schema, with the method names of PyIceberg's.

Columns are added at any depth of structs. Renaming and dropping need column mapping, since files
keep their names. A type can only be widened where the table's type widening is on.
"""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rowlake.delta.alter import metadata_version
from rowlake.delta.clustering import clustering_paths
from rowlake.delta.column_mapping import mapped
from rowlake.delta.column_rules import DEFAULT, GENERATED, START
from rowlake.delta.features import expressions_of, validate_defaults
from rowlake.delta.new_schema import delta_schema, field_of
from rowlake.delta.operations import Told
from rowlake.delta.schema import PHYSICAL_NAME
from rowlake.delta.swap import swap
from rowlake.delta.type_widening import ENABLE as ENABLE_WIDENING
from rowlake.delta.type_widening import is_widening, widen
from rowlake.delta.writable import validate_writable
from rowlake.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    InvalidStatementError,
    UnsupportedFeatureError,
)
from rowlake.model.outcome import Landed, Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from rowlake.delta.handle import DeltaHandle
    from rowlake.delta.metadata import Metadata
    from rowlake.delta.protocol import Protocol

Path = tuple[str, ...]


def evolve(handle: DeltaHandle, what: str, change: Callable[[Any], None]) -> DeltaHandle:
    """Change the schema in one commit; a lost race is an error that may be tried again."""
    if what != "schema":
        raise UnsupportedFeatureError(
            f"Cannot change the partitioning of {handle.name}: a Delta table keeps it. Write the "
            "rows to a new table."
        )
    validate_writable(handle)
    clustered = {name for path in clustering_paths(handle.state.actions.domains) for name in path}
    builder = SchemaBuilder(handle.state.metadata, handle.name, handle.state.protocol, clustered)
    change(builder)
    payload = metadata_version(handle, builder.result(), builder.told)
    if payload is None:
        return handle
    outcome = swap(handle, payload)
    if isinstance(outcome, Landed):
        return outcome.handle  # type: ignore[return-value]
    if isinstance(outcome, Unknown):
        raise CommitStateUnknownError(handle.name, None, outcome.cause)
    raise CommitConflictError("ALTER TABLE", handle.name, outcome.cause, retryable=True)


class SchemaBuilder:
    """The next schema of a table."""

    def __init__(
        self, metadata: Metadata, name: str, protocol: Protocol, clustered: Collection[str] = ()
    ) -> None:
        self._metadata, self._name, self._protocol = metadata, name, protocol
        self._clustered = clustered
        self._schema = copy.deepcopy(dict(metadata.schema))
        self.told = Told("CHANGE COLUMNS", {}, {})

    @property
    def _is_mapped(self) -> bool:
        return self._metadata.column_mapping != "none"

    def add_column(
        self,
        path: str | Path,
        field_type: Any,
        doc: str | None = None,
        required: bool = False,
        default_value: Any = None,
    ) -> SchemaBuilder:
        """Add a column, or a field of a struct."""
        *above, name = _levels(path)
        if required:
            raise InvalidStatementError(
                f"Cannot add {name} to {self._name} as NOT NULL: rows that are there have no value."
            )
        if default_value is not None:
            raise UnsupportedFeatureError(
                f"Cannot add column {name} to {self._name} with a default: rows that are there "
                "would lack it. Add the column, then ALTER COLUMN … SET DEFAULT."
            )
        fields = self._fields_below(tuple(above))
        if any(one["name"].lower() == name.lower() for one in fields):
            raise InvalidStatementError(f"{self._name} has a column {'.'.join(_levels(path))}.")
        fields.append(field_of(name, field_type, doc=doc))
        self._tell("ADD COLUMNS", column=".".join(_levels(path)))
        return self

    def delete_column(self, path: str | Path) -> SchemaBuilder:
        """Drop a column; needs column mapping."""
        self._validate_mapped("drop a column")
        fields, found = self._find(path)
        if found["name"] in self._metadata.partition_columns and len(_levels(path)) == 1:
            raise InvalidStatementError(
                f"Cannot drop {found['name']} of {self._name}: the table is partitioned by it."
            )
        if found["metadata"].get(PHYSICAL_NAME) in self._clustered:
            raise InvalidStatementError(
                f"Cannot drop {found['name']} of {self._name}: the table is clustered by it."
            )
        self._validate_unread(path, "drop")
        if len(fields) == 1:
            raise InvalidStatementError(f"Cannot drop the last column of {self._name}.")
        fields.remove(found)
        self._tell("DROP COLUMNS", columns=[".".join(_levels(path))])
        return self

    def rename_column(self, path: str | Path, new_name: str) -> SchemaBuilder:
        """Rename a column; needs column mapping."""
        self._validate_mapped("rename a column")
        fields, found = self._find(path)
        if any(one is not found and one["name"].lower() == new_name.lower() for one in fields):
            raise InvalidStatementError(f"{self._name} has a column {new_name}.")
        self._validate_unread(path, "rename")
        before, found["name"] = found["name"], new_name
        if len(_levels(path)) == 1:
            renamed = [new_name if x == before else x for x in self._metadata.partition_columns]
            self._metadata = replace(self._metadata, partition_columns=tuple(renamed))
        self._tell("RENAME COLUMN", oldColumnPath=before, newColumnPath=new_name)
        return self

    def update_column(
        self,
        path: str | Path,
        field_type: Any = None,
        required: bool | None = None,
        doc: str | None = None,
    ) -> SchemaBuilder:
        """Change a column's comment, let it be null, or widen its type."""
        _, found = self._find(path)
        if field_type is not None:
            wanted = field_of(found["name"], field_type)["type"]
            if wanted != found["type"]:
                self._validate_widening(path, found, wanted)
                widen(found, wanted)
                self._tell("CHANGE COLUMN", column=found["name"])
        if required:
            raise InvalidStatementError(
                f"Cannot make {found['name']} of {self._name} NOT NULL: rows may hold nulls."
            )
        if doc is not None:
            found["metadata"]["comment"] = doc
            self._tell("CHANGE COLUMN", column=found["name"])
        return self

    def _validate_widening(self, path: str | Path, found: dict[str, Any], wanted: Any) -> None:
        change = f"the type of {found['name']} of {self._name} from {found['type']} to {wanted}"
        if not is_widening(found["type"], wanted):
            raise UnsupportedFeatureError(
                f"Cannot change {change}: not every value of the one is one of the other."
            )
        if not self._metadata.is_set(ENABLE_WIDENING):
            raise UnsupportedFeatureError(
                f"Cannot change {change}: set the property {ENABLE_WIDENING} to true first; only "
                "readers that know the table feature typeWidening can read the table then."
            )
        self._validate_unread(path, "change the type of")

    def make_column_optional(self, path: str | Path) -> SchemaBuilder:
        """Let a column be null."""
        _, found = self._find(path)
        found["nullable"] = True
        self._tell("CHANGE COLUMN", column=found["name"])
        return self

    def move_first(self, path: str | Path) -> SchemaBuilder:
        """Put a column first."""
        fields, found = self._find(path)
        fields.remove(found)
        fields.insert(0, found)
        return self._moved(found)

    def move_after(self, path: str | Path, after: str | Path) -> SchemaBuilder:
        """Put a column after another one."""
        fields, found = self._find(path)
        _, other = self._find(after)
        fields.remove(found)
        fields.insert(fields.index(other) + 1, found)
        return self._moved(found)

    def _moved(self, found: dict[str, Any]) -> SchemaBuilder:
        self._tell("CHANGE COLUMN", column=found["name"])
        return self

    def union_by_name(self, new_schema: Any, **_: Any) -> SchemaBuilder:
        """Add the columns that another schema has and this one has not, at any depth."""
        self._unite(self._schema["fields"], delta_schema(new_schema)["fields"], ())
        return self

    def _unite(self, fields: list[Any], others: list[Any], above: Path) -> None:
        known = {one["name"].lower(): one for one in fields}
        for other in others:
            found = known.get(other["name"].lower())
            if found is None:
                fields.append({**other, "nullable": True})
                self._tell("ADD COLUMNS", column=".".join((*above, other["name"])))
            elif _is_struct(found) and _is_struct(other):
                path = (*above, found["name"])
                self._unite(found["type"]["fields"], other["type"]["fields"], path)

    def set_identifier_fields(self, *_: str) -> SchemaBuilder:
        """Refuse: Delta tables have no identifier fields."""
        raise UnsupportedFeatureError(
            f"Cannot set identifier fields of {self._name}: Delta tables have none. Give keys= to "
            "operations instead."
        )

    def set_default_expression(self, path: str | Path, text: str | None) -> SchemaBuilder:
        """Give a column a default, or take it away; rows that are there keep their values."""
        if len(_levels(path)) > 1:
            raise UnsupportedFeatureError(
                f"Cannot give {'.'.join(_levels(path))} of {self._name} a default: only columns of "
                "Delta tables have defaults, not fields of structs."
            )
        _, found = self._find(path)
        for key, what in ((GENERATED, "a generated column"), (START, "an identity column")):
            if key in found["metadata"]:
                raise InvalidStatementError(
                    f"Cannot change the default of {found['name']} of {self._name}: it is {what}."
                )
        found["metadata"].pop(DEFAULT, None)
        if text is not None:
            found["metadata"][DEFAULT] = text
            validate_defaults(self._schema, self._protocol)
        self._tell("CHANGE COLUMN", column=found["name"])
        return self

    def result(self) -> Metadata:
        """Return the definition with the new schema."""
        schema, configuration = self._schema, dict(self._metadata.configuration)
        if self._is_mapped:
            schema, configuration = mapped(schema, configuration)
        return replace(self._metadata, schema=schema, configuration=configuration)

    def _tell(self, operation: str, **parameters: Any) -> None:
        self.told = Told(operation, parameters, {})

    def _validate_mapped(self, act: str) -> None:
        if not self._is_mapped:
            raise UnsupportedFeatureError(
                f"Cannot {act} of {self._name}: its files name columns as the table does. Set "
                "delta.columnMapping.mode=name first."
            )

    def _validate_unread(self, path: str | Path, act: str) -> None:
        """Refuse to take away what an expression of the table reads."""
        name = _levels(path)[0]
        for rule, text in expressions_of(self._metadata):
            if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE):
                raise InvalidStatementError(
                    f"Cannot {act} {'.'.join(_levels(path))} of {self._name}: the {rule} reads "
                    f"{name} ({text[:200]})."
                )

    def _fields_below(self, path: Path) -> list[dict[str, Any]]:
        kind: Any = self._schema
        for name in path:
            kind = _step(kind, name)
            if kind is None:
                raise self._unknown(path)
        while isinstance(kind, dict) and kind["type"] != "struct":
            kind = kind.get("elementType", kind.get("valueType"))
        if not isinstance(kind, dict):
            raise InvalidStatementError(f"{'.'.join(path)} of {self._name} has no fields.")
        fields: list[dict[str, Any]] = kind["fields"]
        return fields

    def _find(self, path: str | Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        *above, name = _levels(path)
        fields = self._fields_below(tuple(above))
        exact = [one for one in fields if one["name"] == name]
        alike = [one for one in fields if one["name"].lower() == name.lower()]
        found = exact or alike
        if not found:
            raise self._unknown(_levels(path))
        return fields, found[0]

    def _unknown(self, path: Path) -> InvalidStatementError:
        return InvalidStatementError(f"{self._name} has no column {'.'.join(path)}.")


def _is_struct(field: Mapping[str, Any]) -> bool:
    return isinstance(field["type"], dict) and field["type"]["type"] == "struct"


def _step(kind: Any, name: str) -> Any:
    """Return the type of a field, an element, a key or a value below a type."""
    if not isinstance(kind, dict):
        return None
    inner = {"element": "elementType", "key": "keyType", "value": "valueType"}.get(name)
    if kind["type"] != "struct":
        return kind.get(inner) if inner else None
    return next(
        (one["type"] for one in kind["fields"] if one["name"].lower() == name.lower()), None
    )


def _levels(path: str | Path) -> Path:
    return tuple(path.split(".")) if isinstance(path, str) else tuple(path)
