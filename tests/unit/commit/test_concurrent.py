"""Two writers in every order that matters, written down: one stops at a phase, the other commits.

A writer is stopped after its files are written, after its manifests are prepared, after its
snapshot is produced, or right before the swap; the other one commits there.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rowlake.commit.phases import Phase
from rowlake.errors import CommitConflictError, InvalidStatementError, SchemaMismatchError
from rowlake.model.metadata_change import TableDefinition
from rowlake.model.predicate import Leaf, Op
from rowlake.verbs import alter, create_as, write
from tests.any_format import next_row_id
from tests.lakes import SALES, files_in, make_lake, rows_of, sales
from tests.parts import stopping
from tests.parts.failing import stray_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rowlake.table import Table

NAME = "shop.sales"
PHASES = {
    "rows written": (write, "write_rows"),
    "written": Phase.WRITTEN,
    "validated": Phase.VALIDATED,
    "produced": Phase.PRODUCED,
}


pytestmark = pytest.mark.delta


@pytest.fixture
def lake(tmp_path, table_format):
    with make_lake(tmp_path) as opened:
        opened.create_namespace("shop")
        yield opened


@pytest.fixture(params=["2", "3"])
def table(lake, request):
    properties = {"format-version": request.param, "commit.retry.min-wait-ms": "1"}
    made = lake.create_table(NAME, SALES, partition_by=["store"], properties=properties)
    made.append(sales(8))
    return made


@pytest.fixture
def other(lake, table):
    return lake.table(NAME)


@contextmanager
def stopped_at(
    monkeypatch: Any, phase: tuple[Any, str] | str, other: Callable[[], Any]
) -> Iterator[None]:
    """Run `other` once, when the writer inside the block has reached the phase."""
    wanted = PHASES[phase] if isinstance(phase, str) else phase
    if isinstance(wanted, Phase):
        with stopping.stopped_at(wanted, other):
            yield
        return
    module, name = wanted
    whole = getattr(module, name)
    with monkeypatch.context() as patch:

        def passed(*args: Any, **kwargs: Any) -> Any:
            answer = whole(*args, **kwargs)
            patch.setattr(module, name, whole)
            other()
            return answer

        patch.setattr(module, name, passed)
        yield


def entries(table: Table) -> list[tuple[int, int, int, int]]:
    """Return (status, data sequence number, file sequence number, rows) of the head's entries."""
    found = table.inspect("entries")
    files = found["data_file"].combine_chunks()
    counts = pc.struct_field(files, "record_count")
    columns = [
        found["status"],
        found["sequence_number"],
        found["file_sequence_number"],
        counts,
    ]
    return sorted(zip(*[column.to_pylist() for column in columns], strict=True))


def head(table: Table) -> Any:
    head_id = table.handle.current_snapshot_id
    return next(one for one in table.snapshots() if one.snapshot_id == head_id)


def together(*tables: pa.Table) -> list[tuple]:
    return rows_of(pa.concat_tables(tables))


ADDED, EXISTING, DELETED = 1, 0, 2


@pytest.mark.not_delta("entries in metadata tables")
@pytest.mark.parametrize("phase", PHASES)
def test_two_appends_both_land(tmp_path, table, other, monkeypatch, phase) -> None:
    with stopped_at(monkeypatch, phase, lambda: other.append(sales(4, 100))):
        result = table.append(sales(4, 200))
    assert result.retries == 1
    assert rows_of(table.arrow()) == together(sales(8), sales(4, 100), sales(4, 200))
    assert head(table).snapshot_id == result.snapshot_id
    assert head(table).sequence_number == 3
    assert head(table).parent_id == table.snapshots()[1].snapshot_id
    assert head(table).summary["added-records"] == "4"
    assert head(table).summary["total-records"] == "16"
    assert {one[1:3] for one in entries(table)} == {(1, 1), (2, 2), (3, 3)}
    assert stray_files(tmp_path, None, NAME) == set()
    if table.format_version == 3:
        assert next_row_id(table) == 16
        starts = table.files()["first_row_id"].to_pylist()
        assert sorted(starts) == [0, 2, 4, 6, *range(8, 16)]


@pytest.mark.parametrize("phase", PHASES)
def test_an_append_and_an_overwrite_land_on_what_another_appended(
    tmp_path, table, other, monkeypatch, phase
) -> None:
    with stopped_at(monkeypatch, phase, lambda: other.append(sales(4, 100))):
        assert table.append(sales(4, 200)).retries == 1
    assert rows_of(table.arrow()) == together(sales(8), sales(4, 100), sales(4, 200))
    with stopped_at(monkeypatch, phase, lambda: other.append(sales(4, 300))):
        assert table.overwrite(sales(2, 400)).rows_deleted == 20
    assert rows_of(table.arrow()) == together(sales(2, 400))
    with stopped_at(monkeypatch, phase, other.truncate):
        table.append(sales(4, 500))
    assert rows_of(table.arrow()) == together(sales(4, 500))
    assert stray_files(tmp_path, None, NAME) == set()


@pytest.mark.not_delta("entries in metadata tables")
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("isolation", [None, "snapshot"])
def test_an_overwrite_takes_what_was_appended_meanwhile_with_it(
    tmp_path, table, other, monkeypatch, phase, isolation
) -> None:
    with stopped_at(monkeypatch, phase, lambda: other.append(sales(4, 100))):
        result = table.overwrite(sales(2, 200), isolation=isolation)
    assert rows_of(table.arrow()) == together(sales(2, 200))
    assert result.rows_deleted == 12
    assert head(table).summary["deleted-data-files"] == "8"
    assert sorted(one[0] for one in entries(table)) == [ADDED] * 2 + [DELETED] * 8
    assert {one[1] for one in entries(table) if one[0] == DELETED} == {1, 2}
    assert stray_files(tmp_path, None, NAME) == set()


@pytest.mark.parametrize("phase", PHASES)
def test_a_serializable_overwrite_is_refused_after_an_append(
    tmp_path, table, other, monkeypatch, phase
) -> None:
    landed = []
    with (
        stopped_at(monkeypatch, phase, lambda: landed.append(other.append(sales(4, 100)))),
        pytest.raises(CommitConflictError) as raised,
    ):
        table.overwrite(sales(2, 200), isolation="serializable")
    assert raised.value.snapshot_id == landed[0].snapshot_id
    assert (raised.value.operation, raised.value.table) == ("overwrite", NAME)
    assert len(raised.value.files) == 4
    assert head(table).snapshot_id == landed[0].snapshot_id
    assert rows_of(table.arrow()) == together(sales(8), sales(4, 100))
    assert stray_files(tmp_path, None, NAME) == set()


def test_a_serializable_overwrite_of_other_rows_lands(table, other, monkeypatch) -> None:
    rest = sales(8, 100)
    theirs = rest.filter(pc.equal(rest["store"], 2))
    ours = rest.filter(pc.equal(rest["store"], 1))
    where = Leaf(("store",), Op.EQ, (1,))
    with stopped_at(monkeypatch, "rows written", lambda: other.append(theirs)):
        result = table.overwrite(ours, where=where, isolation="serializable")
    kept = sales(8).filter(pc.not_equal(sales(8)["store"], 1))
    assert rows_of(table.arrow()) == together(kept, theirs, ours)
    assert (result.rows_deleted, result.rows_inserted, result.retries) == (2, 2, 1)


@pytest.mark.parametrize("phase", PHASES)
def test_of_two_overwrites_the_last_one_stays(tmp_path, table, other, monkeypatch, phase) -> None:
    with stopped_at(monkeypatch, phase, lambda: other.overwrite(sales(4, 100))):
        result = table.overwrite(sales(2, 200))
    assert rows_of(table.arrow()) == together(sales(2, 200))
    assert (result.rows_deleted, result.retries) == (4, 1)
    assert stray_files(tmp_path, None, NAME) == set()


@pytest.mark.parametrize("isolation", ["snapshot", "serializable"])
def test_the_second_overwrite_of_the_same_rows_is_refused_when_isolated(
    tmp_path, table, other, monkeypatch, isolation
) -> None:
    with (
        stopped_at(monkeypatch, "rows written", lambda: other.overwrite(sales(4, 100))),
        pytest.raises(CommitConflictError) as raised,
    ):
        table.overwrite(sales(2, 200), isolation=isolation)
    assert raised.value.files
    assert rows_of(table.arrow()) == together(sales(4, 100))
    assert stray_files(tmp_path, None, NAME) == set()


@pytest.mark.parametrize("phase", ["written", "validated", "produced"])
def test_a_truncate_removes_what_was_appended_meanwhile(
    tmp_path, table, other, monkeypatch, phase
) -> None:
    with stopped_at(monkeypatch, phase, lambda: other.append(sales(4, 100))):
        result = table.truncate()
    assert (result.rows_deleted, result.retries) == (12, 1)
    assert table.arrow().num_rows == 0
    if table.format != "delta":  # whose commits tell no totals
        assert head(table).summary["total-records"] == "0"
    assert stray_files(tmp_path, None, NAME) == set()


@pytest.mark.not_delta("entries in metadata tables")
@pytest.mark.parametrize("phase", PHASES)
def test_an_append_lands_after_a_truncate(table, other, monkeypatch, phase) -> None:
    with stopped_at(monkeypatch, phase, other.truncate):
        result = table.append(sales(4, 100))
    assert result.retries == 1
    assert rows_of(table.arrow()) == together(sales(4, 100))
    assert [one[0] for one in entries(table)] == [ADDED] * 4


@pytest.mark.parametrize("phase", PHASES)
def test_dynamic_overwrites_of_different_partitions_both_land(
    table, other, monkeypatch, phase
) -> None:
    rest = sales(8, 100)
    ours, theirs = (rest.filter(pc.equal(rest["store"], store)) for store in (1, 2))
    with stopped_at(monkeypatch, phase, lambda: other.overwrite(theirs, dynamic=True)):
        table.overwrite(ours, dynamic=True)
    kept = sales(8).filter(pc.is_in(sales(8)["store"], pa.array([0, 3], pa.int32())))
    assert rows_of(table.arrow()) == together(kept, ours, theirs)


@pytest.mark.parametrize("phase", PHASES)
def test_an_append_lands_after_a_column_was_added(
    tmp_path, table, other, monkeypatch, phase
) -> None:
    def add_column() -> None:
        alter.change_schema(other.handle, lambda schema: schema.add_column("extra", _string()))

    with stopped_at(monkeypatch, phase, add_column):
        table.append(sales(4, 100))
    found = table.arrow()
    assert found.column_names[-1] == "extra"
    assert found["extra"].null_count == 12
    assert rows_of(found.drop_columns(["extra"])) == together(sales(8), sales(4, 100))
    assert stray_files(tmp_path, None, NAME) == set()


@pytest.mark.parametrize("phase", PHASES)
def test_an_append_lands_after_a_property_was_set(table, other, monkeypatch, phase) -> None:
    with stopped_at(monkeypatch, phase, lambda: other.set_properties({"owner": "somebody"})):
        table.append(sales(4, 100))
    assert table.properties["owner"] == "somebody"
    assert rows_of(table.arrow()) == together(sales(8), sales(4, 100))


def _string() -> Any:
    from pyiceberg.types import StringType

    return StringType()


@pytest.mark.not_delta("writes across changes of the schema")
@pytest.mark.parametrize("phase", PHASES)
def test_an_append_lands_after_a_column_was_dropped_and_one_renamed(
    table, other, monkeypatch, phase
) -> None:
    def change() -> None:
        alter.change_schema(other.handle, lambda schema: schema.delete_column("note"))
        alter.change_schema(other.handle, lambda schema: schema.rename_column("amount", "price"))

    with stopped_at(monkeypatch, phase, change):
        table.append(sales(4, 100))
    assert table.arrow().column_names == ["id", "store", "sold_on", "price"]
    assert table.arrow(["price"]).num_rows == 12


@pytest.mark.not_delta("partition specs that change")
@pytest.mark.parametrize("phase", PHASES)
def test_an_append_lands_after_the_partitioning_changed(table, other, monkeypatch, phase) -> None:
    def change() -> None:
        alter.change_spec(other.handle, lambda spec: spec.remove_field("store"))

    with stopped_at(monkeypatch, phase, change):
        table.append(sales(4, 100))
    table.append(sales(1, 500))
    assert rows_of(table.arrow()) == together(sales(8), sales(4, 100), sales(1, 500))


@pytest.mark.not_delta("branches")
@pytest.mark.parametrize("phase", PHASES)
def test_a_commit_to_another_branch_is_no_conflict(
    tmp_path, table, other, monkeypatch, phase
) -> None:
    table.create_branch("audit")
    with stopped_at(monkeypatch, phase, lambda: other.append(sales(4, 100), branch="audit")):
        table.append(sales(4, 200))
    assert rows_of(table.arrow()) == together(sales(8), sales(4, 200))
    assert rows_of(table.arrow(ref="audit")) == together(sales(8), sales(4, 100))
    numbers = [one.sequence_number for one in table.snapshots()]
    assert sorted(numbers) == [1, 2, 3]
    assert stray_files(tmp_path, None, NAME) == set()
    if table.format_version == 3:
        ids = [(one.first_row_id, one.added_rows) for one in table.snapshots()]
        assert sorted(ids) == [(0, 8), (8, 4), (12, 4)]


@pytest.mark.not_delta("branches")
@pytest.mark.parametrize("phase", PHASES)
def test_an_append_to_a_branch_that_is_dropped_meanwhile_fails_whole(
    tmp_path, table, other, monkeypatch, phase
) -> None:
    table.create_branch("audit")
    with (
        stopped_at(monkeypatch, phase, lambda: other.drop_ref("audit")),
        pytest.raises((CommitConflictError, InvalidStatementError)),
    ):
        table.append(sales(4, 100), branch="audit")
    assert sorted(table.handle.refs) == ["main"]
    assert stray_files(tmp_path, None, NAME) == set()


@pytest.mark.not_delta("rollbacks")
@pytest.mark.parametrize("phase", PHASES)
def test_a_rollback_meanwhile_is_kept_below_an_append(table, other, monkeypatch, phase) -> None:
    first = table.snapshots()[0].snapshot_id
    table.append(sales(4, 50))
    with stopped_at(monkeypatch, phase, lambda: other.rollback_to(first)):
        table.append(sales(4, 100))
    assert rows_of(table.arrow()) == together(sales(8), sales(4, 100))
    assert head(table).parent_id == first


@pytest.mark.iceberg
def test_a_table_made_meanwhile_is_never_filled_by_a_create_as(lake, monkeypatch) -> None:
    layout = TableDefinition(SALES)
    made = []

    def make() -> None:
        made.append(lake.create_table("shop.new", SALES))

    with (
        stopped_at(monkeypatch, (create_as, "write_rows"), make),
        pytest.raises(CommitConflictError, match="another writer created"),
    ):
        lake.create_table_as("shop.new", sales(4), layout)
    assert lake.table("shop.new").snapshots() == []
    assert {one.rsplit("/", 1)[1] for one in files_in(made[0].location)} == {
        str(made[0].handle.version).rsplit("/", 1)[1]
    }


@pytest.mark.iceberg
def test_a_replace_as_gives_up_when_the_schema_changed_meanwhile(
    tmp_path, lake, table, other, monkeypatch
) -> None:
    new = pa.table({"id": pa.array([1]), "more": pa.array(["x"])})

    def add_column() -> None:
        alter.change_schema(other.handle, lambda schema: schema.add_column("extra", _string()))

    with (
        stopped_at(monkeypatch, (create_as, "write_rows"), add_column),
        pytest.raises((CommitConflictError, SchemaMismatchError)),
    ):
        lake.create_table_as(NAME, new, TableDefinition(new.schema), replace=True)
    assert rows_of(table.arrow().drop_columns(["extra"])) == together(sales(8))
    assert stray_files(tmp_path, None, NAME) == set()


@pytest.mark.iceberg
@pytest.mark.parametrize("phase", ["written", "validated", "produced"])
def test_a_replace_as_keeps_the_history_of_rows_appended_meanwhile(
    lake, table, other, monkeypatch, phase
) -> None:
    new = pa.table({"id": pa.array([1]), "more": pa.array(["x"])})
    with stopped_at(monkeypatch, phase, lambda: other.append(sales(4, 100))):
        lake.create_table_as(NAME, new, TableDefinition(new.schema), replace=True)
    replaced = lake.table(NAME)
    assert replaced.arrow().to_pylist() == [{"id": 1, "more": "x"}]
    appended = replaced.snapshots()[1].snapshot_id
    assert replaced.arrow(snapshot_id=appended).num_rows == 12
