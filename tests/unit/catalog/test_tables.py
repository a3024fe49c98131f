from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField

from rowlake.catalog import tables
from rowlake.catalog.embedded import EmbeddedCatalog
from rowlake.catalog.filesystem import FileSystemCatalog
from rowlake.catalog.open import open_catalog
from rowlake.errors import (
    CorruptTableError,
    InvalidStatementError,
    RowlakeError,
    StorageError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from rowlake.iceberg.metadata_files import Definition
from rowlake.maintain.iceberg.purge import drop_with_files

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

    from rowlake.catalog.handle import IcebergHandle


ROWS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("s", pa.string())])


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# -- opening ----------------------------------------------------------------------------------


def test_the_default_is_sqlite_in_lakehouse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    opened = open_catalog()
    assert isinstance(opened, EmbeddedCatalog)
    assert files_below(tmp_path) == ["lakehouse/catalog.db"]
    assert opened.properties["warehouse"] == str(tmp_path / "lakehouse")


def test_a_catalog_object_is_taken_as_it_is() -> None:
    given = InMemoryCatalog("m")
    assert open_catalog(None, given) is given


def test_a_mapping_opens_any_catalog_of_pyicebergs(tmp_path: Path) -> None:
    opened = open_catalog(
        str(tmp_path), {"type": "sql", "uri": f"sqlite:///{tmp_path}/x.db", "name": "mine"}
    )
    assert opened.name == "mine"
    assert opened.properties["warehouse"] == str(tmp_path)
    assert isinstance(
        open_catalog(None, {"type": "filesystem", "warehouse": str(tmp_path)}), FileSystemCatalog
    )


def test_an_in_memory_catalog_keeps_its_tables_after_opening(definition: Definition) -> None:
    opened = open_catalog(None, {"type": "in-memory", "warehouse": "memory"})
    tables.create_namespace(opened, "a")
    assert tables.list_namespaces(opened) == [("a",), ("default",)]


def test_a_name_is_looked_up_in_pyicebergs_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyiceberg.catalog
    from pyiceberg.utils.config import Config

    monkeypatch.setenv("PYICEBERG_CATALOG__PROD__URI", f"sqlite:///{tmp_path}/x.db")
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
    assert open_catalog(str(tmp_path), "prod").name == "prod"
    with pytest.raises(InvalidStatementError, match=r"no catalog prd .*known: .*prod"):
        open_catalog(None, "prd")


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"type": "nonsense"}, "nonsense"),
        ({"warehouse": "/w"}, "URI missing"),
        ({"type": "sql", "uri": "oracle://u:hidden@h/d"}, "oracle"),
    ],
)
def test_properties_that_open_nothing_say_why(properties: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidStatementError, match=text) as caught:
        open_catalog(None, properties)
    assert "hidden" not in str(caught.value)


def test_a_server_that_is_not_there_is_a_storage_error_without_the_password() -> None:
    for uri in ("http://127.0.0.1:1", "postgresql+psycopg2://u:hidden@127.0.0.1:1/d"):
        with pytest.raises(StorageError) as caught:
            open_catalog(None, {"type": "rest" if "http" in uri else "sql", "uri": uri})
        assert "127.0.0.1" in str(caught.value)
        assert "hidden" not in str(caught.value)


def test_an_object_store_gets_the_file_system_catalog_and_a_word_about_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowlake.storage.files.Storage.folders", lambda *_: [])
    with caplog.at_level(logging.WARNING, "rowlake"):
        opened = open_catalog("s3://bucket/wh")
    assert isinstance(opened, FileSystemCatalog)
    assert "file-system catalog" in caplog.text


def test_a_warehouse_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for kind in (None, "filesystem"):
        with pytest.raises(StorageError):
            open_catalog(str(tmp_path / "file"), kind)
        with pytest.raises(StorageError):
            open_catalog(str(tmp_path / "file" / "below"), kind)


def test_a_catalog_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_text("this is not a database" * 100)
    with pytest.raises(StorageError, match="not a database"):
        open_catalog(str(tmp_path))


@pytest.mark.parametrize("kind", [None, "filesystem"])
def test_a_warehouse_with_an_odd_path_works(
    tmp_path: Path, definition: Definition, kind: str | None
) -> None:
    for form in (str(tmp_path / "wh #?%41 é=1"), f"file://{tmp_path}/u r#i"):
        opened = open_catalog(form, kind)
        tables.create_namespace(opened, "ns")
        made = tables.create_table(opened, "ns.t", definition)
        assert made.metadata.location == f"{form}/ns/t"
        again = open_catalog(form, kind)
        assert tables.load_table(again, "ns.t").metadata == made.metadata
        assert tables.table_exists(again, "ns.t")
        theirs = again.load_table("ns.t")
        theirs.append(pa.table({"id": pa.array([1, 2]), "s": ["a", "b"]}, schema=ROWS))
        assert again.load_table("ns.t").scan().to_arrow().num_rows == 2
        if kind is None:
            tables.rename_table(again, "ns.t", "ns.u")
        drop_with_files(again, "ns.t" if kind else "ns.u")
        left = [name for name in files_below(tmp_path) if not name.endswith("catalog.db")]
        assert left == []


def test_pyiceberg_itself_opens_the_embedded_catalog(
    tmp_path: Path, definition: Definition
) -> None:
    ours = open_catalog(str(tmp_path))
    tables.create_namespace(ours, "ns")
    made = tables.create_table(ours, "ns.t", definition)
    theirs = load_catalog(
        "rowlake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path)
    )
    assert theirs.load_table("ns.t").metadata == made.metadata
    with theirs.load_table("ns.t").transaction() as change:
        change.set_properties({"k": "v"})
    assert tables.refresh(made).metadata.properties == {"k": "v"}


# -- tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_table_is_created_and_loaded(
    catalog: Catalog, definition: Definition, version: int
) -> None:
    spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "b"))
    order = SortOrder(SortField(source_id=2, transform=IdentityTransform()))
    given = {"format-version": str(version), "owner": "me"}
    made = tables.create_table(catalog, "ns.new", Definition(definition.schema, spec, order, given))
    loaded = tables.load_table(catalog, ("ns", "new"))
    assert loaded.metadata == made.metadata
    assert loaded.metadata.format_version == version
    assert loaded.metadata.properties == {"owner": "me"}
    assert given == {"format-version": str(version), "owner": "me"}
    assert loaded.metadata.spec().fields[0].name == "b"
    assert not loaded.metadata.sort_order().is_unsorted
    assert loaded.name == "ns.new"
    assert tables.refresh(loaded) is loaded


def test_v1_metadata_has_what_v1_readers_look_for(catalog: Catalog, definition: Definition) -> None:
    made = tables.create_table(
        catalog, "ns.old", Definition(definition.schema, properties={"format-version": "1"})
    )
    raw = json.loads(Path(str(made.metadata_location)).read_text())
    assert raw["format-version"] == 1
    assert raw["schema"]["fields"][0]["name"] == "id"
    assert raw["partition-spec"] == []


@pytest.mark.parametrize("name", [("ns", "a.b c"), ("ns", "Größe"), ("ns", "x`y"), ("ns", "a%2F#")])
def test_odd_table_names_work(
    catalog: Catalog, definition: Definition, name: tuple[str, str]
) -> None:
    made = tables.create_table(catalog, name, definition)
    assert tables.list_tables(catalog, "ns") == [name]
    assert tables.load_table(catalog, made.name).metadata == made.metadata
    tables.drop_table(catalog, made.name)
    assert tables.list_tables(catalog, "ns") == []


def test_nested_namespaces_work(catalog: Catalog, definition: Definition) -> None:
    tables.create_namespace(catalog, "ns.inner")
    tables.create_namespace(catalog, "other")
    made = tables.create_table(catalog, "ns.inner.t", definition)
    assert tables.load_table(catalog, ("ns", "inner", "t")).metadata == made.metadata
    assert tables.list_namespaces(catalog) == [("default",), ("ns",), ("other",)]
    assert tables.list_namespaces(catalog, "ns") == [("ns", "inner")]
    assert tables.all_namespaces(catalog) == [
        ("default",),
        ("ns",),
        ("ns", "inner"),
        ("other",),
    ]
    assert tables.list_tables(catalog, "ns") == []
    assert tables.list_tables(catalog, "ns.inner") == [("ns", "inner", "t")]


def test_an_unknown_table_is_not_found_and_near_ones_are_named(
    catalog: Catalog, definition: Definition
) -> None:
    tables.create_table(catalog, "ns.orders", definition)
    with pytest.raises(TableNotFoundError) as caught:
        tables.load_table(catalog, "ns.ordrs")
    assert caught.value.similar == ("ns.orders",)
    assert "Did you mean ns.orders?" in str(caught.value)
    with pytest.raises(TableNotFoundError, match=r"no namespace nss\. Did you mean ns"):
        tables.load_table(catalog, "nss.orders")
    assert not tables.table_exists(catalog, "ns.ordrs")
    assert not tables.table_exists(catalog, "nowhere.ordrs")
    assert tables.table_exists(catalog, "ns.orders")


def test_creating_twice_or_nowhere_is_refused_and_leaves_no_file(
    catalog: Catalog, table: IcebergHandle, definition: Definition, tmp_path: Path
) -> None:
    before = files_below(tmp_path)
    with pytest.raises(InvalidStatementError, match=r"ns\.t exists already"):
        tables.create_table(catalog, "ns.t", definition)
    with pytest.raises(TableNotFoundError, match="no namespace nowhere"):
        tables.create_table(catalog, "nowhere.t", definition)
    for version in ("4", "x"):
        with pytest.raises(UnsupportedFeatureError, match=f"format version {version}"):
            tables.create_table(
                catalog,
                "ns.u",
                Definition(definition.schema, properties={"format-version": version}),
            )
    for name in ("..", "a/b"):
        with pytest.raises(InvalidStatementError, match="folder"):
            tables.create_table(catalog, ("ns", name), definition)
    assert files_below(tmp_path) == before


def test_a_type_newer_than_the_format_version_is_refused(catalog: Catalog) -> None:
    from pyiceberg.types import TimestampNanoType

    newer = Definition(Schema(NestedField(1, "x", TimestampNanoType())))
    with pytest.raises(RowlakeError, match=r"(?i)timestamp"):
        tables.create_table(catalog, "ns.n", newer)


def test_namespaces_are_made_once_and_dropped_when_empty(
    catalog: Catalog, table: IcebergHandle
) -> None:
    with pytest.raises(InvalidStatementError, match="ns exists already"):
        tables.create_namespace(catalog, "ns")
    tables.create_namespace(catalog, "ns", exist_ok=True)
    with pytest.raises(InvalidStatementError, match="not empty"):
        tables.drop_namespace(catalog, "ns")
    with pytest.raises(TableNotFoundError, match="no namespace nope"):
        tables.drop_namespace(catalog, "nope")
    with pytest.raises(TableNotFoundError, match="no namespace nope"):
        tables.list_tables(catalog, "nope")
    tables.drop_table(catalog, "ns.t")
    assert tables.namespace_exists(catalog, "ns")
    tables.drop_namespace(catalog, "ns")
    assert not tables.namespace_exists(catalog, "ns")


def test_who_loses_the_race_for_a_namespace_finds_it_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = SqlCatalog("rowlake", uri=f"sqlite:///{tmp_path / 'c.db'}", warehouse=str(tmp_path))
    tables.create_namespace(opened, "ns")
    looks = iter([False, True, False, True])
    monkeypatch.setattr(opened, "namespace_exists", lambda _: next(looks))
    tables.create_namespace(opened, "ns", exist_ok=True)
    with pytest.raises(InvalidStatementError, match="ns exists already"):
        tables.create_namespace(opened, "ns")


def test_a_dot_inside_a_namespace_is_for_folders_only(catalog: Catalog) -> None:
    if isinstance(catalog, FileSystemCatalog):
        tables.create_namespace(catalog, ("a.b",))
        assert ("a.b",) in tables.list_namespaces(catalog)
    else:
        with pytest.raises(InvalidStatementError, match="dot"):
            tables.create_namespace(catalog, ("a.b",))


def test_renaming_moves_the_name_only(tmp_path: Path, definition: Definition) -> None:
    catalog = open_catalog(str(tmp_path))
    tables.create_namespace(catalog, "ns")
    table = tables.create_table(catalog, "ns.t", definition)
    renamed = tables.rename_table(catalog, "ns.t", "ns.u")
    assert renamed.metadata == table.metadata
    assert tables.list_tables(catalog, "ns") == [("ns", "u")]
    tables.create_table(
        catalog, "ns.t", Definition(definition.schema, location=str(tmp_path / "elsewhere"))
    )
    with pytest.raises(InvalidStatementError, match=r"ns\.t exists"):
        tables.rename_table(catalog, "ns.u", "ns.t")
    with pytest.raises(TableNotFoundError, match=r"no table ns\.none"):
        tables.rename_table(catalog, "ns.none", "ns.x")
    with pytest.raises(TableNotFoundError, match="no namespace nope"):
        tables.rename_table(catalog, "ns.u", "nope.x")


def test_the_file_system_catalog_refuses_what_folders_cannot_do(
    tmp_path: Path, definition: Definition
) -> None:
    catalog = open_catalog(str(tmp_path), "filesystem")
    tables.create_namespace(catalog, "ns")
    table = tables.create_table(catalog, "ns.t", definition)
    with pytest.raises(UnsupportedFeatureError, match="cannot rename"):
        tables.rename_table(catalog, "ns.t", "ns.u")
    with pytest.raises(UnsupportedFeatureError, match="cannot register"):
        tables.register_table(catalog, "ns.u", str(table.metadata_location))
    with pytest.raises(UnsupportedFeatureError, match="leave the location out"):
        tables.create_table(catalog, "ns.v", Definition(definition.schema, location="/elsewhere"))
    with pytest.raises(UnsupportedFeatureError, match="properties of namespaces"):
        tables.create_namespace(catalog, "other", {"owner": "me"})


def test_a_metadata_file_registers_as_a_table(tmp_path: Path, definition: Definition) -> None:
    catalog = open_catalog(str(tmp_path))
    tables.create_namespace(catalog, "ns")
    table = tables.create_table(catalog, "ns.t", definition)
    tables.drop_table(catalog, "ns.t")
    assert Path(str(table.metadata_location)).exists()
    again = tables.register_table(catalog, "ns.again", str(table.metadata_location))
    assert again.metadata == table.metadata
    with pytest.raises(CorruptTableError, match="missing"):
        tables.register_table(catalog, "ns.x", f"{tmp_path}/none.metadata.json")
    with pytest.raises(InvalidStatementError, match="exists already"):
        tables.register_table(catalog, "ns.again", str(table.metadata_location))


def test_purging_deletes_the_bytes_unless_they_are_shared(
    catalog: Catalog, definition: Definition, tmp_path: Path
) -> None:
    before = files_below(tmp_path)
    tables.create_table(catalog, "ns.p", definition)
    drop_with_files(catalog, "ns.p")
    assert files_below(tmp_path) == before
    tables.create_table(
        catalog, "ns.q", Definition(definition.schema, properties={"gc.enabled": "false"})
    )
    with pytest.raises(InvalidStatementError, match=r"gc\.enabled"):
        drop_with_files(catalog, "ns.q")
    assert tables.table_exists(catalog, "ns.q")


# -- damaged and foreign metadata -------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "error", "cause"),
    [
        ("{ not json", CorruptTableError, "not valid JSON"),
        ("[]", CorruptTableError, "not the metadata of a table"),
        ('{"format-version": 2}', CorruptTableError, "invalid metadata"),
        ('{"format-version": 4, "x": 1}', UnsupportedFeatureError, "format version 4"),
        ("\x1f\x8b\x08garbage", CorruptTableError, "not"),
    ],
)
def test_metadata_that_cannot_be_read_says_why(
    catalog: Catalog, table: IcebergHandle, text: str, error: type[Exception], cause: str
) -> None:
    Path(str(table.metadata_location)).write_bytes(text.encode("latin-1"))
    with pytest.raises(error, match=cause) as caught:
        tables.load_table(catalog, "ns.t")
    assert str(table.metadata_location) in str(caught.value)


def test_a_damaged_table_can_still_be_dropped(catalog: Catalog, table: IcebergHandle) -> None:
    Path(str(table.metadata_location)).write_text("{ not json")
    assert tables.table_exists(catalog, "ns.t")
    tables.drop_table(catalog, "ns.t")
    assert not tables.table_exists(catalog, "ns.t")
    with pytest.raises(TableNotFoundError):
        tables.drop_table(catalog, "ns.t")


def test_a_metadata_file_that_is_gone_is_a_corrupt_table(
    tmp_path: Path, definition: Definition
) -> None:
    catalog = open_catalog(str(tmp_path))
    tables.create_namespace(catalog, "ns")
    table = tables.create_table(catalog, "ns.t", definition)
    Path(str(table.metadata_location)).unlink()
    with pytest.raises(CorruptTableError, match="missing"):
        tables.load_table(catalog, "ns.t")


def test_variant_columns_and_encrypted_tables_are_refused(
    catalog: Catalog, table: IcebergHandle
) -> None:
    path = Path(str(table.metadata_location))
    raw = json.loads(path.read_text())
    raw["schemas"][0]["fields"][1]["type"] = "variant"
    path.write_text(json.dumps(raw))
    with pytest.raises(UnsupportedFeatureError, match="variant"):
        tables.load_table(catalog, "ns.t")
    raw["schemas"][0]["fields"][1]["type"] = "string"
    raw["encryption-keys"] = [{"key-id": "k"}]
    path.write_text(json.dumps(raw))
    with pytest.raises(UnsupportedFeatureError, match="encrypted"):
        tables.load_table(catalog, "ns.t")


def test_handles_carry_io_properties_but_no_secrets_of_the_catalog(tmp_path: Path) -> None:
    given = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/x.db",
        "warehouse": str(tmp_path),
        "s3.region": "r",
    }
    catalog = open_catalog(None, given)
    tables.create_namespace(catalog, "ns")
    made = tables.create_table(catalog, "ns.t", Definition(Schema(NestedField(1, "x", LongType()))))
    assert made.io_properties == {"s3.region": "r"}
    assert made.to_pyiceberg().metadata == made.metadata
