"""SHOW and DESCRIBE: metadata as rows, with the columns that Spark gives them."""

from __future__ import annotations

import fnmatch
import json
from typing import TYPE_CHECKING

import pyarrow as pa

from rowlake.catalog import tables as catalog_tables
from rowlake.conditions.column_lookup import find_column
from rowlake.errors import InvalidStatementError
from rowlake.model.column_rules import default_text, generated_as, identity_of
from rowlake.model.human import human_text
from rowlake.model.names import levels_of, quoted
from rowlake.model.schema import DOC, WRITE_DEFAULT, type_name
from rowlake.secrets import redacted, without_passwords
from rowlake.sql.tables import need_table
from rowlake.sqltext.lexer import quote, quote_parts, readable, string_literal
from rowlake.sqltext.names import NameRules
from rowlake.sqltext.types import identity_clause

if TYPE_CHECKING:
    from rowlake.lake import Lake
    from rowlake.model.partition import SortField
    from rowlake.model.schema import Schema
    from rowlake.model.table_schema import FieldType
    from rowlake.model.view import TableView
    from rowlake.sql import statements as s
    from rowlake.sqltext.names import Name
    from rowlake.table import Table


def _strings(**columns: list[str]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


def matches(name: str, pattern: str | None) -> bool:
    """`*` stands for anything and `|` for or, as in Spark's SHOW … LIKE."""
    if pattern is None:
        return True
    choices = pattern.strip().lower().split("|")
    return any(fnmatch.fnmatchcase(name.lower(), choice.strip()) for choice in choices)


def namespace_of(lake: Lake, name: Name | None) -> Name:
    """Return a namespace as written, without the catalog's own name before it."""
    if name is None:
        return lake.workspace.session.namespace
    if len(name) > 1 and name[0].lower() == str(lake.catalog.name).lower():
        return name[1:]
    return name


def show_tables(lake: Lake, statement: s.ShowTables) -> pa.Table:
    """SHOW TABLES: namespace, tableName, isTemporary; Spark's temporary views last."""
    namespace = namespace_of(lake, statement.namespace)
    found = [levels_of(name) for name in lake.tables(namespace)]
    rows = [(quoted(name[:-1]), name[-1], False) for name in found]
    if statement.namespace is None:
        views = lake.spark.catalog.listTables()
        rows += [("", view.name, True) for view in views if view.isTemporary]
    rows = [row for row in rows if matches(row[1], statement.pattern)]
    return pa.table(
        {
            "namespace": pa.array([row[0] for row in rows], pa.string()),
            "tableName": pa.array([row[1] for row in rows], pa.string()),
            "isTemporary": pa.array([row[2] for row in rows], pa.bool_()),
        }
    )


def show_namespaces(lake: Lake, statement: s.ShowNamespaces) -> pa.Table:
    """SHOW NAMESPACES: namespace."""
    inside = () if statement.namespace is None else namespace_of(lake, statement.namespace)
    names = [levels_of(name) for name in lake.namespaces()]
    below = [name for name in names if name[: len(inside)] == inside and name != inside]
    kept = [quoted(name) for name in below if matches(quoted(name), statement.pattern)]
    return _strings(namespace=kept)


def show_current_namespace(lake: Lake, _statement: s.ShowCurrentNamespace) -> pa.Table:
    """SHOW CURRENT NAMESPACE: catalog, namespace."""
    current = quoted(lake.workspace.session.namespace)
    return _strings(catalog=[str(lake.catalog.name)], namespace=[current])


def show_properties(_lake: Lake, statement: s.ShowProperties, table: Table) -> pa.Table:
    """SHOW TBLPROPERTIES: key, value."""
    found = table_properties(table)
    if statement.key is not None:
        missing = f"Table {table.name} does not have property: {statement.key}"
        return _strings(key=[statement.key], value=[found.get(statement.key, missing)])
    keys = sorted(found)
    return _strings(key=keys, value=[found[key] for key in keys])


def table_properties(table: Table) -> dict[str, str]:
    """Return the properties to show, with those that Spark's tables of the format add."""
    handle = table.handle
    head = handle.current_snapshot_id
    added = {
        "format": f"{table.format}/{table.properties.get('write.format.default', 'parquet')}",
        "current-snapshot-id": "none" if head is None else str(head),
        **handle.format.property_facts(handle),
    }
    return {**redacted(table.properties), **added}


def show_columns(_lake: Lake, _statement: s.ShowColumns, table: Table) -> pa.Table:
    """SHOW COLUMNS: col_name."""
    schema = table.handle.view().schema
    return _strings(col_name=list(schema.arrow.names))


def show_partitions(_lake: Lake, _statement: s.ShowPartitions, table: Table) -> pa.Table:
    """SHOW PARTITIONS: partition, as a/b/c texts."""
    found = table.inspect("partitions")
    if "partition" not in found.column_names:
        raise InvalidStatementError(f"Table {table.name} is not partitioned.")
    specs = table.handle.view().specs.values()
    transforms = {field.name: field.transform for spec in specs for field in spec.fields}
    values = found["partition"].combine_chunks()
    columns = [
        _partition_texts(field, column, transforms.get(field.name, "identity"))
        for field, column in zip(values.type, values.flatten(), strict=True)
    ]
    return _strings(partition=["/".join(parts) for parts in zip(*columns, strict=True)])


def _partition_texts(field: pa.Field, values: pa.Array, transform: str) -> list[str]:
    """Return `name=value` for each partition, the value as in the names of folders."""
    is_uuid = type_name(field) == "uuid"
    return [f"{field.name}={human_text(transform, one, is_uuid=is_uuid)}" for one in values]


# --- DESCRIBE


def _spark_types(lake: Lake, schema: Schema) -> list[str]:
    # Imports pyspark: a session exists by now.
    from rowlake.engine.types import spark_schema

    fields = spark_schema(schema.arrow, has_time=lake.engine.has_time).fields
    return [field.dataType.simpleString() for field in fields]


def _comment(field: pa.Field) -> str | None:
    doc = (field.metadata or {}).get(DOC)
    return doc.decode() if doc else None


def transform_text(view: TableView, source_id: int, transform: str) -> str:
    """Return a partition field as CREATE TABLE writes it: `bucket(16, id)`, `days(ts)`."""
    path = view.schema.paths.get(source_id)
    column = readable(path) if path else f"<dropped column {source_id}>"
    kind, _, number = transform.rstrip("]").partition("[")
    if kind == "identity":
        return column
    if number:
        return f"{kind}({number}, {column})"
    return f"{kind}s({column})" if kind in ("year", "month", "day", "hour") else f"{kind}({column})"


def describe_table(lake: Lake, statement: s.DescribeTable, table: Table) -> pa.Table:
    """DESCRIBE [EXTENDED] t: col_name, data_type, comment."""
    view = table.handle.view()
    if statement.column is not None:
        return _describe_column(lake, table, view, statement.column)
    types = _spark_types(lake, view.schema)
    fields = list(view.schema.arrow)
    rows: list[tuple[str, str, str | None]] = [
        (field.name, kind, _comment(field)) for field, kind in zip(fields, types, strict=True)
    ]
    rows += _partition_rows(view, dict(zip((f.name for f in fields), types, strict=True)))
    if statement.extended:
        rows += _detail_rows(lake, table)
    return _strings(
        col_name=[row[0] for row in rows],
        data_type=[row[1] for row in rows],
        comment=[row[2] for row in rows],  # type: ignore[misc]
    )


def _partition_rows(view: TableView, types: dict[str, str]) -> list[tuple[str, str, str | None]]:
    fields = [field for field in view.spec.fields if field.transform != "void"]
    if not fields:
        return []
    if all(field.transform == "identity" for field in fields):
        paths = [view.schema.paths[field.source_id] for field in fields]
        header = [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        return [*header, *((readable(p), types.get(p[0], ""), None) for p in paths)]
    texts = [transform_text(view, field.source_id, field.transform) for field in fields]
    header = [("", "", ""), ("# Partitioning", "", "")]
    return [*header, *((f"Part {n}", text, "") for n, text in enumerate(texts))]


def _detail_rows(lake: Lake, table: Table) -> list[tuple[str, str, str | None]]:
    shown = ",".join(f"{k}={v}" for k, v in sorted(table_properties(table).items()))
    rows: list[tuple[str, str, str | None]] = [
        ("", "", ""),
        ("# Detailed Table Information", "", ""),
        ("Name", f"{lake.catalog.name}.{table.name}", ""),
        ("Type", "MANAGED", ""),
        ("Location", without_passwords(table.location), ""),
        ("Provider", table.format, ""),
        ("Table Properties", f"[{shown}]", ""),
    ]
    comment = table.properties.get("comment")
    return [*rows, ("Comment", comment, "")] if comment else rows


def _describe_column(lake: Lake, table: Table, view: TableView, path: Name) -> pa.Table:
    column = find_column(view.schema, path, NameRules())
    if column is None:
        raise InvalidStatementError(f"Table {table.name} has no column {readable(path)}.")
    wanted = type(view.schema)(pa.schema([column.field]))
    return _strings(
        info_name=["col_name", "data_type", "comment"],
        info_value=[
            ".".join(column.path),
            _spark_types(lake, wanted)[0],
            _comment(column.field) or "NULL",
        ],
    )


def describe_history(lake: Lake, statement: s.DescribeHistory) -> pa.Table:
    """DESCRIBE HISTORY: one row per commit of the current line, newest first."""
    table = need_table(lake, statement.name)
    return table.handle.format.describe_history(table.handle, statement.limit)


def describe_namespace(lake: Lake, statement: s.DescribeNamespace) -> pa.Table:
    """DESCRIBE NAMESPACE: info_name, info_value."""
    name = namespace_of(lake, statement.name)
    found = redacted(catalog_tables.namespace_properties(lake.catalog, name))
    rows = [("Catalog Name", str(lake.catalog.name)), ("Namespace Name", quoted(name))]
    rows += [(key.capitalize(), found[key]) for key in ("comment", "location") if key in found]
    if statement.extended:
        rest = sorted((k, v) for k, v in found.items() if k not in ("comment", "location"))
        shown = ", ".join(f"({key},{value})" for key, value in rest)
        rows.append(("Properties", f"({shown})" if rest else ""))
    return _strings(info_name=[row[0] for row in rows], info_value=[row[1] for row in rows])


def show_create_table(_lake: Lake, _statement: s.ShowCreateTable, table: Table) -> pa.Table:
    """SHOW CREATE TABLE: createtab_stmt, which makes the table again."""
    return _strings(createtab_stmt=[create_text(table) + _alter_texts(table)])


def _alter_texts(table: Table) -> str:
    """Return statements for what CREATE TABLE cannot say: write order and identifier fields."""
    view = table.handle.view()
    alter = f";\nALTER TABLE {quote_parts(table.handle.identifier)}"
    texts = []
    if view.sort_order.fields:
        keys = ", ".join(_sort_text(view, one) for one in view.sort_order.fields)
        mode = table.properties.get("write.distribution-mode", "none")
        texts.append(f"{alter} WRITE {_WRITE_WORDS.get(mode, 'LOCALLY ORDERED BY')} {keys}")
    identifiers = [view.schema.paths[one] for one in view.schema.identifier_field_ids]
    if identifiers:
        named = ", ".join(map(quote_parts, identifiers))
        texts.append(f"{alter} SET IDENTIFIER FIELDS {named}")
    return "".join(texts) + ("\n" if texts else "")


_WRITE_WORDS = {"range": "ORDERED BY", "hash": "DISTRIBUTED BY PARTITION LOCALLY ORDERED BY"}


def _sort_text(view: TableView, field: SortField) -> str:
    direction = "ASC" if field.ascending else "DESC"
    nulls = "FIRST" if field.nulls_first else "LAST"
    return f"{transform_text(view, field.source_id, field.transform)} {direction} NULLS {nulls}"


def create_text(table: Table) -> str:
    """Return the CREATE TABLE statement of a table."""
    view = table.handle.view()
    types = _iceberg_types(table)
    columns = [_column_text(f, types[f.name]) for f in view.schema.arrow]
    lines = [f"CREATE TABLE {quote_parts(table.handle.identifier)} (", ",\n".join(columns) + ")"]
    lines.append(f"USING {table.format}")
    parts = [f for f in view.spec.fields if f.transform != "void"]
    if parts:
        texts = [transform_text(view, f.source_id, f.transform) for f in parts]
        lines.append(f"PARTITIONED BY ({', '.join(texts)})")
    if view.cluster_by:
        named = ", ".join(quote_parts(view.schema.paths[one]) for one in view.cluster_by)
        lines.append(f"CLUSTER BY ({named})")
    comment = table.properties.get("comment")
    if comment:
        lines.append(f"COMMENT {string_literal(comment)}")
    lines.append(f"LOCATION {string_literal(without_passwords(table.location))}")
    properties = {k: v for k, v in table_properties(table).items() if k not in _NOT_SET}
    shown = ",\n".join(
        f"  {string_literal(k)} = {string_literal(v)}" for k, v in sorted(properties.items())
    )
    lines.append(f"TBLPROPERTIES (\n{shown})")
    return "\n".join(lines) + "\n"


_NOT_SET = ("comment", "format", "current-snapshot-id")


def _iceberg_types(table: Table) -> dict[str, str]:
    return {field.name: _type_text(field.field_type) for field in table.schema.fields}


def _type_text(found: FieldType) -> str:
    """Return a type as CREATE TABLE reads it back."""
    if found.name == "struct":
        inner = ", ".join(
            f"{quote(f.name)}: {_type_text(f.field_type)}{' NOT NULL' if f.required else ''}"
            for f in found.fields
        )
        return f"STRUCT<{inner}>"
    if found.fields:
        inner = ", ".join(_type_text(one.field_type) for one in found.fields)
        return f"{'MAP' if found.name == 'map' else 'ARRAY'}<{inner}>"
    names = {"long": "BIGINT", "timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP"}
    return names.get(found.name, found.name.upper())


def _column_text(field: pa.Field, kind: str) -> str:
    text = f"  {quote(field.name)} {kind}" + ("" if field.nullable else " NOT NULL")
    default = (field.metadata or {}).get(WRITE_DEFAULT)
    if default is not None:
        value = json.loads(default)
        text += f" DEFAULT {string_literal(value) if isinstance(value, str) else value}"
    text += "".join(f" {one}" for one in _rules(field))
    comment = _comment(field)
    return f"{text} COMMENT {string_literal(comment)}" if comment else text


def _rules(field: pa.Field) -> list[str]:
    """Return the clauses of CREATE TABLE that say how a column gets its values."""
    default, generated, identity = default_text(field), generated_as(field), identity_of(field)
    found = [] if default is None else [f"DEFAULT {default}"]
    found += [] if generated is None else [f"GENERATED ALWAYS AS ({generated})"]
    return found + ([] if identity is None else [identity_clause(identity)])
