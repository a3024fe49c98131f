"""Rows that matched and keep a source row from being inserted, deleted while a MERGE runs.

The outcome is that of one after the other: the MERGE inserts what it finds no match for any more.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowlake.model.change import Isolation
from rowlake.verbs.write import WriteOptions
from tests.lakes import make_lake
from tests.parts.evaluated import insert_missing
from tests.parts.stopping import meanwhile

pytestmark = pytest.mark.delta

NAME = "shop.t"
SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("note", pa.string())])


@pytest.fixture(params=["2", "3"])
def table(tmp_path, table_format, request):
    with make_lake(tmp_path) as lake:
        lake.create_namespace("shop")
        properties = {"format-version": request.param, "commit.retry.min-wait-ms": "1"}
        table = lake.create_table(NAME, SCHEMA, properties=properties)
        table.append(rows({1: "old", 2: "old", 3: "old"}))
        yield table


def rows(held: dict[int, str]) -> pa.Table:
    columns = {"id": list(held), "note": list(held.values())}
    return pa.table(columns, schema=SCHEMA)


def held(table) -> dict[int, str]:
    found = table.arrow()
    return dict(zip(found["id"].to_pylist(), found["note"].to_pylist(), strict=True))


def merge(table, isolation: Isolation | None = None):
    """Run a MERGE of two rows, one of which is there, that only inserts."""
    return insert_missing(table, rows({2: "new", 7: "new"}), WriteOptions(isolation=isolation))


def test_an_insert_only_merge_beside_an_overwrite_inserts_what_was_overwritten(table):
    with meanwhile(lambda: table.overwrite(rows({9: "other"}))):
        merge(table)
    assert held(table) == {2: "new", 7: "new", 9: "other"}


def test_an_insert_only_merge_beside_a_delete_of_a_match_inserts_it(table):
    with meanwhile(lambda: table.delete("id = 2", mode="merge-on-read")):
        merge(table)
    assert held(table) == {1: "old", 2: "new", 3: "old", 7: "new"}


def test_an_upsert_beside_a_delete_of_a_row_that_it_leaves_unchanged_inserts_it(table):
    with meanwhile(lambda: table.delete("id = 2", mode="merge-on-read")):
        table.upsert(rows({2: "old", 7: "new"}), ["id"])
    assert held(table) == {1: "old", 2: "old", 3: "old", 7: "new"}


def test_deletes_after_a_compaction_of_matches_are_noticed(table):
    table.append(rows({4: "old"}))

    def others() -> None:
        table.rewrite_data_files(options={"rewrite-all": "true"})
        table.delete("id = 2", mode="merge-on-read")

    with meanwhile(others):
        merge(table)
    assert held(table) == {1: "old", 2: "new", 3: "old", 4: "old", 7: "new"}


def test_a_compaction_of_matches_is_no_conflict(table):
    table.append(rows({4: "old"}))
    with meanwhile(lambda: table.rewrite_data_files(options={"rewrite-all": "true"})):
        written = merge(table)
    assert written.rows_inserted == 1
    assert held(table) == {1: "old", 2: "old", 3: "old", 4: "old", 7: "new"}


def test_snapshot_isolation_does_not_look_for_deleted_matches(table):
    with meanwhile(lambda: table.delete("id = 2", mode="merge-on-read")):
        merge(table, isolation=Isolation.SNAPSHOT)
    assert held(table) == {1: "old", 3: "old", 7: "new"}
