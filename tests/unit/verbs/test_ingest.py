"""Files that exist become data files: add_files, snapshot_table, migrate, register_table."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from rowlake.errors import (
    CorruptTableError,
    InvalidStatementError,
    RowlakeError,
    SchemaMismatchError,
)
from rowlake.model.predicate import Leaf, Op
from rowlake.verbs import ingest
from rowlake.write.avro_file import AvroFormat
from tests.lakes import SALES, files_in, make_lake, rows_of, sales

MAPPING = "schema.name-mapping.default"


@pytest.fixture
def lake(tmp_path):
    with make_lake(tmp_path / "lake") as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture
def plain(tmp_path):
    folder = tmp_path / "plain"
    folder.mkdir()
    return folder


def write_by_store(folder, rows: pa.Table, writer=pq.write_table, end="parquet"):
    """Write Hive-style folders without the partition column in the files."""
    for store in sorted(set(rows["store"].to_pylist())):
        part = rows.filter(pa.compute.equal(rows["store"], store)).drop_columns(["store"])
        (folder / f"store={store}").mkdir(exist_ok=True)
        writer(part, folder / f"store={store}" / f"part-0.{end}")


def read_by_pyiceberg(table) -> pa.Table:
    return table.evolve().scan().to_arrow()


def unchanged(table, call, error=RowlakeError, match=None):
    """Run a call that must fail and leave no trace."""
    before = files_in(table.location), table.handle.metadata_location
    with pytest.raises(error, match=match) as raised:
        call()
    assert (files_in(table.location), table.handle.metadata_location) == before
    return raised.value


@pytest.mark.parametrize("version", ["2", "3"])
def test_files_in_folders_become_data_files_with_metrics_and_a_name_mapping(lake, plain, version):
    table = lake.create_table(
        "shop.sales", SALES, partition_by=["store"], properties={"format-version": version}
    )
    write_by_store(plain, sales(100))
    result = table.add_files(str(plain))
    assert (result.operation, result.data_files_added, result.rows_inserted) == (
        "add_files",
        4,
        100,
    )
    (snapshot,) = table.snapshots()
    assert snapshot.operation == "append"
    assert snapshot.summary["added-data-files"] == "4"
    assert snapshot.summary["changed-partition-count"] == "4"
    assert json.loads(table.properties[MAPPING])[0]["names"] == ["id"]
    assert rows_of(table.arrow()) == rows_of(sales(100))
    assert rows_of(read_by_pyiceberg(table)) == rows_of(sales(100))
    files = table.files().to_pylist()
    assert {file["file_path"] for file in files} == {
        str(plain / f"store={i}" / "part-0.parquet") for i in range(4)
    }
    first = next(file for file in files if file["partition"]["store"] == 1)
    bounds = first["readable_metrics"]["id"]
    assert (bounds["lower_bound"], bounds["upper_bound"]) == (1, 97)
    assert (bounds["value_count"], bounds["null_value_count"]) == (25, 0)
    found = table.arrow(where=Leaf(("store",), Op.EQ, (2,)))
    assert found.num_rows == 25


def test_files_and_lists_of_files_go_into_unpartitioned_tables(lake, plain):
    table = lake.create_table("shop.sales", SALES)
    for number in range(3):
        pq.write_table(sales(10, number * 10), plain / f"{number}.parquet")
    table.add_files(str(plain / "0.parquet"))
    table.add_files([plain / "1.parquet", str(plain / "2.parquet")])
    assert rows_of(table.arrow()) == rows_of(sales(30))
    assert len(table.snapshots()) == 2


def test_the_partition_filter_picks_folders(lake, plain):
    table = lake.create_table("shop.sales", SALES, partition_by=["store"])
    write_by_store(plain, sales(40))
    assert table.add_files(str(plain), {"store": 3}).data_files_added == 1
    assert set(table.arrow()["store"].to_pylist()) == {3}
    unchanged(table, lambda: table.add_files(str(plain), {"store": "9"}), match="no folder")
    unchanged(table, lambda: table.add_files(str(plain), {"id": "9"}), match="no partition column")


def test_orc_and_avro_files_are_taken_too(lake, plain):
    table = lake.create_table("shop.sales", SALES, partition_by=["store"])
    write_by_store(plain, sales(20), orc.write_table, "orc")
    table.add_files(str(plain))
    assert rows_of(table.arrow()) == rows_of(sales(20))
    assert set(table.files()["file_format"].to_pylist()) == {"ORC"}
    other = lake.create_table("shop.avro", SALES)
    from rowlake.iceberg.metadata import view_of
    from rowlake.write.context import stored_schema

    schema = stored_schema(view_of(other.handle).schema)
    stream = pa.OSFile(str(plain / "x.avro"), "wb")
    body = AvroFormat(schema, "deflate", {}).open(stream, [])
    body.write(sales(7).cast(schema).to_batches())
    body.close()
    other.add_files(str(plain / "x.avro"))
    assert rows_of(other.arrow()) == rows_of(sales(7))


TYPES = {
    "bool": (pa.bool_(), "true", True),
    "int": (pa.int32(), "-7", -7),
    "long": (pa.int64(), "4000000000", 4000000000),
    "double": (pa.float64(), "1.5", 1.5),
    "decimal": (pa.decimal128(9, 2), "12.50", Decimal("12.50")),
    "date": (pa.date32(), "2024-02-29", datetime.date(2024, 2, 29)),
    "timestamp": (
        pa.timestamp("us"),
        "2024-02-29 10%3A11%3A12.5",
        datetime.datetime(2024, 2, 29, 10, 11, 12, 500000),
    ),
    "string": (pa.string(), "a%2Fb%3Dc %25", "a/b=c %"),
}


@pytest.mark.parametrize("name", list(TYPES))
def test_partition_values_are_unescaped_and_cast(lake, plain, name):
    kind, text, value = TYPES[name]
    table = lake.create_table(
        "shop.t", pa.schema([("id", pa.int64()), ("p", kind)]), partition_by=["p"]
    )
    for folder, number in ((f"p={text}", 1), ("p=__HIVE_DEFAULT_PARTITION__", 2)):
        (plain / folder).mkdir()
        pq.write_table(pa.table({"id": [number]}), plain / folder / "f.parquet")
    table.add_files(str(plain))
    assert rows_of(table.arrow()) == sorted([(1, value), (2, None)], key=repr)
    assert rows_of(read_by_pyiceberg(table)) == rows_of(table.arrow())


def test_folders_that_are_no_values_of_the_column_are_refused(lake, plain):
    table = lake.create_table("shop.sales", SALES, partition_by=["store"])
    (plain / "store=seven").mkdir()
    pq.write_table(sales(1), plain / "store=seven" / "f.parquet")
    error = unchanged(table, lambda: table.add_files(str(plain)), InvalidStatementError)
    assert "'seven'" in str(error) and "store" in str(error)


def test_specs_that_do_not_fit_the_folders_are_refused(lake, plain):
    write_by_store(plain, sales(8))
    none = lake.create_table("shop.none", SALES)
    unchanged(none, lambda: none.add_files(str(plain)), match="no partition spec")
    bucket = lake.create_table("shop.bucket", SALES, partition_by=["bucket(4, store)"])
    unchanged(bucket, lambda: bucket.add_files(str(plain)), match="bucket")
    by_store = lake.create_table("shop.by_store", SALES, partition_by=["store"])
    flat = plain / "flat"
    flat.mkdir()
    pq.write_table(sales(1), flat / "f.parquet")
    unchanged(by_store, lambda: by_store.add_files(str(flat)), match="no partition spec")


def test_an_older_spec_that_fits_is_used(lake, plain):
    table = lake.create_table("shop.sales", SALES, partition_by=["store"])
    with table.evolve().update_spec() as update:
        update.add_field("id", "bucket[4]", "id_bucket")
    write_by_store(plain, sales(8))
    table.add_files(str(plain))
    assert set(table.files()["spec_id"].to_pylist()) == {0}
    assert rows_of(table.arrow()) == rows_of(sales(8))


def test_files_that_are_in_the_table_already_are_refused_unless_told(lake, plain):
    table = lake.create_table("shop.sales", SALES)
    pq.write_table(sales(4), plain / "f.parquet")
    table.add_files(str(plain))
    error = unchanged(table, lambda: table.add_files(str(plain)), match="in the table already")
    assert "f.parquet" in str(error)
    unchanged(table, lambda: table.add_files(f"file://{plain}"), match="in the table already")
    table.add_files(str(plain), check_duplicate_files=False)
    assert table.arrow().num_rows == 8
    twice = [plain / "f.parquet", plain / "f.parquet"]
    unchanged(table, lambda: table.add_files(twice), match="given twice")


def test_a_file_that_another_writer_adds_meanwhile_is_refused(lake, plain, monkeypatch):
    table = lake.create_table("shop.sales", SALES)
    table.append(sales(1))
    pq.write_table(sales(4), plain / "f.parquet")
    run = ingest.engine_rows

    def raced(*args):
        monkeypatch.setattr(ingest, "engine_rows", run)
        written = run(*args)
        lake.table("shop.sales").add_files(str(plain))
        return written

    monkeypatch.setattr(ingest, "engine_rows", raced)
    with pytest.raises(InvalidStatementError, match="in the table already"):
        table.add_files(str(plain))
    assert table.arrow().num_rows == 5
    assert (plain / "f.parquet").exists()


def test_missing_empty_and_corrupt_files_are_named(lake, plain):
    table = lake.create_table("shop.sales", SALES)
    unchanged(table, lambda: table.add_files(str(plain / "nowhere")), match="no file or directory")
    unchanged(table, lambda: table.add_files(str(plain)), match="no data files")
    pq.write_table(sales(4), plain / "a.parquet")
    (plain / "b.parquet").write_bytes(b"PAR1 no parquet at all PAR1")
    error = unchanged(table, lambda: table.add_files(str(plain)), CorruptTableError)
    assert error.location.endswith("b.parquet")
    (plain / "b.parquet").unlink()
    (plain / "c.txt").write_text("hello")
    unchanged(table, lambda: table.add_files(str(plain)), match="no Parquet, ORC or Avro")
    (plain / "c.txt").unlink()
    (plain / "_SUCCESS").touch()
    (plain / ".part.crc").write_text("x")
    (plain / "empty.parquet").touch()
    (plain / "_temporary").mkdir()
    (plain / "_temporary" / "t.parquet").write_text("x")
    table.add_files(str(plain))
    assert table.arrow().num_rows == 4


def test_columns_that_the_table_cannot_read_are_refused(lake, plain):
    table = lake.create_table("shop.sales", SALES)
    target = plain / "f.parquet"

    def refused(rows, match, column=None):
        pq.write_table(rows, target)
        error = unchanged(table, lambda: table.add_files(str(target)), SchemaMismatchError, match)
        assert column is None or error.column == column

    refused(sales(3).set_column(0, "id", pa.array(["a", "b", "c"])), "id is string")
    refused(sales(3).drop_columns(["id"]), "required column id", "id")
    refused(pa.table({"x": [1]}), "no column of the table")
    nulls = pa.table({"id": pa.array([1, None], pa.int64())})
    refused(nulls, "1 nulls", "id")


def test_missing_and_unknown_columns_and_narrower_types_are_fine(lake, plain):
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64()), ("t", pa.timestamp("us"))])
    table = lake.create_table("shop.t", schema)
    when = datetime.datetime(2024, 1, 1, 12)
    rows = pa.table(
        {
            "more": ["z", "y"],
            "x": pa.array([float("nan"), 2.5], pa.float32()),
            "id": pa.array([1, 2], pa.int32()),
            "t": pa.array([when, None], pa.timestamp("ms")),
        }
    )
    pq.write_table(rows, plain / "f.parquet")
    pq.write_table(pa.table({"id": pa.array([3], pa.int64())}), plain / "g.parquet")
    table.add_files(str(plain))
    found = {row["id"]: row for row in table.arrow().to_pylist()}
    assert found[2]["x"] == 2.5 and found[1]["t"] == when and found[3]["x"] is None
    assert table.arrow(where=Leaf(("id",), Op.GT, (1,))).num_rows == 2
    assert table.arrow(where=Leaf(("t",), Op.EQ, (when,))).num_rows == 1
    # NaN is above all numbers, and footers do not count it.
    assert table.arrow(where=Leaf(("x",), Op.GT, (100.0,)))["id"].to_pylist() == [1]


def test_the_field_ids_of_another_table_are_refused(lake, plain):
    table = lake.create_table("shop.sales", SALES)

    def field(name, number):
        return pa.field(name, pa.int64(), metadata={b"PARQUET:field_id": str(number).encode()})

    for name, number in (("store", 1), ("id", 77)):
        rows = pa.table([pa.array([1])], schema=pa.schema([field(name, number)]))
        pq.write_table(rows, plain / "f.parquet")
        unchanged(table, lambda: table.add_files(str(plain)), SchemaMismatchError, "another table")
    table.append(sales(5))
    other = lake.create_table("shop.other", SALES)
    other.add_files(table.files()["file_path"].to_pylist())
    assert rows_of(other.arrow()) == rows_of(sales(5))


def test_files_are_found_by_name_after_the_column_is_renamed(lake, plain):
    table = lake.create_table("shop.sales", SALES)
    pq.write_table(sales(4), plain / "f.parquet")
    table.add_files(str(plain))
    with table.evolve().update_schema() as update:
        update.rename_column("note", "remark")
    assert table.arrow()["remark"].to_pylist() == sales(4)["note"].to_pylist()


def test_a_lost_commit_never_deletes_the_files(lake, plain, monkeypatch):
    from rowlake.iceberg.format import IcebergFormat
    from rowlake.model.outcome import Conflict

    table = lake.create_table("shop.sales", SALES, properties={"commit.retry.num-retries": "0"})
    pq.write_table(sales(4), plain / "f.parquet")
    monkeypatch.setattr(IcebergFormat, "swap", lambda *_, **__: Conflict("someone was faster"))
    unchanged(table, lambda: table.add_files(str(plain)), match="faster")
    assert (plain / "f.parquet").exists()


def test_files_go_onto_branches(lake, plain):
    table = lake.create_table("shop.sales", SALES)
    table.append(sales(2))
    table.create_branch("audit")
    pq.write_table(sales(4, 10), plain / "f.parquet")
    table.add_files(str(plain), branch="audit")
    assert (table.arrow().num_rows, table.arrow(ref="audit").num_rows) == (2, 6)


# ---------------------------------------------------------------------- new tables


def test_a_snapshot_table_reads_the_directory_and_leaves_it_alone(lake, plain):
    write_by_store(plain, sales(20))
    before = files_in(str(plain))
    result = lake.snapshot_table(str(plain), "shop.copy", properties={"owner": "me"})
    table = lake.table("shop.copy")
    assert result.data_files_added == 4
    assert table.properties["gc.enabled"] == "false"
    assert (table.properties["snapshot"], table.properties["owner"]) == ("true", "me")
    order = ["id", "sold_on", "amount", "note", "store"]
    assert table.arrow().column_names == order
    assert rows_of(table.arrow()) == rows_of(sales(20).select(order))
    assert rows_of(read_by_pyiceberg(table)) == rows_of(table.arrow())
    assert str(table.schema.find_type("store")) == "int"
    assert [str(field.transform) for field in table.spec.fields] == ["identity"]
    table.append(sales(4, 100))
    assert files_in(str(plain)) == before
    with pytest.raises(RowlakeError):
        lake.drop_table("shop.copy", purge=True)
    with pytest.raises(InvalidStatementError, match="already"):
        lake.snapshot_table(str(plain), "shop.copy")


def test_a_snapshot_table_inside_its_source_is_refused(lake, plain):
    pq.write_table(sales(2), plain / "f.parquet")
    with pytest.raises(InvalidStatementError, match="overlaps"):
        lake.snapshot_table(str(plain), "shop.copy", location=str(plain / "table"))
    assert not lake.exists("shop.copy")


def test_migrate_makes_the_directory_the_table(lake, plain):
    write_by_store(plain, sales(20), orc.write_table, "orc")
    lake.migrate(str(plain), "shop.moved")
    table = lake.table("shop.moved")
    assert table.location == str(plain)
    assert table.properties["migrated"] == "true"
    table.append(sales(4, 100))
    assert table.arrow().num_rows == 24
    with pytest.raises(InvalidStatementError, match="Iceberg table already"):
        lake.migrate(str(plain), "shop.again")


INFERRED = {
    "int": (["1", "-2"], "int"),
    "long": (["1", "3000000000"], "long"),
    "decimal": (["123456789012345678901"], "decimal(21, 0)"),
    "double": (["1", "2.5"], "double"),
    "date": (["2024-01-01", "2024-12-31"], "date"),
    "timestamp": (["2024-01-01", "2024-01-01 10:00:00"], "timestamp"),
    "string": (["1", "x"], "string"),
    "mixed": (["1", "2024-01-01"], "string"),
    "no date": (["2024-13-01"], "string"),
    "null": (["__HIVE_DEFAULT_PARTITION__"], "string"),
}


@pytest.mark.parametrize("name", list(INFERRED))
def test_partition_types_are_inferred_as_spark_does(lake, plain, name):
    texts, expected = INFERRED[name]
    for text in texts:
        (plain / f"p={text}").mkdir()
        pq.write_table(pa.table({"id": [1]}), plain / f"p={text}" / "f.parquet")
    lake.snapshot_table(str(plain), "shop.t")
    table = lake.table("shop.t")
    assert str(table.schema.find_type("p")) == expected
    assert table.arrow().num_rows == len(texts)


def test_schemas_of_files_are_merged_by_name(lake, plain):
    pq.write_table(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}), plain / "1.parquet")
    pq.write_table(pa.table({"c": [1.5], "a": pa.array([2], pa.int64())}), plain / "2.parquet")
    lake.snapshot_table(str(plain), "shop.t")
    assert lake.table("shop.t").arrow().sort_by("a").to_pylist() == [
        {"a": 1, "b": "x", "c": None},
        {"a": 2, "b": None, "c": 1.5},
    ]
    pq.write_table(pa.table({"a": ["text"]}), plain / "3.parquet")
    with pytest.raises(SchemaMismatchError, match="Column a"):
        lake.snapshot_table(str(plain), "shop.u")
    assert not lake.exists("shop.u")


def test_folders_that_disagree_are_refused(lake, plain):
    write_by_store(plain, sales(8))
    pq.write_table(sales(2), plain / "f.parquet")
    with pytest.raises(InvalidStatementError, match="disagree"):
        lake.snapshot_table(str(plain), "shop.t")


def test_int96_timestamps_of_spark_have_a_zone(lake, plain):
    when = pa.array([datetime.datetime(2024, 1, 1, 12)], pa.timestamp("us"))
    pq.write_table(pa.table({"t": when}), plain / "f.parquet", use_deprecated_int96_timestamps=True)
    lake.snapshot_table(str(plain), "shop.t")
    table = lake.table("shop.t")
    assert str(table.schema.find_type("t")) == "timestamptz"
    assert table.arrow()["t"].cast(pa.timestamp("us")).to_pylist() == when.to_pylist()


def test_nested_columns_and_maps_are_kept(lake, plain):
    rows = pa.table(
        {
            "s": pa.array(
                [{"a": 1, "b": ["x"]}], pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))])
            ),
            "m": pa.array([[("k", 2.5)]], pa.map_(pa.string(), pa.float64())),
        }
    )
    pq.write_table(rows, plain / "f.parquet")
    lake.snapshot_table(str(plain), "shop.t")
    assert lake.table("shop.t").arrow().to_pylist() == rows.to_pylist()


# ---------------------------------------------------------------------- register


def test_a_registered_table_is_the_one_that_its_metadata_names(lake, tmp_path):
    table = lake.create_table("shop.sales", SALES)
    table.append(sales(6))
    location = table.handle.metadata_location
    with make_lake(tmp_path / "other") as other:
        other.create_namespace("here")
        found = other.register_table("here.sales", location)
        assert rows_of(found.arrow()) == rows_of(sales(6))
        with pytest.raises(InvalidStatementError, match="already"):
            other.register_table("here.sales", location)
        with pytest.raises(RowlakeError):
            other.register_table("here.none", location + ".gone")
        assert other.tables("here") == ["here.sales"]
