"""DDL, SHOW, DESCRIBE, EXPLAIN and wrong statements need no JVM."""

from __future__ import annotations

import pytest

from rowlake.engine import spark as engine
from rowlake.engine.shown_rows import shown_rows
from rowlake.errors import InvalidStatementError
from tests.lakes import make_lake


@pytest.fixture
def lake(tmp_path, monkeypatch):
    def refuse(*_):
        raise AssertionError("a session was started")

    monkeypatch.setattr(engine, "make_session", refuse)
    monkeypatch.setattr(engine, "active_session", lambda: None)
    with make_lake(tmp_path / "lake") as opened:
        opened.sql("CREATE NAMESPACE shop")
        opened.sql("CREATE TABLE shop.t (id BIGINT NOT NULL, v STRING) PARTITIONED BY (v)")
        yield opened


def test_tables_are_listed_and_described(lake, capsys):
    assert [row.tableName for row in lake.sql("SHOW TABLES IN shop").collect()] == ["t"]
    lake.sql("SHOW NAMESPACES").show()
    assert (
        capsys.readouterr().out
        == "+---------+\n|namespace|\n+---------+\n|  default|\n|     shop|\n+---------+\n\n"
    )
    described = lake.sql("DESCRIBE shop.t")
    assert described.columns == ["col_name", "data_type", "comment"]
    assert described.count() == described.toArrow().num_rows > 2
    assert lake.sql("SHOW CREATE TABLE shop.t").collect()[0][0].startswith("CREATE TABLE")


def test_tables_are_altered_and_dropped(lake, capsys):
    lake.sql("ALTER TABLE shop.t ADD COLUMN w INT")
    lake.sql("ALTER TABLE shop.t SET TBLPROPERTIES ('a' = 'b')")
    done = lake.sql("DROP TABLE shop.t")
    assert (done.columns, done.count(), done.collect(), repr(done)) == ([], 0, [], "DataFrame[]")
    done.show()
    assert capsys.readouterr().out == "++\n||\n++\n++\n\n"
    assert lake.tables() == []


def test_a_delete_is_explained_and_run(lake):
    lake.table("shop.t").append([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    assert "DELETE" in lake.sql("EXPLAIN DELETE FROM shop.t WHERE id = 1").collect()[0][0].upper()
    (counts,) = lake.sql("DELETE FROM shop.t WHERE id = 1").collect()
    assert counts.num_deleted_rows == 1


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("SELEC 1", "No statement begins with SELEC. Did you mean SELECT?"),
        ("CREATE TABLE shop.u (id bigint", "Expected )"),
        ("frobnicate", "No statement begins with frobnicate."),
        ("ALTER TABLE shop.t ADD", "Expected"),
    ],
)
def test_wrong_statements_are_told_at_once(lake, statement, words):
    with pytest.raises(InvalidStatementError) as raised:
        lake.sql(statement)
    assert words in str(raised.value)


def test_rows_are_shown_cut_and_escaped():
    rows = [(1, "a\nb", None), (22, "x" * 30, True)]
    assert shown_rows(["n", "t", "b"], rows, 1, 20) == (
        "+---+----+----+\n|  n|   t|   b|\n+---+----+----+\n|  1|a\\nb|NULL|\n+---+----+----+\n"
        "only showing top 1 row"
    )
    assert f"|{'x' * 17}...|" in shown_rows(["t"], [("x" * 30,)], 20, 20)
    assert f"|{'x' * 30}|" in shown_rows(["t"], [("x" * 30,)], 20, 0)
    assert shown_rows(["t"], [("日本",)], 20, 20) is None
