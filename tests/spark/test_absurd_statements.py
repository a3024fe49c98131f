"""Statements that Spark's stack cannot take end in rowlake's error, and the session goes on."""

from __future__ import annotations

import pytest

import rowlake
from rowlake.cli.output import rows_of
from rowlake.errors import InvalidStatementError

DEEP = "(" * 450 + "id = 1" + ")" * 450
SUM = " + ".join(["id"] * 1_900)


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    found = rowlake.connect(str(tmp_path_factory.mktemp("lake")), spark=spark)
    found.sql("CREATE NAMESPACE ns")
    found.sql("CREATE TABLE ns.t (id bigint, v string)")
    found.sql("INSERT INTO ns.t VALUES (1, 'a'), (2, 'b')")
    yield found
    found.close()


STATEMENTS = {
    "query": lambda lake: lake.sql(f"SELECT * FROM ns.t WHERE {DEEP}").collect(),
    "query without a table": lambda lake: lake.sql(f"SELECT {SUM} FROM range(3)").collect(),
    "command line": lambda lake: rows_of(lake, f"SELECT {SUM} FROM ns.t"),
    "where": lambda lake: lake.table("ns.t").df(where=f"{SUM} = 1 AND {DEEP}").collect(),
    "update": lambda lake: lake.table("ns.t").update({"id": SUM}, where=f"abs({SUM}) > 1"),
    "delete": lambda lake: lake.table("ns.t").delete(f"{SUM} = 7 AND NOT {DEEP}"),
    "procedure": lambda lake: lake.sql(f"CALL system.ancestors_of('ns.t', {SUM})"),
}


@pytest.mark.parametrize("way", STATEMENTS)
def test_what_is_too_deep_for_spark_is_an_invalid_statement(lake, capfd, way) -> None:
    with pytest.raises(InvalidStatementError, match="nested too deep for Spark") as raised:
        STATEMENTS[way](lake)
    assert "\tat " not in str(raised.value)
    assert "StackOverflow" not in capfd.readouterr().err
    assert lake.sql("SELECT count(*) FROM ns.t").collect()[0][0] == 2


def test_long_lists_and_chains_are_answered(lake) -> None:
    listed = ", ".join(map(str, range(2, 20_000)))
    assert lake.sql(f"SELECT v FROM ns.t WHERE id IN ({listed})").collect()[0][0] == "b"
    chain = " OR ".join(f"id = {number}" for number in range(2, 2_000))
    assert lake.sql(f"SELECT v FROM ns.t WHERE {chain}").collect()[0][0] == "b"
    assert [row.id for row in lake.table("ns.t").df(where=chain).collect()] == [2]
