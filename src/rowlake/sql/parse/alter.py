"""ALTER TABLE in all its forms: Spark's own and Iceberg's extensions."""

from __future__ import annotations

from dataclasses import replace

from rowlake.model.metadata_change import (
    DropConstraint,
    SetClustering,
    SetProperties,
    UnsetProperties,
)
from rowlake.sql.alter_statements import (
    AddCheck,
    AddColumns,
    AddPartitionField,
    AlterAction,
    AlterColumn,
    AlterTable,
    DropColumns,
    DropIdentifierFields,
    DropPartitionField,
    NewColumn,
    RenameColumn,
    RenameTable,
    ReplaceColumns,
    ReplacePartitionField,
    SetIdentifierFields,
    SetLocation,
    SetWriteOrder,
    SyncIdentity,
)
from rowlake.sql.parse.create import NAMESPACE_WORDS, take_cluster_columns
from rowlake.sql.parse.refs import take_create_ref, take_drop_ref
from rowlake.sql.parse.views import parse_alter_view
from rowlake.sql.statements import AlterNamespace, Passthrough, Statement
from rowlake.sqltext.cursor import Cursor, properties, property_key
from rowlake.sqltext.lexer import TokenKind
from rowlake.sqltext.terms import SortTerm, take_partition_term, take_sort_terms
from rowlake.sqltext.types import Field, take_field_rest, take_type

_REFS = ("BRANCH", "TAG")


def parse_alter(cursor: Cursor) -> Statement:
    """ALTER TABLE, VIEW or NAMESPACE; the rest is Spark's."""
    cursor.expect("ALTER")
    if cursor.accept("VIEW"):
        return parse_alter_view(cursor)
    if cursor.accept_one(*NAMESPACE_WORDS):
        return _alter_namespace(cursor)
    if not cursor.accept("TABLE"):
        return Passthrough(cursor.text)
    name = cursor.dotted_name("the name of a table")
    actions = _take_actions(cursor)
    cursor.expect_end()
    return AlterTable(name, actions)


def _alter_namespace(cursor: Cursor) -> Statement:
    name = cursor.dotted_name("the name of a namespace")
    cursor.expect("SET")
    cursor.expect_one("PROPERTIES", "DBPROPERTIES")
    found = properties(cursor)
    cursor.expect_end()
    return AlterNamespace(name, found)


def _take_actions(cursor: Cursor) -> tuple[AlterAction, ...]:
    verb = cursor.accept_one(
        "RENAME",
        "ADD",
        "DROP",
        "ALTER",
        "CHANGE",
        "REPLACE",
        "SET",
        "UNSET",
        "WRITE",
        "CREATE",
        "CLUSTER",
    )
    if verb in ("ALTER", "CHANGE"):
        cursor.accept("COLUMN")
        return _take_column_changes(cursor)
    if verb is None:
        cursor.expected(
            "RENAME, ADD, DROP, ALTER, REPLACE, SET, UNSET, WRITE, CREATE or CLUSTER BY"
        )
    actions = {
        "RENAME": _take_rename,
        "ADD": _take_add,
        "DROP": _take_drop,
        "REPLACE": _take_replace,
        "SET": _take_set,
        "UNSET": _take_unset,
        "WRITE": _take_write,
        "CREATE": _take_create,
        "CLUSTER": _take_clustering,
    }
    return (actions[verb](cursor),)


def _take_clustering(cursor: Cursor) -> AlterAction:
    cursor.expect("BY")
    return SetClustering(() if cursor.accept("NONE") else take_cluster_columns(cursor))


def _take_rename(cursor: Cursor) -> AlterAction:
    if cursor.accept("TO"):
        return RenameTable(cursor.dotted_name("the new name of the table"))
    cursor.expect("COLUMN")
    column = cursor.dotted_name("a column")
    cursor.expect("TO")
    return RenameColumn(column, cursor.name("the new name of the column"))


def _take_add(cursor: Cursor) -> AlterAction:
    if cursor.accept("PARTITION", "FIELD"):
        return AddPartitionField(take_partition_term(cursor, named=True))
    if cursor.accept("CONSTRAINT"):
        name = cursor.name("the name of a constraint")
        cursor.expect("CHECK")
        return AddCheck(name, cursor.bracketed()[1:-1].strip())
    cursor.expect_one("COLUMN", "COLUMNS")
    if_not_exists = cursor.if_not_exists()
    bracketed = cursor.accept_symbol("(")
    columns = [_take_new_column(cursor)]
    while cursor.accept_symbol(","):
        columns.append(_take_new_column(cursor))
    if bracketed:
        cursor.expect_symbol(")")
    return AddColumns(tuple(columns), if_not_exists)


def _take_new_column(cursor: Cursor) -> NewColumn:
    *parent, name = cursor.dotted_name("the name of a column")
    field = take_field_rest(cursor, name)
    after = _take_position(cursor)
    field = _with_late_parts(cursor, field)
    return NewColumn(field, tuple(parent), after)


def _with_late_parts(cursor: Cursor, field: Field) -> Field:
    """Spark lets COMMENT and the rest come after FIRST | AFTER too."""
    if cursor.accept("COMMENT"):
        return replace(field, comment=cursor.string("a comment"))
    return field


def _take_position(cursor: Cursor) -> str | None:
    """Take FIRST ('') or AFTER name; None where neither comes."""
    if cursor.accept("FIRST"):
        return ""
    return cursor.name("a column") if cursor.accept("AFTER") else None


def _take_drop(cursor: Cursor) -> AlterAction:
    if cursor.accept("PARTITION", "FIELD"):
        return DropPartitionField(take_partition_term(cursor))
    if cursor.accept("IDENTIFIER", "FIELDS"):
        return DropIdentifierFields(cursor.name_list())
    if cursor.accept("CONSTRAINT"):
        if_exists = cursor.if_exists()
        return DropConstraint(cursor.name("the name of a constraint"), if_exists)
    kind = cursor.accept_one(*_REFS)
    if kind:
        return take_drop_ref(cursor, kind.lower())
    cursor.expect_one("COLUMN", "COLUMNS")
    if_exists = cursor.if_exists()
    bracketed = cursor.accept_symbol("(")
    columns = cursor.name_list()
    if bracketed:
        cursor.expect_symbol(")")
    return DropColumns(columns, if_exists)


def _take_replace(cursor: Cursor) -> AlterAction:
    if cursor.accept("PARTITION", "FIELD"):
        old = take_partition_term(cursor)
        cursor.expect("WITH")
        return ReplacePartitionField(old, take_partition_term(cursor, named=True))
    kind = cursor.accept_one(*_REFS)
    if kind:
        return take_create_ref(cursor, kind.lower(), create=False, replace=True)
    cursor.expect("COLUMNS")
    cursor.expect_symbol("(")
    columns = [take_field_rest(cursor, cursor.name("the name of a column"))]
    while cursor.accept_symbol(","):
        columns.append(take_field_rest(cursor, cursor.name("the name of a column")))
    cursor.expect_symbol(")")
    return ReplaceColumns(tuple(columns))


def _take_create(cursor: Cursor) -> AlterAction:
    replaces = cursor.accept("OR", "REPLACE")
    return take_create_ref(cursor, cursor.expect_one(*_REFS).lower(), replace=replaces)


def _take_set(cursor: Cursor) -> AlterAction:
    if cursor.accept("TBLPROPERTIES"):
        return SetProperties(properties(cursor))
    if cursor.accept("LOCATION"):
        return SetLocation(cursor.string("a location"))
    cursor.expect("IDENTIFIER", "FIELDS")
    return SetIdentifierFields(cursor.name_list())


def _take_unset(cursor: Cursor) -> AlterAction:
    cursor.expect("TBLPROPERTIES")
    cursor.if_exists()  # names that the table does not have are no error
    cursor.expect_symbol("(")
    keys = [property_key(cursor)]
    while cursor.accept_symbol(","):
        keys.append(property_key(cursor))
    cursor.expect_symbol(")")
    return UnsetProperties(tuple(keys))


def _take_write(cursor: Cursor) -> AlterAction:
    """WRITE …: ordered distributes by range, unordered not at all, locally leaves the mode."""
    by_partition = False
    mode: str | None = None
    order: tuple[SortTerm, ...] | None = None
    start = cursor.current
    while not cursor.at_end():
        if not by_partition and cursor.accept("DISTRIBUTED", "BY", "PARTITION"):
            by_partition = True
        elif order is not None:
            cursor.expected("the end of the statement")
        elif cursor.accept("UNORDERED"):
            mode, order = "none", ()
        else:
            mode = None if cursor.accept("LOCALLY") else "range"
            cursor.expect("ORDERED", "BY")
            order = take_sort_terms(cursor)
    if order is None and not by_partition:
        cursor.fail("Expected DISTRIBUTED BY PARTITION, ORDERED BY or UNORDERED", start)
    return SetWriteOrder("hash" if by_partition else mode, order or ())


def _take_column_changes(cursor: Cursor) -> tuple[AlterAction, ...]:
    changes = [_take_column_change(cursor)]
    while cursor.accept_symbol(","):
        changes.append(_take_column_change(cursor))
    return tuple(changes)


def _take_column_change(cursor: Cursor) -> AlterColumn | SyncIdentity:
    change = AlterColumn(cursor.dotted_name("a column"))
    if cursor.accept("SYNC", "IDENTITY"):
        return SyncIdentity(change.column)
    if cursor.at_end():
        cursor.expected("TYPE, COMMENT, SET, DROP, FIRST or AFTER")
    if _at_hive_change(cursor):
        return _take_hive_change(cursor, change)
    while not cursor.at_end() and not cursor.at_symbol(","):
        change = _take_change_part(cursor, change)
    return change


def _at_hive_change(cursor: Cursor) -> bool:
    """Return True at the second name of `CHANGE COLUMN a a type`."""
    words = ("TYPE", "COMMENT", "SET", "DROP", "FIRST", "AFTER")
    return cursor.current.is_name and cursor.current.word not in words


def _take_hive_change(cursor: Cursor, change: AlterColumn) -> AlterColumn:
    at = cursor.current
    if cursor.name().lower() != change.column[-1].lower():
        cursor.fail("CHANGE COLUMN does not rename; write RENAME COLUMN a TO b", at)
    found = take_field_rest(cursor, change.column[-1])
    if found.generated is not None or found.identity is not None:
        cursor.fail("CHANGE COLUMN cannot make a column generated", at)
    return replace(change, type=found.type, comment=found.comment, after=_take_position(cursor))


def _take_change_part(cursor: Cursor, change: AlterColumn) -> AlterColumn:
    if cursor.accept("TYPE"):
        return replace(change, type=take_type(cursor))
    if cursor.accept("COMMENT"):
        return replace(change, comment=cursor.string("a comment"))
    if cursor.accept("SET", "NOT", "NULL"):
        return replace(change, required=True)
    if cursor.accept("DROP", "NOT", "NULL"):
        return replace(change, required=False)
    if cursor.accept("DROP", "DEFAULT"):
        return replace(change, default="")
    if cursor.accept("SET", "DEFAULT"):
        return replace(change, default=cursor.skip_expression("COMMENT", "FIRST", "AFTER"))
    after = _take_position(cursor)
    if after is None or cursor.current.kind is TokenKind.STRING:
        cursor.expected("TYPE, COMMENT, SET, DROP, FIRST or AFTER")
    return replace(change, after=after)
