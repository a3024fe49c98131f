"""Row-level changes whose tasks fail, die or run twice: the table has each row once."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial

import pytest

import rowlake
from rowlake.engine.spark import Engine
from rowlake.errors import RowlakeError
from tests.engine_kernels import spoilt
from tests.row_level_checks import GIVEN, WAYS, created, found, frame, in_tasks, shown
from tests.table_checks import files_of

REWRITTEN, _, VECTORS = WAYS


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    with rowlake.connect(str(tmp_path_factory.mktemp("lake")), spark=spark) as opened:
        yield opened


@contextmanager
def spoil(how, folder, *, staging=True):
    """Have the tasks of row-level changes, and those that stage their sources, go wrong."""
    run, consume = Engine.run, Engine.consume

    def spoilt_run(self, kernel, *given, **options):
        return run(self, partial(spoilt, how, str(folder), kernel), *given, **options)

    def spoilt_consume(self, df, kernel, *given, **options):
        wrapped = partial(spoilt, how, str(folder / "staging"), kernel)
        return consume(self, df, wrapped, *given, **options)

    (folder / "staging").mkdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Engine, "run", spoilt_run)
        if staging:
            patched.setattr(Engine, "consume", spoilt_consume)
        yield


@pytest.mark.parametrize("way", [REWRITTEN, VECTORS], ids=lambda way: way.name)
@pytest.mark.parametrize("how", ["fails", "dies", "twice"])
def test_each_row_is_there_once(lake, tmp_path, way, how) -> None:
    table = created(lake, f"spoilt_{how}", way)
    source = frame(lake, GIVEN, "n")
    with in_tasks(table), spoil(how, tmp_path):
        result = (
            table.merge(source, on=["id"])
            .when_matched_delete(condition="s.p = 0")
            .when_matched_update({"v": "s.v"})
            .when_not_matched_insert_all()
            .execute()
        )
    deleted = [number for number in range(300, 400) if number % 7 == 0]
    counts = (result.rows_updated, result.rows_deleted, result.rows_inserted)
    assert counts == (100 - len(deleted), len(deleted), 200)
    expected = shown(range(300), "o") | shown(GIVEN, "n")
    kept = sorted(row for number, row in expected.items() if number not in deleted)
    assert found(lake, table) == kept
    assert len(table.snapshots()) == 2


@pytest.mark.parametrize("way", [REWRITTEN, VECTORS], ids=lambda way: way.name)
def test_a_task_that_never_succeeds_leaves_nothing(lake, tmp_path, way) -> None:
    table = created(lake, "never", way)
    before = files_of(table)
    source = frame(lake, GIVEN, "n")
    with in_tasks(table), spoil("always", tmp_path, staging=False), pytest.raises(RowlakeError):
        table.upsert(source, ["id"])
    assert files_of(table) == before
    assert len(table.snapshots()) == 1
    assert found(lake, table) == sorted(shown(range(400), "o").values())
