"""What new users ran into, and works without a JVM."""

from __future__ import annotations

import pytest

from rowlake.engine.datasource import RowlakeSource
from rowlake.engine.sealed_errors import DRIVER_SEAL
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.query.relation import OPTIONS, relation_of
from rowlake.stream import source_options
from tests.lakes import make_lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    with make_lake(tmp_path_factory.mktemp("walk") / "lake") as opened:
        opened.create_namespace("shop")
        made = opened.create_table(
            "shop.sales", "id BIGINT NOT NULL, note STRING, paid BOOLEAN, n INT"
        )
        made.append([{"id": key, "note": "new", "paid": False, "n": key} for key in range(10)])
        yield opened
        assert not opened.engine.has_session


def test_position_deletes_of_a_table_with_required_columns_are_valid_rows(lake):
    table = lake.table("shop.sales")
    table.delete("id = 9", mode="merge-on-read")
    found = table.inspect("position_deletes")
    found.validate(full=True)
    assert found["pos"].to_pylist() == [9]
    assert all(field.nullable for field in found.schema.field("row").type)
    found.select(["row"]).cast(found.select(["row"]).schema)


@pytest.mark.parametrize(
    ("assigned", "expected"),
    [
        ("note = 'it''s \"sent\"'", {"note": 'it\'s "sent"'}),
        ("NOTE = NULL, paid = TRUE", {"note": None, "paid": True}),
        ("n = -7, sales.note = 'x'", {"n": -7, "note": "x"}),
    ],
)
def test_an_update_to_literals_starts_no_jvm(lake, assigned, expected):
    counts = lake.sql(f"UPDATE shop.sales SET {assigned} WHERE id = 1").collect()[0]
    assert counts.num_updated_rows == 1
    (row,) = [row for row in lake.table("shop.sales").arrow().to_pylist() if row["id"] == 1]
    assert {name: row[name] for name in expected} == expected
    assert not lake.engine.has_session


def test_an_unknown_option_of_a_read_is_refused(lake):
    defaults = {"warehouse": str(lake.catalog.properties["warehouse"]), "table": "shop.sales"}
    assert relation_of(defaults, {"Branch": "main"}).schema.names[0] == "id"
    for wrong in ({"snapshotid": "1"}, {"snapshot-id": "x"}):
        with pytest.raises(InvalidStatementError, match="snapshot"):
            relation_of(defaults, wrong)


def test_options_of_streams_are_known():
    names = {value for key, value in vars(source_options).items() if key.isupper()}
    assert names - {"earliest", "latest"} <= set(OPTIONS)


def test_a_write_through_the_data_source_says_how_to_write():
    source = type("Source", (RowlakeSource,), {"seal": DRIVER_SEAL})({})
    with pytest.raises(UnsupportedFeatureError, match=r"rowlake\.attach"):
        source.writer(None, False)
