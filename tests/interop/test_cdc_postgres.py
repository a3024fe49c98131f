"""Tables that follow a real PostgreSQL: the same rows at the end, whatever happened on the way."""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from contextlib import ExitStack

import pytest

from rowlake import connect
from rowlake.cli.app import main
from rowlake.commit.phases import Phase, at_phase
from rowlake.errors import InvalidStatementError, StorageError
from rowlake.stream.cdc import postgres
from rowlake.stream.cdc.follow import Pace
from rowlake.stream.cdc.postgres import Database
from tests.parts.cdc import connected, rows_here, rows_there, run, source_database, source_server

KEPT = "repeat(md5(random()::text), 200)"  # large enough to be stored apart (TOAST)


@pytest.fixture(scope="module")
def server():
    with source_server("wal_sender_timeout=2s") as address:
        yield address


@pytest.fixture
def database(server):
    with source_database(server) as address:
        yield address


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path / "lake")) as opened:
        yield opened


def test_a_snapshot_then_every_kind_of_change(lake, database):
    with connected(database) as cursor:
        cursor.execute(
            "CREATE TABLE orders "
            "(id bigint PRIMARY KEY, status text, amount numeric(9,2), body text)"
        )
        cursor.execute(
            f"INSERT INTO orders SELECT i, 'new', i / 7.0, {KEPT} FROM generate_series(1, 500) i"
        )
        assert run(lake, database, "orders").snapshot_rows == 500
        assert rows_here(lake, "orders") == rows_there(cursor, "orders")
        cursor.execute("UPDATE orders SET status = 'paid' WHERE id % 3 = 0")
        cursor.execute("DELETE FROM orders WHERE id % 10 = 0")
        cursor.execute("UPDATE orders SET id = id + 10000 WHERE id % 11 = 0")
        cursor.execute(
            f"INSERT INTO orders SELECT i, null, null, {KEPT} FROM generate_series(600, 650) i"
        )
        cursor.execute("ALTER TABLE orders ADD COLUMN note text")
        cursor.execute("UPDATE orders SET note = 'late' WHERE id > 600")
        progress = run(lake, database, "orders")
        assert progress.changes > 250
        assert rows_here(lake, "orders") == rows_there(cursor, "orders")
        cursor.execute("TRUNCATE orders")
        cursor.execute("INSERT INTO orders VALUES (1, 'again', 1, 'x', 'y')")
        run(lake, database, "orders")
        assert rows_here(lake, "orders") == rows_there(cursor, "orders")
        before = len(lake.table("shop.orders").snapshots())
        assert run(lake, database, "orders").changes == 0
        assert len(lake.table("shop.orders").snapshots()) == before


def test_a_slot_that_another_reader_holds_is_waited_for(lake, database, monkeypatch):
    with connected(database) as cursor:
        cursor.execute("CREATE TABLE orders (id bigint PRIMARY KEY, status text)")
        cursor.execute("INSERT INTO orders VALUES (1, 'new')")
        run(lake, database, "orders")
        cursor.execute("INSERT INTO orders VALUES (2, 'new')")
        slot = f"s_{database.rsplit('/', 1)[1]}"
        with ExitStack() as stack:
            stack.enter_context(Database(database, publication="p", slot=slot).log())
            monkeypatch.setattr(postgres, "SLOT_SECONDS", 0.3)
            with pytest.raises(StorageError, match="Stop the other reader"):
                run(lake, database, "orders")
            monkeypatch.undo()
            leaving = threading.Timer(1.0, stack.pop_all().close)
            leaving.start()
            assert run(lake, database, "orders").changes == 1
            leaving.join()
        assert rows_here(lake, "orders") == rows_there(cursor, "orders")


def test_types_are_kept(lake, database):
    with connected(database) as cursor:
        cursor.execute(
            "CREATE TABLE kinds (id int PRIMARY KEY, b boolean, s smallint, f real, d float8, "
            "n numeric(12,4), day date, t time, ts timestamp, tz timestamptz, raw bytea, "
            "tags text[], nums int[], big varchar(20))"
        )
        values = (
            "(%s, true, 7, 1.5, 2.25, 3.1250, '2024-02-29', '01:02:03.5', "
            "'2024-01-01 10:00:00.25', '2024-01-01 10:00:00+02', '\\x00ff', "
            "'{a,\"b,c\",NULL}', '{1,NULL,3}', 'ä')"
        )
        cursor.execute(f"INSERT INTO kinds VALUES {values}", [1])
        run(lake, database, "kinds")
        cursor.execute(f"INSERT INTO kinds VALUES {values}", [2])
        run(lake, database, "kinds")
        assert rows_here(lake, "kinds") == rows_there(cursor, "kinds")
        first, second = rows_here(lake, "kinds")
        assert first[1:] == second[1:]


def test_several_tables_follow_together_and_new_ones_join(lake, database):
    with connected(database) as cursor:
        for name in ("one", "two"):
            cursor.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, n int)")
            cursor.execute(f"INSERT INTO {name} SELECT i, i FROM generate_series(1, 10) i")
        run(lake, database, "one")
        cursor.execute("UPDATE one SET n = 100; UPDATE two SET n = 100")
        progress = run(lake, database, "one", "two")
        assert progress.snapshot_rows == 10
        cursor.execute("BEGIN; DELETE FROM one WHERE id = 1; DELETE FROM two WHERE id = 2; COMMIT")
        run(lake, database, "one", "two")
        for name in ("one", "two"):
            assert rows_here(lake, name) == rows_there(cursor, name)


def test_a_run_that_is_cut_off_goes_on_where_it_was(lake, database):
    with connected(database) as cursor:
        cursor.execute("CREATE TABLE one (id int PRIMARY KEY, n int)")
        run(lake, database, "one")
        draw = random.Random(7)
        for phase in (Phase.WRITTEN, Phase.PRODUCED, Phase.SWAPPED):
            for _ in range(20):
                cursor.execute(
                    "INSERT INTO one VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET n = one.n + 1",
                    [draw.randint(1, 9), 0],
                )

            def cut_off(_) -> None:
                raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt), at_phase(phase, cut_off):
                run(lake, database, "one")
        run(lake, database, "one")
        assert rows_here(lake, "one") == rows_there(cursor, "one")


def test_what_cannot_be_followed_is_refused(lake, database):
    with connected(database) as cursor:
        cursor.execute("CREATE TABLE plain (id int)")
        with pytest.raises(InvalidStatementError, match="has no primary key"):
            run(lake, database, "plain")
        with pytest.raises(InvalidStatementError, match=r"Cannot follow public\.missing"):
            run(lake, database, "missing")
        with pytest.raises(InvalidStatementError, match="There is no publication q with tables"):
            run(lake, database, publication="q", tables=[])


def test_a_transaction_is_never_seen_in_part(lake, database):
    with connected(database) as cursor:
        cursor.execute("CREATE TABLE accounts (id int PRIMARY KEY, n int)")
        cursor.execute("INSERT INTO accounts SELECT i, 100 FROM generate_series(1, 6) i")
        run(lake, database, "accounts")
        draw = random.Random(3)
        for _ in range(40):
            one, other = draw.sample(range(1, 7), 2)
            cursor.execute(
                "BEGIN; UPDATE accounts SET n = n - %s WHERE id = %s; "
                "UPDATE accounts SET n = n + %s WHERE id = %s; COMMIT",
                [5, one, 5, other],
            )
        progress = run(lake, database, "accounts", pace=Pace(rows=3))
        assert progress.commits >= 10
        assert rows_here(lake, "accounts") == rows_there(cursor, "accounts")
        table = lake.table("shop.accounts")
        sums = {
            sum(table.arrow(snapshot_id=one.snapshot_id)["n"].to_pylist())
            for one in table.snapshots()
        }
        assert sums == {600}


def test_a_snapshot_misses_nothing_that_commits_beside_it(lake, database):
    """A transaction that is open while the slot is made commits after the snapshot."""
    with connected(database) as cursor, connected(database) as other:
        cursor.execute("CREATE TABLE one (id int PRIMARY KEY, n int)")
        cursor.execute("INSERT INTO one VALUES (1, 1)")

        def write_beside(_) -> None:
            other.execute("INSERT INTO one VALUES (2, 2) ON CONFLICT DO NOTHING")
            other.execute("UPDATE one SET n = n + 1")

        with at_phase(Phase.WRITTEN, write_beside):
            run(lake, database, "one")
        run(lake, database, "one")
        assert rows_here(lake, "one") == rows_there(cursor, "one")


def test_the_server_hears_of_a_reader_that_commits_slowly(lake, database, monkeypatch):
    monkeypatch.setattr("rowlake.stream.cdc.postgres_log._ALIVE_SECONDS", 0.3)
    with connected(database) as cursor:
        cursor.execute("CREATE TABLE one (id int PRIMARY KEY, n int)")
        run(lake, database, "one")
        cursor.execute("INSERT INTO one VALUES (1, 1)")
        with at_phase(Phase.WRITTEN, lambda _: time.sleep(5)):  # the server waits 2 seconds
            run(lake, database, "one")
        cursor.execute("INSERT INTO one VALUES (2, 1)")
        run(lake, database, "one")
        assert rows_here(lake, "one") == rows_there(cursor, "one")


def test_columns_come_and_go_however_the_log_is_cut(lake, database):
    with connected(database) as cursor:
        cursor.execute("CREATE TABLE one (id int PRIMARY KEY, a int, b text)")
        cursor.execute("INSERT INTO one SELECT i, i, 'b' FROM generate_series(1, 9) i")
        run(lake, database, "one")
        for pace in (Pace(), Pace(rows=1)):
            cursor.execute("UPDATE one SET a = a + 1 WHERE id < 4")
            cursor.execute("ALTER TABLE one ADD COLUMN c int")
            cursor.execute("UPDATE one SET c = id WHERE id IN (1, 5)")
            cursor.execute("ALTER TABLE one ALTER COLUMN a TYPE bigint")
            cursor.execute("UPDATE one SET a = 5000000000 WHERE id IN (2, 6)")
            run(lake, database, "one", pace=pace)
            assert rows_here(lake, "one") == rows_there(cursor, "one")
            cursor.execute("UPDATE one SET b = 'B' WHERE id = 3")
            cursor.execute("ALTER TABLE one DROP COLUMN c")
            cursor.execute("UPDATE one SET b = 'C' WHERE id IN (1, 4)")
            run(lake, database, "one", pace=pace)
            here = lake.table("shop.one").arrow().to_pylist()
            assert {row["id"]: row["c"] for row in here if row["c"]} == {1: 1, 5: 5}
            cursor.execute("UPDATE one SET b = 'b'; DELETE FROM one WHERE id IN (1, 5)")
            cursor.execute("INSERT INTO one VALUES (1, 1, 'b'), (5, 5, 'b')")
            run(lake, database, "one", pace=pace)


def test_a_publication_says_which_tables_columns_and_rows_are_followed(lake, database):
    with connected(database) as cursor:
        cursor.execute("CREATE TABLE one (id int PRIMARY KEY, n int, secret text)")
        cursor.execute('CREATE TABLE "Two.x" (id int PRIMARY KEY, "a b" int)')
        cursor.execute("INSERT INTO one SELECT i, i, 's' FROM generate_series(1, 9) i")
        cursor.execute('INSERT INTO "Two.x" VALUES (1, 1)')
        cursor.execute(
            'CREATE PUBLICATION p FOR TABLE one (id, n) WHERE (id % 2 = 0), TABLE "Two.x"'
        )
        for _ in range(2):
            run(lake, database, tables=[], namespace="shop")
            found = rows_there(cursor, "one WHERE id % 2 = 0", "id, n")
            assert rows_here(lake, "one") == found
            assert rows_here(lake, "`Two.x`") == rows_there(cursor, '"Two.x"')
            cursor.execute("UPDATE one SET n = n + 1, id = id + 101; INSERT INTO one VALUES (2, 1)")
            cursor.execute('UPDATE "Two.x" SET "a b" = 7')


def test_partitioned_tables_and_generated_columns(lake, database):
    with connected(database) as cursor:
        cursor.execute(
            "CREATE TABLE one (id int PRIMARY KEY, n int, "
            "twice int GENERATED ALWAYS AS (n * 2) STORED) PARTITION BY RANGE (id)"
        )
        cursor.execute("CREATE TABLE low PARTITION OF one FOR VALUES FROM (0) TO (10)")
        cursor.execute("CREATE TABLE high PARTITION OF one FOR VALUES FROM (10) TO (20)")
        cursor.execute("INSERT INTO one VALUES (1, 1), (11, 1)")
        for _ in range(2):
            run(lake, database, "one")
            assert rows_here(lake, "one") == rows_there(cursor, "one", "id, n")
            cursor.execute("UPDATE one SET n = 2, id = id + 9 WHERE id = 1")


def test_the_command_line_follows_a_publication(tmp_path, database, monkeypatch, capsys):
    with connected(database) as cursor, connect(str(tmp_path / "lake")) as lake:
        cursor.execute("CREATE TABLE one (id int PRIMARY KEY, n int)")
        cursor.execute("CREATE TABLE two (id int PRIMARY KEY, n int)")
        cursor.execute("INSERT INTO one VALUES (1, 1); INSERT INTO two VALUES (2, 2)")
        cursor.execute("CREATE PUBLICATION sales FOR TABLE one, two")
        command = [
            "rowlake",
            "cdc",
            "--from",
            database,
            "--publication",
            "sales",
            "--namespace",
            "shop",
        ]
        command += ["--once", "--warehouse", str(tmp_path / "lake"), "--output", "json"]
        monkeypatch.setattr(sys, "argv", command)
        for changes in (0, 2):
            with pytest.raises(SystemExit) as ended:
                main()
            assert not ended.value.code
            told = json.loads(capsys.readouterr().out)
            assert told["changes"] == changes
            assert told["lag_in_bytes"] < 8192  # the server writes records of its own meanwhile
            for name in ("one", "two"):
                assert rows_here(lake, name) == rows_there(cursor, name)
            cursor.execute("BEGIN; UPDATE one SET n = 5; DELETE FROM two; COMMIT")
