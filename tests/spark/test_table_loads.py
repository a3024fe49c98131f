"""A statement, or a verb of `Table`, asks the catalog for each of its tables once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rowlake
from tests.parts.table_loads import (
    ABOUT_ONE,
    OTHER,
    SOURCE,
    STATEMENTS,
    TARGET,
    fill,
    loads_before_commit,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(params=[None, "filesystem"], ids=["embedded", "filesystem"])
def lake(spark: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[rowlake.Lake]:
    with rowlake.connect(str(tmp_path), request.param, spark) as found:
        fill(found)
        yield found


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_loads_each_of_its_tables_once(
    lake: rowlake.Lake, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    statement, tables = STATEMENTS[name]
    with loads_before_commit(lake, monkeypatch) as loaded:
        lake.sql(statement).collect()
    assert sorted(loaded) == sorted(tables)


@pytest.mark.parametrize("name", ABOUT_ONE)
def test_a_statement_about_a_table_loads_it_once(
    lake: rowlake.Lake, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with loads_before_commit(lake, monkeypatch) as loaded:
        lake.sql(ABOUT_ONE[name]).collect()
    assert loaded == [TARGET]


BY_OTHER = f"id IN (SELECT id FROM {OTHER})"
VERBS: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "append": (lambda t: t.append([{"id": 7, "qty": 70}]), (TARGET,)),
    "overwrite": (lambda t: t.overwrite([{"id": 7, "qty": 70}]), (TARGET,)),
    "delete": (lambda t: t.delete("id = 1"), (TARGET,)),
    "delete on main": (lambda t: t.delete("id = 1", branch="main"), (TARGET,)),
    "delete by Spark": (lambda t: t.delete(BY_OTHER), (TARGET, OTHER)),
    "delete by key": (lambda t: t.delete("id = 1", deletes="equality"), (TARGET,)),
    "update": (lambda t: t.update({"qty": "0"}, "id = 1"), (TARGET,)),
    "update by Spark": (lambda t: t.update({"qty": "qty + 1"}, BY_OTHER), (TARGET, OTHER)),
    "upsert": (lambda t: t.upsert([{"id": 1, "qty": 70}], ["id"]), (TARGET,)),
    "merge": (
        lambda t: t.merge([{"id": 1, "qty": 70}], ["id"]).when_matched_update_all().execute(),
        (TARGET,),
    ),
}


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_loads_each_of_its_tables_once(
    lake: rowlake.Lake, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    run, tables = VERBS[name]
    table = lake.table(TARGET)
    with loads_before_commit(lake, monkeypatch) as loaded:
        run(table)
    assert sorted(loaded) == sorted(tables)


def test_a_branch_is_not_looked_for_as_a_table(
    lake: rowlake.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.table(TARGET)
    table.create_branch("b")
    with loads_before_commit(lake, monkeypatch) as loaded:
        assert table.delete(BY_OTHER, branch="b").rows_deleted == 3
    assert sorted(loaded) == sorted((TARGET, OTHER))
    assert (table.arrow().num_rows, table.arrow(ref="b").num_rows) == (3, 0)


def test_a_merge_from_another_table_loads_both_once(
    lake: rowlake.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, source = lake.table(TARGET), lake.table(SOURCE)
    with loads_before_commit(lake, monkeypatch) as loaded:
        target.merge(source, ["id"]).when_matched_delete().execute()
    assert sorted(loaded) == sorted((TARGET, SOURCE))
