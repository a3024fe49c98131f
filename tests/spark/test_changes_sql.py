"""Change feeds in statements: `ns.t.changes`, `table_changes(…)`, `create_changelog_view`."""

from __future__ import annotations

from unittest import mock

import pytest

import rowlake
from rowlake.errors import InvalidStatementError, RowlakeError
from rowlake.lake import feed
from tests.lakes import SALES, sales


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    with rowlake.connect(str(tmp_path_factory.mktemp("changes")), spark=spark) as found:
        found.create_namespace("ns")
        yield found


@pytest.fixture
def table(lake):
    lake.drop_table("ns.t", if_exists=True)
    table = lake.create_table("ns.t", SALES, properties={"format-version": "2"})
    table.append(sales(4))
    table.delete("id = 1", mode="merge-on-read")
    table.append(sales(1, first=9))
    return table


def rows(frame) -> list[tuple]:
    return sorted(map(tuple, frame.collect()))


def ids(table) -> list[int]:
    return [each.snapshot_id for each in table.snapshots()]


def test_the_metadata_table_changes_is_the_whole_history(lake, table):
    found = lake.sql("SELECT _change_ordinal, _change_type, id FROM ns.t.changes")
    begin = [(0, "insert", number) for number in range(4)]
    assert rows(found) == [*begin, (1, "delete", 1), (2, "insert", 9)]
    assert lake.sql("SELECT * FROM ns.t.changes").columns[-4:] == [
        *("_change_type", "_change_ordinal", "_commit_snapshot_id", "_commit_timestamp")
    ]


def test_table_changes_takes_a_start_and_an_end(lake, table):
    first, second, third = ids(table)
    text = "SELECT c.id, c._commit_snapshot_id FROM table_changes('ns.t', {}) AS c"
    assert rows(lake.sql(text.format(first))) == [(1, second), (9, third)]
    assert rows(lake.sql(text.format(f"{first}, {second}"))) == [(1, second)]
    assert rows(lake.sql(text.format(f"NULL, '{first}'"))) == [(n, first) for n in range(4)]
    text = "SELECT table_changes.id FROM table_changes('ns.t', {}) WHERE _change_type = 'delete'"
    assert rows(lake.sql(text.format(first))) == [(1,)]
    assert rows(lake.sql("SELECT id FROM table_changes('ns.t', now())")) == []
    assert lake.sql("SELECT count(*) FROM table_changes('ns.t', '2001-01-01')").first()[0] == 6
    with pytest.raises(RowlakeError, match="unknown or has expired"):
        lake.sql("SELECT * FROM table_changes('ns.t', 5)")


def test_feeds_join_and_feed_statements(lake, table):
    first = ids(table)[0]
    lake.drop_table("ns.log", if_exists=True)
    lake.sql("CREATE TABLE ns.log (id BIGINT, kind STRING)")
    lake.sql(f"""
        INSERT INTO ns.log SELECT c.id, _change_type FROM table_changes('ns.t', {first}) c
        LEFT JOIN ns.t ON t.id = c.id WHERE c.id > 0""")
    assert rows(lake.sql("SELECT * FROM ns.log")) == [(1, "delete"), (9, "insert")]
    lake.sql(f"""
        MERGE INTO ns.log AS l USING (SELECT id FROM table_changes('ns.t', {first})
            WHERE _change_type = 'insert') s
        ON l.id = s.id WHEN MATCHED THEN DELETE""")
    assert rows(lake.sql("SELECT id FROM ns.log")) == [(1,)]


def test_columns_and_conditions_are_pushed_into_the_feed(lake, table):
    asked = []

    def noted(*given):
        asked.append(given)
        return read(*given)

    read = feed.pushed_changes
    text = "SELECT note FROM ns.t.changes WHERE id = 9 AND _change_type = 'insert'"
    with mock.patch.object(feed, "pushed_changes", noted):
        assert lake.sql(text).count() == 1
    (_, _, _, columns, predicate) = asked[0]
    assert set(columns) == {"id", "note", "_change_type"}
    assert "id" in str(predicate) and "_change_type" not in str(predicate)


def test_time_travel_ends_a_feed(lake, table):
    _, second, _ = ids(table)
    found = lake.sql(
        f"SELECT id FROM ns.t.changes VERSION AS OF {second} WHERE _change_ordinal > 0"
    )
    assert rows(found) == [(1,)]


def test_the_columns_are_those_of_the_end(lake, table):
    _, second, _ = ids(table)
    lake.sql("ALTER TABLE ns.t RENAME COLUMN note TO remark")
    old = lake.sql(f"SELECT note FROM table_changes('ns.t', NULL, {second}) WHERE id = 2")
    assert rows(old) == [("note 2",)]
    assert rows(lake.sql("SELECT remark FROM ns.t.changes WHERE id = 2")) == [("note 2",)]


def test_a_changelog_view_speaks_as_icebergs_does(lake, table):
    first = ids(table)[0]
    lake.sql("UPDATE ns.t SET note = 'new' WHERE id = 2")
    span = f"map('start-snapshot-id', '{first}')"
    call = f"CALL system.create_changelog_view(table => 'ns.t', options => {span}"
    assert rows(lake.sql(f"{call})")) == [("t_changes",)]
    found = lake.sql("SELECT _change_ordinal, _change_type, id FROM t_changes")
    assert rows(found) == [
        *((0, "DELETE", 1), (1, "INSERT", 9), (2, "DELETE", 2), (2, "INSERT", 2))
    ]
    assert lake.spark.table("t_changes").columns[-3:] == [
        *("_change_type", "_change_ordinal", "_commit_snapshot_id")
    ]
    lake.sql(f"{call}, changelog_view => 'v', identifier_columns => array('id'))")
    kinds = [row._change_type for row in lake.sql("SELECT * FROM v WHERE id = 2").collect()]
    assert sorted(kinds) == ["UPDATE_AFTER", "UPDATE_BEFORE"]
    with pytest.raises(InvalidStatementError, match="Give identifier_columns"):
        lake.sql(f"{call}, compute_updates => true)")
    with pytest.raises(InvalidStatementError, match="update images of net changes"):
        lake.sql(f"{call}, identifier_columns => array('id'), net_changes => true)")
    with pytest.raises(InvalidStatementError, match="no option nope"):
        lake.sql("CALL system.create_changelog_view('ns.t', 'v', map('nope', '1'))")
