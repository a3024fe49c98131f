"""The embedded lake's catalog answers as PyIceberg's own on the same file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.exceptions import NoSuchNamespaceError

from rowlake.catalog import tables
from rowlake.catalog.embedded import FILE_NAME, EmbeddedCatalog
from rowlake.catalog.open import open_catalog
from rowlake.errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path

    from rowlake.iceberg.metadata_files import Definition


def run(folder: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        connection.execute(statement, values)
        connection.commit()


@pytest.fixture
def opened(tmp_path: Path, definition: Definition) -> Any:
    catalog = open_catalog(str(tmp_path))
    for name in (("a",), ("a", "b"), ("a_b",), ("x", "y", "z"), ("a%",)):
        tables.create_namespace(catalog, name)
    tables.create_namespace(catalog, "owned", {"owner": "me", "location": str(tmp_path / "o")})
    for name in ("a.t", "a.u", "x.y.z.t", "owned.t"):
        tables.create_table(catalog, name, definition)
    return catalog


SPACES = [("a",), ("a", "b"), ("a_b",), ("a%",), ("x",), ("x", "y"), ("owned",), ("ab",), ("b",)]


@pytest.mark.parametrize("space", SPACES, ids=".".join)
def test_namespaces_are_those_that_pyiceberg_sees(opened: Any, space: tuple[str, ...]) -> None:
    whole = opened.whole
    assert opened.namespace_exists(space) == whole.namespace_exists(space)
    if not whole.namespace_exists(space):
        for look in (opened.list_tables, opened.list_namespaces, opened.load_namespace_properties):
            with pytest.raises(NoSuchNamespaceError):
                look(space)
        return
    assert sorted(opened.list_tables(space)) == sorted(whole.list_tables(space))
    assert sorted(opened.list_namespaces(space)) == sorted(whole.list_namespaces(space))
    assert opened.load_namespace_properties(space) == whole.load_namespace_properties(space)


def test_top_namespaces_and_existence_of_tables(opened: Any) -> None:
    assert opened.list_namespaces() == sorted(opened.whole.list_namespaces())
    assert opened.table_exists("a.t")
    assert not opened.table_exists("a.nope")
    assert opened.load_table("a.t").metadata_location == opened.pointer("a.t")


def test_views_of_other_engines_are_no_tables(opened: Any, tmp_path: Path) -> None:
    insert = (
        "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, "
        "metadata_location, iceberg_type) VALUES (?, ?, ?, ?, ?)"
    )
    run(tmp_path, insert, "rowlake", "a", "v", "nowhere", "VIEW")
    assert opened.list_tables("a") == [("a", "t"), ("a", "u")]
    assert not tables.table_exists(opened, "a.v")


def test_the_older_layout_without_kinds_of_tables(opened: Any, tmp_path: Path) -> None:
    run(tmp_path, "ALTER TABLE iceberg_tables DROP COLUMN iceberg_type")
    again = open_catalog(str(tmp_path))
    assert again.list_tables("a") == [("a", "t"), ("a", "u")]
    assert tables.load_table(again, "a.t").metadata.schema().find_field("id").field_id == 1


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"this is not a database, and long enough to tell" * 100)
    with pytest.raises(StorageError, match="not a database"):
        open_catalog(str(tmp_path))


def test_pyicebergs_own_verbs_work_on_it(opened: Any, definition: Definition) -> None:
    assert isinstance(opened, EmbeddedCatalog)
    made = opened.create_table("a.new", definition.schema)
    made.transaction().set_properties(k="v").commit_transaction()
    assert opened.rename_table("a.new", "a.newer").properties == {"k": "v"}
    transaction = opened.create_table_transaction("a.later", definition.schema)
    transaction.commit_transaction()
    opened.drop_table("a.later")
    opened.register_table("a.later", opened.pointer("a.newer"))
    assert opened.update_namespace_properties("a", updates={"p": "1"}).updated == ["p"]
    assert opened.load_namespace_properties("a")["p"] == "1"
    opened.create_namespace("gone")
    opened.drop_namespace("gone")
    assert not opened.namespace_exists("gone")
    for refused in (opened.list_views, opened.view_exists, opened.load_view, opened.drop_view):
        with pytest.raises(NotImplementedError):
            refused("a.t")
    with pytest.raises(NotImplementedError):
        opened.register_view("a.v", "nowhere")
    opened.close()
