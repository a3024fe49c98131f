"""The builder, `Table.update`, arguments and the command line, through a real session."""

from __future__ import annotations

import datetime as dt
import json
import sys

import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import rowlake
from rowlake.cli import app as cli
from rowlake.cli import options
from rowlake.errors import InvalidStatementError

NEW = pa.table(
    {
        "id": pa.array([2, 3, 4], pa.int64()),
        "name": ["B", None, "D"],
        "day": pa.array([dt.date(2024, 2, 2)] * 3),
    }
)
START = [(1, "a", dt.date(2024, 1, 1)), (2, "b", dt.date(2024, 1, 2)), (3, "c", None)]
MERGED = [START[0], (2, "B", dt.date(2024, 2, 2)), (4, "D", dt.date(2024, 2, 2))]


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    found = rowlake.connect(str(tmp_path_factory.mktemp("lake")), spark=spark)
    found.sql("CREATE NAMESPACE shop")
    yield found
    found.close()


@pytest.fixture
def table(lake):
    lake.drop_table("shop.t", if_exists=True)
    lake.sql("CREATE TABLE shop.t (id bigint NOT NULL, name string, day date)")
    names = ("id", "name", "day")
    lake.table("shop.t").append([dict(zip(names, row, strict=True)) for row in START])
    return lake.table("shop.t")


def rows(table, **at):
    return sorted(tuple(row) for row in table.df(**at).collect())


def source_of(kind, lake, folder):
    if kind == "spark":
        return lake.engine.from_arrow(NEW)
    if kind == "reader":
        return NEW.to_reader()
    if kind == "pandas":
        return NEW.to_pandas(date_as_object=True)
    if kind == "polars":
        return polars.from_arrow(NEW)
    if kind == "dicts":
        return NEW.to_pylist()
    if kind == "parquet":
        pq.write_table(NEW, folder / "new.parquet")
    elif kind == "csv":
        pyarrow.csv.write_csv(NEW, folder / "new.csv")
    elif kind == "json":
        lines = [json.dumps(row, default=str) for row in NEW.to_pylist()]
        (folder / "new.json").write_text("\n".join(lines))
    else:
        return NEW
    return str(folder / f"new.{kind}")


KINDS = ["arrow", "spark", "reader", "pandas", "polars", "dicts", "parquet", "csv"]


@pytest.mark.parametrize("kind", KINDS)
def test_merge_from_every_source(lake, table, tmp_path, kind) -> None:
    result = (
        table.merge(source_of(kind, lake, tmp_path), on=["id"])
        .when_matched_delete(condition="s.name IS NULL")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    assert rows(table) == MERGED
    assert (result.rows_updated, result.rows_deleted, result.rows_inserted) == (1, 1, 1)


def test_merge_by_expressions_and_values(table) -> None:
    result = (
        table.merge(NEW, on="t.id = s.id AND s.name IS NOT NULL")
        .when_matched_update({"name": "concat(t.name, s.name)", "day": dt.date(2020, 1, 1)})
        .when_not_matched_insert({"id": "s.id * 10", "name": "coalesce(s.name, 'none')"})
        .when_not_matched_by_source_update({"name": "'gone'"}, condition="t.id = 1")
        .when_not_matched_by_source_delete()
        .execute()
    )
    assert rows(table) == [
        (1, "gone", dt.date(2024, 1, 1)),
        (2, "bB", dt.date(2020, 1, 1)),
        (30, "none", None),
        (40, "D", None),
    ]
    assert (result.rows_updated, result.rows_deleted, result.rows_inserted) == (2, 1, 2)


def test_merge_into_a_branch_leaves_main(table) -> None:
    table.create_branch("audit")
    table.merge(NEW, on=["id"], branch="audit").when_matched_delete().execute()
    assert rows(table) == START
    assert rows(table, ref="audit") == START[:1]


def test_conditions_may_name_other_tables(lake, table) -> None:
    lake.drop_table("shop.u", if_exists=True)
    lake.sql("CREATE TABLE shop.u AS SELECT 2 AS id")
    table.update({"name": "upper(name)"}, where="id IN (SELECT id FROM shop.u)")
    assert rows(table)[1][1] == "B"
    table.merge(lake.table("shop.u"), on=["id"]).when_matched_delete().execute()
    assert [row[0] for row in rows(table)] == [1, 3]


def test_update_by_values(table) -> None:
    result = table.update({"day": dt.date(2000, 2, 29), "name": None}, where="id > 1")
    assert result.rows_updated == 2
    assert rows(table) == [START[0], *[(n, None, dt.date(2000, 2, 29)) for n in (2, 3)]]


def test_arguments_by_position_and_by_name(lake, table) -> None:
    counts = lake.sql("UPDATE shop.t SET name = ?, day = ? WHERE id = ?", ["x", None, 2])
    assert [tuple(row) for row in counts.collect()] == [(1, 1, 0, 0)]
    lake.sql("DELETE FROM shop.t WHERE id = ?", [3])
    lake.sql(
        "MERGE INTO shop.t USING (SELECT :key AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET name = :name",
        {"key": 1, "name": "y"},
    )
    assert rows(table) == [(1, "y", dt.date(2024, 1, 1)), (2, "x", None)]
    with pytest.raises(InvalidStatementError, match="2 parameters"):
        lake.sql("UPDATE shop.t SET name = ? WHERE id = ?", [1])


def test_common_tables_before_statements(lake, table) -> None:
    common = "WITH c AS (SELECT 2 AS id) "
    lake.sql(f"{common}UPDATE shop.t SET name = 'two' WHERE id IN (SELECT id FROM c)")
    lake.sql(f"{common}MERGE INTO shop.t USING c ON t.id = c.id + 1 WHEN MATCHED THEN DELETE")
    assert [row[:2] for row in rows(table)] == [(1, "a"), (2, "two")]
    lake.sql(f"{common}DELETE FROM shop.t WHERE id IN (SELECT id FROM c)")
    assert [row[0] for row in rows(table)] == [1]


@pytest.fixture
def run(lake, monkeypatch, capfdbinary):
    """Run a command on the lake of these tests."""

    class Kept:
        def __enter__(self):
            return lake

        def __exit__(self, *_):
            return None

    def call(*arguments: str) -> list[dict]:
        monkeypatch.setattr(options, "open_lake", lambda *_, **__: Kept())
        monkeypatch.setattr(sys, "argv", ["rowlake", *arguments, "-o", "json", "--quiet"])
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as raised:
            cli.main()
        out, err = capfdbinary.readouterr()
        assert not raised.value.code, err.decode()
        return json.loads(out)

    return call


@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_merge_on_the_command_line(lake, table, run, tmp_path, kind) -> None:
    path = source_of(kind, lake, tmp_path)
    (result,) = run(
        *["merge", "shop.t", "--using", path, "--keys", "id"],
        *["--when-matched", "AND s.name IS NULL THEN DELETE"],
        *["--when-matched", "UPDATE SET name = s.name, day = CAST(s.day AS date)"],
        *[
            "--when-not-matched",
            "INSERT (id, name, day) VALUES (s.id, s.name, CAST(s.day AS date))",
        ],
    )
    assert (result["rows_updated"], result["rows_deleted"], result["rows_inserted"]) == (1, 1, 1)
    assert rows(table) == MERGED


def test_update_and_delete_on_the_command_line(table, run) -> None:
    (result,) = run(
        "update", "shop.t", "--set", "name = upper(name), day = NULL", "--where", "id < 3"
    )
    assert result["rows_updated"] == 2
    (result,) = run("delete", "shop.t", "--where", "id = (SELECT max(id) FROM shop.t)")
    assert result["rows_deleted"] == 1
    assert rows(table) == [(1, "A", None), (2, "B", None)]
    query = "SELECT id, 'q' AS name, current_date() AS day FROM shop.t WHERE id = 1"
    run("merge", "shop.t", "--using", query, "--keys", "id", "--when-matched", "delete")
    assert rows(table) == [(2, "B", None)]
