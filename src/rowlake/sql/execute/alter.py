"""ALTER TABLE: actions to changes of a table's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rowlake.conditions.column_lookup import find_column, no_such_column
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.model.metadata_change import (
    CreateRef,
    DropConstraint,
    DropRef,
    SetClustering,
    SetProperties,
    UnsetProperties,
)
from rowlake.model.partition import OrderBy
from rowlake.query.lookup import names_without_spark
from rowlake.sql import alter_statements as alter_s
from rowlake.sql.execute.defaults import default_value
from rowlake.sql.tables import new_name
from rowlake.sqltext.lexer import readable
from rowlake.sqltext.schema_json import type_json
from rowlake.sqltext.types import parse_type
from rowlake.verbs import alter, branches, constraints

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowlake.lake import Lake
    from rowlake.sqltext.names import Name
    from rowlake.sqltext.terms import PartitionTerm
    from rowlake.sqltext.types import Type
    from rowlake.table import Table

_SCHEMA_ACTIONS = (
    alter_s.AddColumns,
    alter_s.DropColumns,
    alter_s.RenameColumn,
    alter_s.AlterColumn,
    alter_s.ReplaceColumns,
    alter_s.SetIdentifierFields,
    alter_s.DropIdentifierFields,
)
_SPEC_ACTIONS = (
    alter_s.AddPartitionField,
    alter_s.DropPartitionField,
    alter_s.ReplacePartitionField,
)


def alter_table(lake: Lake, statement: alter_s.AlterTable, table: Table) -> None:
    """Run ALTER TABLE; the schema changes of one statement are one commit."""
    first = statement.actions[0]
    if isinstance(first, _SCHEMA_ACTIONS):
        change = _SchemaChange(lake, table)
        alter.change_schema(table.handle, lambda builder: change.apply(builder, statement.actions))
    elif isinstance(first, _SPEC_ACTIONS):
        alter.change_spec(table.handle, lambda builder: _change_spec(builder, table, first))
    else:
        _ACTIONS[type(first)](lake, table, first)


def _path_text(path: Name) -> str:
    return ".".join(path)


class _SchemaChange:
    """The changes of one statement on PyIceberg's schema builder."""

    def __init__(self, lake: Lake, table: Table) -> None:
        self.lake, self.schema, self.name = lake, table.schema, table.name
        self.known = {name.lower(): name for name in self.schema.column_names}

    def apply(self, builder: Any, actions: tuple[alter_s.AlterAction, ...]) -> None:
        """Tell the builder every action."""
        for action in actions:
            self._steps[type(action)](self, builder, action)

    def has(self, path: Name) -> bool:
        """Return whether there is a column of this path, in any case."""
        return _path_text(path).lower() in self.known

    def actual(self, path: Name) -> Name:
        """Return a path in the table's own spelling."""
        name = self.known.get(_path_text(path).lower())
        if name is None:
            raise InvalidStatementError(f"Table {self.name} has no column {readable(path)}.")
        parts, rest = [], name
        for part in path:
            parts.append(rest[: len(part)])
            rest = rest[len(part) + 1 :]
        return tuple(parts)

    def _type(self, found: Type) -> Any:
        return type_json(found)

    def _add(self, builder: Any, action: alter_s.AddColumns) -> None:
        for new in action.columns:
            path = (*new.parent, new.field.name)
            if self.has(path) and action.if_not_exists:
                continue
            if new.parent:
                path = (*self.actual(new.parent), new.field.name)
            if new.field.generated is not None or new.field.identity is not None:
                raise UnsupportedFeatureError(
                    f"Cannot add column {readable(path)} to {self.name}: generated columns and "
                    "identity columns are made when a table is created."
                )
            default = None
            if new.field.default is not None:
                default = default_value(self.lake, new.field.default, new.field.type)
            if new.field.required and default is None:
                raise InvalidStatementError(
                    f"Cannot add required column {readable(path)} to {self.name}: rows there "
                    f"have no value for it. Add it without NOT NULL, or with a DEFAULT."
                )
            kind = self._type(new.field.type)
            builder.add_column(
                path, kind, new.field.comment, new.field.required, default_value=default
            )
            self.known[_path_text(path).lower()] = _path_text(path)
            self._move(builder, path, new.after)

    def _move(self, builder: Any, path: Name, after: str | None) -> None:
        if after == "":
            builder.move_first(path)
        elif after is not None:
            builder.move_after(path, self.actual((*path[:-1], after)))

    def _drop(self, builder: Any, action: alter_s.DropColumns) -> None:
        for path in action.columns:
            if self.has(path) or not action.if_exists:
                builder.delete_column(self.actual(path))

    def _rename(self, builder: Any, action: alter_s.RenameColumn) -> None:
        builder.rename_column(self.actual(action.column), action.new_name)

    def _alter(self, builder: Any, action: alter_s.AlterColumn) -> None:
        path = self.actual(action.column)
        if action.required:
            raise InvalidStatementError(
                f"Cannot make column {readable(path)} of {self.name} required: rows there may "
                f"have nulls in it."
            )
        if action.required is False:
            builder.make_column_optional(path)
        if action.type is not None or action.comment is not None:
            kind = None if action.type is None else self._type(action.type)
            builder.update_column(path, kind, doc=action.comment)
        if action.default is not None:
            self._set_default(builder, path, action.default)
        self._move(builder, path, action.after)

    def _set_default(self, builder: Any, path: Name, text: str) -> None:
        kind = str(self.schema.find_type(_path_text(path)))
        value = (
            default_value(self.lake, text, parse_type(_PARSED.get(kind, kind))) if text else None
        )
        if hasattr(builder, "set_default_expression"):  # a format that keeps defaults as written
            builder.set_default_expression(path, text or None)
        else:
            builder.set_default_value(path, value)

    def _replace(self, *_: object) -> None:
        raise UnsupportedFeatureError(
            f"REPLACE COLUMNS on {self.name}: dropping and adding columns by name would lose "
            f"what they hold. Use DROP COLUMN, ADD COLUMN and ALTER COLUMN."
        )

    def _set_identifiers(self, builder: Any, action: alter_s.SetIdentifierFields) -> None:
        builder.set_identifier_fields(*(_path_text(self.actual(p)) for p in action.columns))

    def _drop_identifiers(self, builder: Any, action: alter_s.DropIdentifierFields) -> None:
        current = set(self.schema.identifier_field_names())
        dropped = {_path_text(self.actual(path)) for path in action.columns}
        if dropped - current:
            missing = ", ".join(sorted(dropped - current))
            raise InvalidStatementError(f"{missing} is no identifier field of {self.name}.")
        builder.set_identifier_fields(*sorted(current - dropped))

    _steps: ClassVar[dict[type, Callable[..., None]]] = {
        alter_s.AddColumns: _add,
        alter_s.DropColumns: _drop,
        alter_s.RenameColumn: _rename,
        alter_s.AlterColumn: _alter,
        alter_s.ReplaceColumns: _replace,
        alter_s.SetIdentifierFields: _set_identifiers,
        alter_s.DropIdentifierFields: _drop_identifiers,
    }


# Iceberg's names that a statement reads as another type.
_PARSED = {"timestamp": "timestamp_ntz"}


def _change_spec(builder: Any, table: Table, action: alter_s.AlterAction) -> None:
    if isinstance(action, alter_s.AddPartitionField):
        _add_field(builder, table, action.term)
    elif isinstance(action, alter_s.DropPartitionField):
        builder.remove_field(_field_name(table, action.term))
    elif isinstance(action, alter_s.ReplacePartitionField):
        builder.remove_field(_field_name(table, action.old))
        _add_field(builder, table, action.new)


def _add_field(builder: Any, table: Table, term: PartitionTerm) -> None:
    name = term.name or _default_name(term)
    builder.add_field(_actual_column(table, term.column), term.transform, name)


def _actual_column(table: Table, path: Name) -> str:
    names = {name.lower(): name for name in table.schema.column_names}
    found = names.get(_path_text(path).lower())
    if found is None:
        raise InvalidStatementError(f"Table {table.name} has no column {readable(path)}.")
    return str(found)


def _default_name(term: PartitionTerm) -> str:
    """Return the name that Iceberg's Spark extensions give a new field."""
    column = "_".join(term.column)
    kind, _, number = term.transform.rstrip("]").partition("[")
    if kind == "identity":
        return ".".join(term.column)
    suffix = {"truncate": "trunc"}.get(kind, kind)
    return f"{column}_{suffix}_{number}" if number else f"{column}_{suffix}"


def _field_name(table: Table, term: PartitionTerm) -> str:
    """Return the name of the field that a term means: by its name, or by column and transform."""
    fields = table.spec.fields
    written = _path_text(term.column)
    if term.transform == "identity":
        named = [field.name for field in fields if field.name.lower() == written.lower()]
        if named:
            return str(named[0])
    source = table.schema.find_field(_actual_column(table, term.column)).field_id
    for field in fields:
        if field.source_id == source and str(field.transform) == term.transform:
            return str(field.name)
    raise InvalidStatementError(
        f"Table {table.name} is not partitioned by {term.transform} of {readable(term.column)}."
    )


# --- the other actions


def _rename_table(lake: Lake, table: Table, action: alter_s.RenameTable) -> None:
    new = action.new_name
    if len(new) == 1:
        new = (*table.handle.identifier[:-1], *new)
    lake.rename_table(table.handle.identifier, new_name(lake, new))


def _set_properties(_: Lake, table: Table, action: SetProperties) -> None:
    table.set_properties(action.properties)


def _unset_properties(_: Lake, table: Table, action: UnsetProperties) -> None:
    table.unset_properties(action.names)


def _set_write_order(lake: Lake, table: Table, action: alter_s.SetWriteOrder) -> None:
    if action.order is not None:
        order = [
            OrderBy(_sort_column(lake, table, t.column), t.transform, t.ascending, t.nulls_first)
            for t in action.order
        ]
        alter.set_sort_order(table.handle, order)
    if action.distribution is not None:
        table.set_properties({"write.distribution-mode": action.distribution})


def _sort_column(lake: Lake, table: Table, path: Name) -> Name:
    """Return a sort key's column in the table's spelling, found as the session compares names."""
    schema = table.handle.view().schema
    found = find_column(schema, path, names_without_spark(lake.engine))
    if found is None:
        raise no_such_column(path, schema.arrow.names, readable(path))
    return found.path


def _set_clustering(lake: Lake, table: Table, action: SetClustering) -> None:
    alter.set_clustering(table.handle, [_sort_column(lake, table, path) for path in action.columns])


def _create_ref(_: Lake, table: Table, action: CreateRef) -> None:
    branches.create_ref(table.handle, action)


def _drop_ref(_: Lake, table: Table, action: DropRef) -> None:
    table.drop_ref(action.name, if_exists=action.if_exists, kind=action.kind)


def _set_location(_: Lake, table: Table, action: alter_s.SetLocation) -> None:
    raise UnsupportedFeatureError(f"SET LOCATION of {table.name} to {action.location}: not yet.")


def _add_check(lake: Lake, table: Table, action: alter_s.AddCheck) -> None:
    constraints.add_check(table.handle, lake.engine, action.name, action.text)


def _drop_constraint(_: Lake, table: Table, action: DropConstraint) -> None:
    constraints.drop_constraint(table.handle, action)


def _sync_identity(lake: Lake, table: Table, action: alter_s.SyncIdentity) -> None:
    constraints.sync_identity(table.handle, lake.engine, _actual_column(table, action.column))


_ACTIONS: dict[type, Callable[..., None]] = {
    alter_s.AddCheck: _add_check,
    DropConstraint: _drop_constraint,
    alter_s.SyncIdentity: _sync_identity,
    alter_s.RenameTable: _rename_table,
    SetProperties: _set_properties,
    UnsetProperties: _unset_properties,
    alter_s.SetWriteOrder: _set_write_order,
    SetClustering: _set_clustering,
    CreateRef: _create_ref,
    DropRef: _drop_ref,
    alter_s.SetLocation: _set_location,
}
