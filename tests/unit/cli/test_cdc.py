"""`rowlake cdc`: what it refuses, and what it shows."""

from __future__ import annotations

import pytest

from rowlake.cli.cdc import _slot_name, _target, _text, cdc, follow
from rowlake.errors import InvalidStatementError, StorageError
from rowlake.stream.cdc.follow import Progress
from rowlake.stream.cdc.postgres import SourceTable
from tests.lakes import make_lake


def test_what_to_follow_must_be_named():
    with pytest.raises(InvalidStatementError, match="--source-table, or --publication"):
        cdc(source="postgresql://localhost/x")


def test_tables_come_in_pairs(tmp_path):
    wanted = {"publication": "p", "namespace": None, "slot": "s", "once": True}
    with make_lake(tmp_path) as lake, pytest.raises(InvalidStatementError, match="2 for 1"):
        follow(lake, "postgresql://x", source_tables=["a"], tables=["n.a", "n.b"], **wanted)


def test_a_password_is_not_shown_where_a_database_is_out_of_reach(tmp_path):
    wanted = {"publication": "p", "namespace": None, "slot": "s", "once": True}
    address = "postgresql://me:hunter22@127.0.0.1:9/x"
    with make_lake(tmp_path) as lake, pytest.raises(StorageError) as told:
        follow(lake, address, source_tables=["a"], tables=["n.a"], **wanted)
    assert "hunter22" not in str(told.value)


def test_names_follow_from_those_of_the_source():
    orders = SourceTable("public", "my.orders", 'public."my.orders"', (), ("id",))
    assert _target(orders, None) == ("public", "my.orders")
    assert _target(orders, "lake.bronze") == ("lake", "bronze", "my.orders")
    assert _slot_name(["shop.Orders"], None) == "rowlake_shop_orders"
    assert len(_slot_name(["x" * 100], None)) == 63


def test_progress_is_told_in_a_line():
    text = _text(Progress(changes=2000, commits=3, snapshot_rows=10, lag_in_bytes=5, seconds=2.0))
    assert text == "10 rows copied, 2,000 changes in 3 commits, 1,000 changes/s, 5 bytes behind"
