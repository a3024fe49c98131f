"""Snapshots that are their own ancestors: every walk over history comes to an end."""

from __future__ import annotations

import threading

import pytest

from rowlake import connect
from rowlake.errors import CorruptTableError, RowlakeError
from tests.lakes import SALES, rows_of, sales
from tests.metadata_edits import edit_metadata

pytestmark = pytest.mark.iceberg

NAME = "shop.sales"
SECONDS = 30


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path)) as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture(params=["each other", "itself"])
def table(lake, request):
    made = lake.create_table(NAME, SALES)
    for first in range(0, 6, 2):
        made.append(sales(2, first))
    made.create_branch("audit")
    made.append(sales(1, 50), branch="audit")

    def change(metadata):
        snapshots = metadata["snapshots"]
        parent = 2 if request.param == "each other" else 0
        snapshots[0]["parent-snapshot-id"] = snapshots[parent]["snapshot-id"]

    edit_metadata(made, change)
    return lake.table(NAME)


def within(seconds, run):
    """Return the error of `run`, None where there is none; fail where it does not end."""
    found: list[Exception | None] = []

    def work():
        try:
            run()
            found.append(None)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            found.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "it does not end"
    return found[0]


FIRST_AND_HEAD = {
    "rollback": lambda t: t.rollback_to(t.snapshots()[0].snapshot_id),
    "rollback to a time": lambda t: t.rollback_to(as_of=t.snapshots()[0].timestamp_ms / 1000),
    "history": lambda t: t.inspect("history"),
    "expire": lambda t: t.expire_snapshots(retain_last=1),
    "fast-forward": lambda t: t.fast_forward("main", "audit"),
    "cherry-pick": lambda t: t.cherry_pick(t.snapshots()[-1].snapshot_id),
}


@pytest.mark.parametrize("verb", FIRST_AND_HEAD)
def test_walks_over_a_history_without_end_are_refused(table, verb) -> None:
    error = within(SECONDS, lambda: FIRST_AND_HEAD[verb](table))
    assert isinstance(error, CorruptTableError), repr(error)
    assert "own ancestor" in str(error)


@pytest.mark.parametrize("text", ["DESCRIBE HISTORY {}", "CALL system.ancestors_of('{}')"])
def test_statements_over_a_history_without_end_are_refused(lake, table, text) -> None:
    error = within(SECONDS, lambda: lake.sql(text.format(table.name)))
    assert isinstance(error, CorruptTableError), repr(error)


OTHERS = {
    "append": lambda t: t.append(sales(1, 90)),
    "overwrite": lambda t: t.overwrite(sales(1, 90)),
    "delete": lambda t: t.delete("id = 1"),
    "health": lambda t: t.health(),
    "optimize": lambda t: t.optimize(),
    "vacuum": lambda t: t.vacuum(),
    "compact": lambda t: t.rewrite_data_files(options={"rewrite-all": "true"}),
    "manifests": lambda t: t.rewrite_manifests(),
    "statistics": lambda t: t.compute_partition_stats(),
    "properties": lambda t: t.set_properties({"a": "b"}),
    "evolve": lambda t: t.evolve().update_schema().union_by_name(SALES).commit(),
    "snapshots": lambda t: t.snapshots(),
}


@pytest.mark.parametrize("verb", OTHERS)
def test_other_verbs_end_on_a_history_without_end(table, verb) -> None:
    error = within(SECONDS, lambda: OTHERS[verb](table))
    assert error is None or isinstance(error, RowlakeError), repr(error)


def test_rows_of_a_history_without_end_can_be_read(table) -> None:
    assert rows_of(table.arrow()) == rows_of(sales(6))
