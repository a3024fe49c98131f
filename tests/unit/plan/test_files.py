"""Plans of whole tables, from manifest lists and manifests on disk."""

import numpy as np
import pyarrow as pa
import pytest

from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.iceberg import listing
from rowlake.iceberg.capabilities import capabilities_of
from rowlake.iceberg.format import ICEBERG
from rowlake.iceberg.manifest_list import ManifestListHeader, write_manifest_list
from rowlake.iceberg.manifest_read import read_live_entries
from rowlake.iceberg.manifest_writer import write_manifest
from rowlake.model.files import Content, Status
from rowlake.model.predicate import FALSE, Leaf, Op
from rowlake.model.view import SnapshotInfo, TableView
from rowlake.plan.files import FILE_COLUMNS, plan_files
from rowlake.storage.files import Storage
from tests.manifest_samples import header
from tests.plan_kit import column, entries_of, schema_of, spec_of

STORAGE = Storage({})
SCHEMA = schema_of(column("p", pa.int32(), 1), column("x", pa.int64(), 2))
SPECS = {0: spec_of(), 1: spec_of((1, "identity"), spec_id=1)}


@pytest.fixture
def reads(monkeypatch):
    """What is asked of manifests: how many, and which columns."""
    calls = []

    def read(manifests, view, storage, *, columns=None, runner=None):
        calls.append((manifests.num_rows, set(columns)))
        return read_live_entries(manifests, view, storage, columns=columns, runner=runner)

    monkeypatch.setattr(listing, "read_live_entries", read)
    return calls


def view_of(manifest_list):
    snapshot = SnapshotInfo(1, None, 9, 0, manifest_list, "append", {})
    return TableView(
        name="db.t",
        uuid="u",
        location="l",
        format_version=2,
        schema=SCHEMA,
        schemas={0: SCHEMA},
        specs=SPECS,
        default_spec_id=1,
        sort_orders={},
        default_sort_order_id=0,
        properties={},
        snapshot=snapshot,
        format=ICEBERG,
        can=capabilities_of(2),
    )


@pytest.fixture
def table(tmp_path):
    """A table of manifests: each is (spec id, content, entries)."""

    def make(*manifests):
        rows = []
        for number, (spec_id, content, entries) in enumerate(manifests):
            head = header(format_version=2, content=content, spec_id=spec_id)
            location = str(tmp_path / f"m{number}.avro")
            rows.append(write_manifest(location, entries, head, STORAGE))
        listed = str(tmp_path / "list.avro")
        write_manifest_list(
            listed, pa.concat_tables(rows), ManifestListHeader(2, 1, None, 9), STORAGE
        )
        return view_of(listed)

    return make


def data_of(spec_id, *rows, **columns):
    """One data file per row (p, x)."""
    files = [[{"p": p, "x": x}] for p, x in rows]
    names = [f"data-{spec_id}-{p}-{x}" for p, x in rows]
    return spec_id, 0, entries_of(files, SCHEMA, SPECS[spec_id], location=names, **columns)


def deletes_of(spec_id, *rows, content, **columns):
    files = [[{"p": p, "x": x}] for p, x in rows]
    names = [f"delete-{p}-{x}" for p, x in rows]
    kinds = [content] * len(rows)
    numbers = columns.pop("data_sequence_number", [9] * len(rows))
    made = entries_of(
        files,
        SCHEMA,
        SPECS[spec_id],
        location=names,
        content=kinds,
        data_sequence_number=numbers,
        **columns,
    )
    return spec_id, 1, made


def locations(plan):
    return sorted(name for each in plan.data.values() for name in each["location"].to_pylist())


def test_a_table_without_a_snapshot_has_no_files():
    view = view_of(None)
    empty = TableView(**{**vars(view), "snapshot": None})
    plan = plan_files(empty, None, STORAGE)
    assert (plan.file_count, plan.units_considered, plan.is_clean) == (0, 0, True)
    with pytest.raises(UnsupportedFeatureError, match="has no manifest list"):
        plan_files(view, None, STORAGE)


def test_without_a_predicate_all_live_files_are_planned_and_no_metrics_read(table, reads):
    view = table(
        data_of(1, (1, 10), (2, 20), status=[Status.ADDED, Status.DELETED]), data_of(0, (1, 30))
    )
    plan = plan_files(view, None, STORAGE)
    assert locations(plan) == ["data-0-1-30", "data-1-1-10"]
    assert reads[1][1] == set(FILE_COLUMNS)
    assert (plan.files_considered, plan.files_pruned, plan.units_pruned) == (2, 0, 0)
    assert (plan.size_in_bytes, plan.record_count) == (2000, 2)


def test_manifests_are_pruned_before_they_are_read(table, reads):
    view = table(data_of(1, (1, 10), (1, 11)), data_of(1, (2, 20)), data_of(0, (2, 30)))
    plan = plan_files(view, Leaf(("p",), Op.EQ, (2,)), STORAGE)
    assert locations(plan) == ["data-0-2-30", "data-1-2-20"]
    assert (plan.units_considered, plan.units_pruned) == (3, 1)
    assert (plan.files_considered, plan.files_pruned) == (4, 2)
    assert reads[1][0] == 2


def test_manifests_without_live_files_are_not_read(table):
    view = table(data_of(1, (1, 10), status=[Status.DELETED]), data_of(1, (2, 20)))
    assert plan_files(view, None, STORAGE).units_considered == 1


def test_files_are_pruned_by_metrics(table):
    view = table(data_of(1, (1, 10), (1, 20), (1, 30)))
    plan = plan_files(view, Leaf(("x",), Op.GT, (15,)), STORAGE, columns=["column_sizes"])
    assert locations(plan) == ["data-1-1-20", "data-1-1-30"]
    assert "column_sizes" in plan.data[1].column_names
    assert plan.predicate == Leaf(("x",), Op.GT, (15,), 2)


def test_a_predicate_that_nothing_meets_reads_nothing(table, reads):
    plan = plan_files(table(data_of(0, (1, 10))), FALSE, STORAGE)
    assert plan.data == {}
    assert plan.files_pruned == 1
    assert [rows for rows, _ in reads] == [0, 0]


def test_an_unknown_column_is_refused(table):
    with pytest.raises(InvalidStatementError, match="no column z"):
        plan_files(table(data_of(0, (1, 10))), Leaf(("z",), Op.IS_NULL), STORAGE)


def test_deletes_are_matched_with_the_files_that_are_left(table):
    view = table(
        data_of(1, (1, 10), (2, 20), (2, 21), data_sequence_number=[3, 3, 9]),
        deletes_of(1, (2, 20), content=Content.EQUALITY_DELETES, equality_ids=[[2]]),
        deletes_of(1, (1, 0), content=Content.POSITION_DELETES),
    )
    plan = plan_files(view, None, STORAGE)
    names = dict(zip(plan.data[1]["location"].to_pylist(), plan.clean(1).tolist(), strict=True))
    assert names == {"data-1-1-10": False, "data-1-2-20": False, "data-1-2-21": True}
    assert not plan.is_clean
    assert plan.deletes.equality_ids == {2}
    only_two = plan_files(view, Leaf(("p",), Op.EQ, (2,)), STORAGE)
    assert only_two.deletes.files["location"].to_pylist() == ["delete-2-20"]
    beyond = plan_files(view, Leaf(("x",), Op.EQ, (21,)), STORAGE)
    assert beyond.deletes.files["location"].to_pylist() == ["delete-1-0"]
    assert beyond.is_clean
    whole = plan_files(view, Leaf(("x",), Op.EQ, (21,)), STORAGE, whole_files=True)
    assert whole.deletes.files["location"].to_pylist() == ["delete-2-20", "delete-1-0"]


def test_equality_deletes_make_metrics_needed(table, reads):
    view = table(
        data_of(0, (1, 10), (1, 20), data_sequence_number=[3, 3]),
        deletes_of(0, (2, 20), content=Content.EQUALITY_DELETES, equality_ids=[[2]]),
    )
    plan = plan_files(view, None, STORAGE)
    assert "lower_bounds" in reads[1][1]
    assert np.array_equal(plan.clean(0), [True, False])
