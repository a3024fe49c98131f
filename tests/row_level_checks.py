"""What UPDATE, MERGE and upsert promise in any kind of session: checks that take a lake and a way.

Work that would be done in the driver is handed to Spark's tasks here, and sources are large enough
to be staged in files, so that what tasks load, read and write is what a cluster's tasks would.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING, Any

import pytest

from rowlake.engine import spark as engines
from rowlake.errors import CardinalityError
from rowlake.plan import tasks as planning
from rowlake.rowlevel.staging import Staging
from tests.table_checks import files_of, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HELD = range(400)
GIVEN = range(300, 600)
# Rows of this many characters are staged in files.
WIDTH = 4000
Row = tuple[int, int, str]


@dataclass(frozen=True)
class Way:
    """How changes are materialised."""

    name: str
    version: int
    mode: str

    @property
    def properties(self) -> str:
        """The table properties."""
        pairs = {f"write.{verb}.mode": self.mode for verb in ("delete", "update", "merge")}
        listed = {"format-version": str(self.version), **pairs}
        return ", ".join(f"'{key}' = '{value}'" for key, value in listed.items())


WAYS = (
    Way("rewritten", 2, "copy-on-write"),
    Way("positions", 2, "merge-on-read"),
    Way("vectors", 3, "merge-on-read"),
)


def created(lake: Any, verb: str, way: Way) -> Any:
    """Return a table of `HELD`, with an `o` for old in each row."""
    lake.sql("CREATE NAMESPACE IF NOT EXISTS checks")
    name = f"checks.{verb}_{way.name}"
    lake.sql(
        f"CREATE TABLE {name} (id bigint NOT NULL, p int, v string) PARTITIONED BY (bucket(3, id)) "
        f"TBLPROPERTIES ({way.properties})"
    )
    table = lake.table(name)
    table.append(frame(lake, HELD, "o", width=1))
    return table


def frame(lake: Any, ids: range, letter: str, width: int = WIDTH) -> Any:
    """Return rows of Spark, in two tasks."""
    return lake.spark.range(ids.start, ids.stop, 1, 2).selectExpr(
        "id", "CAST(id % 7 AS int) AS p", f"repeat('{letter}', {width}) AS v"
    )


def shown(ids: Any, letter: str) -> dict[int, Row]:
    """Return what rows look like in `found`."""
    return {number: (number, number % 7, letter) for number in ids}


def found(lake: Any, table: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a table, their texts cut."""
    return rows(lake, f"SELECT id, p, left(v, 1) FROM {table.name} ORDER BY id")


@contextmanager
def in_tasks(table: Any) -> Iterator[list[str]]:
    """Have tasks of Spark do all the work, and nothing staged left over; yields what was staged."""
    staged: list[str] = []
    stage = Staging.stage

    def watched(self: Staging, *given: Any, **options: Any) -> Any:
        made = stage(self, *given, **options)
        staged.extend(filter(None, made.rows["location"].to_pylist()))
        return made

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(engines, "is_tiny", lambda tasks, *_, **__: not tasks)
        patched.setattr(planning, "LEAST_TASK_BYTES", 1)
        patched.setattr(Staging, "stage", watched)
        yield staged
    if not table.lake.engine.is_one_machine:
        beside = f"{table.location}/data/staging-"
        assert all(place.startswith(beside) for place in staged), staged
    assert [place for place in files_of(table) if "staging" in place] == []


def check_rows_are_updated(lake: Any, way: Way) -> None:
    table = created(lake, "updated", way)
    with in_tasks(table):
        text = f"UPDATE {table.name} SET v = concat('u', v), p = p + 1 WHERE id % 5 = 0 AND p < 6"
        counts = lake.sql(text).first()["num_updated_rows"]
        changed = [i for i in HELD if i % 5 == 0 and i % 7 < 6]
        assert counts == len(changed)
        lake.sql(f"UPDATE {table.name} SET v = 'x' WHERE id = 1")
    expected = shown(HELD, "o") | {i: (i, i % 7 + 1, "u") for i in changed} | shown([1], "x")
    assert found(lake, table) == sorted(expected.values())


def check_rows_are_merged_by_key(lake: Any, way: Way) -> None:
    table = created(lake, "by_key", way)
    frame(lake, GIVEN, "n").createOrReplaceTempView("given_rows")
    with in_tasks(table) as staged:
        lake.sql(
            f"MERGE INTO {table.name} t USING given_rows s ON t.id = s.id "
            "WHEN MATCHED AND s.p = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v "
            "WHEN NOT MATCHED AND s.id < 590 THEN INSERT *"
        )
    assert staged
    expected = shown(range(300), "o") | shown(range(300, 590), "n")
    gone = [i for i in range(300, 400) if i % 7 == 0]
    assert found(lake, table) == sorted(row for i, row in expected.items() if i not in gone)


def check_rows_are_merged_by_join(lake: Any, way: Way) -> None:
    table = created(lake, "by_join", way)
    source = frame(lake, GIVEN, "n").selectExpr("id + 1 AS id", "p", "v")
    with in_tasks(table) as staged:
        result = (
            table.merge(source, on="t.id + 1 = s.id")
            .when_matched_delete(condition="t.id + s.p > 395 + t.p")
            .when_matched_update({"v": "concat('j', t.v, s.v)"})
            .when_not_matched_insert({"id": "s.id", "p": "s.p", "v": "s.v"})
            .execute()
        )
    assert staged
    assert (result.rows_updated, result.rows_deleted, result.rows_inserted) == (96, 4, 200)
    expected = shown(range(300), "o") | shown(range(300, 396), "j")
    expected |= {i + 1: (i + 1, i % 7, "n") for i in range(400, 600)}
    assert found(lake, table) == sorted(expected.values())


def check_rows_without_a_source_row_change(lake: Any, way: Way) -> None:
    table = created(lake, "unmatched", way)
    with in_tasks(table) as staged:
        result = (
            table.merge(frame(lake, GIVEN, "n"), on=["id"])
            .when_matched_update({"v": "s.v"})
            .when_not_matched_insert_all()
            .when_not_matched_by_source_delete(condition="t.id < 100")
            .when_not_matched_by_source_update({"v": "'g'"}, condition="t.p = 3")
            .execute()
        )
    assert staged
    stale = [i for i in range(100, 300) if i % 7 == 3]
    counts = (result.rows_updated, result.rows_deleted, result.rows_inserted)
    assert counts == (100 + len(stale), 100, 200)
    expected = shown(range(100, 300), "o") | shown(stale, "g") | shown(GIVEN, "n")
    assert found(lake, table) == sorted(expected.values())


def check_rows_are_upserted(lake: Any, way: Way) -> None:
    table = created(lake, "upserted", way)
    with in_tasks(table) as staged:
        result = table.upsert(frame(lake, GIVEN, "n"), ["id"])
        assert (result.rows_updated, result.rows_inserted) == (100, 200)
        again = table.upsert(frame(lake, GIVEN, "n"), ["id"])
        assert (again.rows_unchanged, again.snapshot_id) == (300, None)
    assert staged
    expected = shown(range(300), "o") | shown(GIVEN, "n")
    assert found(lake, table) == sorted(expected.values())


def check_two_matches_of_one_row_change_nothing(lake: Any, way: Way) -> None:
    table = created(lake, "twice", way)
    before = files_of(table)
    twice = frame(lake, GIVEN, "n").union(frame(lake, range(333, 334), "m"))
    with in_tasks(table) as staged:
        builder = table.merge(twice, on=["id"]).when_matched_update({"v": "s.v"})
        with pytest.raises(CardinalityError) as raised:
            builder.when_not_matched_insert_all().execute()
        assert list(raised.value.keys) == ["id=333"]
        with pytest.raises(CardinalityError):
            table.upsert(twice, ["id"])
    assert staged
    assert files_of(table) == before
    assert len(table.snapshots()) == 1


CHECKS = [check for name, check in sorted(globals().items()) if name.startswith("check_")]


def named_checks() -> Iterator[tuple[str, Callable[[Any], None]]]:
    """Yield every check, each in one of the ways, by turns: all pairs would take minutes."""
    for check, way in zip(CHECKS, cycle(WAYS), strict=False):
        yield f"{check.__name__} {way.name}", partial(check, way=way)
