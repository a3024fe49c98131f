"""Manifests and manifest lists that say what is not so: right rows, or an error that names them."""

from __future__ import annotations

from pathlib import Path

import fastavro
import pytest

from rowlake import connect
from rowlake.errors import CorruptTableError, InvalidStatementError, RowlakeError
from rowlake.model.predicate import Leaf, Op
from tests.avro_edits import edit_files, edit_headers, edit_list, edit_manifests, manifest_list_of
from tests.lakes import SALES, rows_of, sales
from tests.parts.odd_properties import set_unchecked

NAME = "shop.sales"
ROWS = 2_999
SEVEN = Leaf(("id",), Op.EQ, (7,))


@pytest.fixture(params=["parquet", "orc", "avro"])
def file_format(request):
    return request.param


@pytest.fixture
def lake(tmp_path):
    with connect(str(tmp_path)) as opened:
        opened.create_namespace("shop")
        yield opened


def filled(lake, **properties):
    table = lake.create_table(NAME, SALES, properties=properties)
    table.append(sales(ROWS))
    return lake.table(NAME)


@pytest.mark.parametrize("size", [0, 1, -1, -(2**63), 5, 2_000, 2**26])
def test_a_wrong_size_of_a_data_file_loses_no_row(lake, file_format, size) -> None:
    table = filled(lake, **{"write.format.default": file_format})
    edit_files(table, file_size_in_bytes=size)
    assert rows_of(lake.table(NAME).arrow()) == rows_of(sales(ROWS))
    assert lake.table(NAME).arrow(where=SEVEN).num_rows == 1


def test_a_file_whose_size_is_stated_too_small_gives_all_its_row_groups(lake) -> None:
    table = filled(lake, **{"write.parquet.row-group-limit": "100"})
    edit_files(table, file_size_in_bytes=3_000, split_offsets=None)
    lake.table(NAME).set_properties({"read.split.target-size": "1000"})
    assert rows_of(lake.table(NAME).arrow()) == rows_of(sales(ROWS))


def test_verbs_that_rewrite_files_do_not_trust_sizes(lake) -> None:
    table = filled(lake)
    table.append(sales(1, ROWS))
    edit_files(lake.table(NAME), file_size_in_bytes=1)
    lake.table(NAME).delete("id = 5")
    edit_files(lake.table(NAME), file_size_in_bytes=-5)
    lake.table(NAME).rewrite_data_files(options={"rewrite-all": "true"})
    expected = [row for row in rows_of(sales(ROWS + 1)) if row[0] != 5]
    assert rows_of(lake.table(NAME).arrow()) == expected


@pytest.mark.parametrize("content", [2, -1, 99])
def test_a_manifest_of_unknown_content_is_refused(lake, content) -> None:
    table = filled(lake)
    location = edit_list(table, lambda rows: [row | {"content": content} for row in rows])
    with pytest.raises(CorruptTableError) as raised:
        lake.table(NAME).arrow()
    assert raised.value.location == location
    with pytest.raises(CorruptTableError):
        lake.table(NAME).append(sales(1))


def test_a_manifest_that_is_listed_twice_is_refused(lake) -> None:
    table = filled(lake)
    location = edit_list(table, lambda rows: rows * 2)
    with pytest.raises(CorruptTableError) as raised:
        lake.table(NAME).arrow()
    assert raised.value.location == location


@pytest.mark.parametrize(
    "values",
    [
        {"added_files_count": -1, "existing_files_count": 1},
        {"added_files_count": 1, "existing_files_count": -1},
        {"added_files_count": 0},
        {"existing_files_count": 2**31 - 1},
        {"sequence_number": -3},
        {"manifest_length": -1},
        {"partition_spec_id": 77},
        {"partition_spec_id": -1},
    ],
    ids=str,
)
@pytest.mark.parametrize("predicate", [None, SEVEN], ids=["all", "some"])
def test_a_manifest_list_with_numbers_that_mean_nothing_is_refused(lake, values, predicate) -> None:
    table = filled(lake)
    edit_list(table, lambda rows: [row | values for row in rows])
    with pytest.raises(CorruptTableError):
        lake.table(NAME).arrow(where=predicate)


def test_a_wrong_count_of_removed_files_brings_none_back(lake) -> None:
    table = filled(lake)
    table.append(sales(1, ROWS))
    lake.table(NAME).overwrite(sales(3))
    edit_list(lake.table(NAME), lambda rows: [row | {"deleted_files_count": 0} for row in rows])
    assert rows_of(lake.table(NAME).arrow()) == rows_of(sales(3))


@pytest.mark.parametrize(
    "values",
    [
        {"content": 1},
        {"content": 2},
        {"content": 3},
        {"content": -1},
        {"record_count": -2},
        {"file_format": "PUFFIN"},
        {"file_format": "LANCE"},
        {"file_format": ""},
        {"file_path": ""},
        {"file_path": "a\0b"},
    ],
    ids=str,
)
def test_a_data_file_that_the_spec_does_not_know_is_refused(lake, values) -> None:
    table = filled(lake)
    edit_files(table, **values)
    with pytest.raises(RowlakeError):
        lake.table(NAME).arrow()


@pytest.mark.parametrize("content", [0, 3, 17, -2])
def test_a_delete_file_of_unknown_content_is_refused(lake, content) -> None:
    table = filled(lake)
    table.delete("id = 3", mode="merge-on-read")

    def change(rows):
        for row in rows:
            if row["data_file"]["content"] == 1:
                row["data_file"]["content"] = content

    edit_manifests(lake.table(NAME), change)
    with pytest.raises(CorruptTableError):
        lake.table(NAME).arrow()


@pytest.mark.parametrize("status", [3, -1, 200])
def test_an_entry_of_unknown_status_is_refused(lake, status) -> None:
    table = filled(lake)
    edit_manifests(table, lambda rows: [row | {"status": status} for row in rows])
    with pytest.raises(CorruptTableError):
        lake.table(NAME).arrow()


def test_an_existing_entry_without_a_sequence_number_is_refused(lake) -> None:
    table = filled(lake)
    edit_manifests(table, lambda rows: [row | {"status": 0} for row in rows])
    with pytest.raises(CorruptTableError):
        lake.table(NAME).arrow()


def test_a_count_that_an_import_left_open_costs_no_rows(lake) -> None:
    table = filled(lake)
    edit_files(table, record_count=-1)
    found = lake.table(NAME)
    assert found.arrow().num_rows == ROWS
    found.delete("id = 3")
    assert lake.table(NAME).arrow().num_rows == ROWS - 1


def test_a_negative_sequence_number_is_refused(lake) -> None:
    table = filled(lake)
    edit_manifests(table, lambda rows: [row | {"sequence_number": -4} for row in rows])
    with pytest.raises(CorruptTableError):
        lake.table(NAME).arrow()


def test_a_split_property_that_is_no_number_of_bytes_is_refused_by_its_name(lake) -> None:
    table = filled(lake)
    set_unchecked(table, {"read.split.target-size": "9" * 5_000})
    with pytest.raises(InvalidStatementError, match=r"read\.split\.target-size"):
        lake.table(NAME).arrow()


@pytest.mark.parametrize("count", [1, 100])
def test_compaction_of_a_file_with_more_rows_than_its_manifest_says_is_refused(lake, count) -> None:
    table = filled(lake)
    table.delete("id = 3", mode="merge-on-read")

    def change(rows):
        for row in rows:
            if row["data_file"]["content"] == 0:
                row["data_file"]["record_count"] = count

    edit_manifests(lake.table(NAME), change)
    with pytest.raises(CorruptTableError):
        lake.table(NAME).rewrite_data_files(options={"rewrite-all": "true"})


def test_a_deletion_vector_of_no_data_file_is_refused(lake) -> None:
    table = filled(lake, **{"format-version": "3"})
    table.delete("id = 3", mode="merge-on-read")
    edit_files(lake.table(NAME), referenced_data_file=None)
    with pytest.raises(CorruptTableError):
        lake.table(NAME).arrow()


@pytest.mark.parametrize("kind", ["manifests", "all_manifests", "files"])
def test_a_manifest_of_an_unknown_spec_is_refused_by_its_name(lake, kind) -> None:
    filled(lake)
    edit_list(lake.table(NAME), lambda rows: [row | {"partition_spec_id": 77} for row in rows])
    with pytest.raises(CorruptTableError, match="spec"):
        lake.table(NAME).inspect(kind)


@pytest.mark.parametrize(
    "header",
    [{"schema": ""}, {"schema": "5"}, {"schema": "[" * 100_000}, {"partition-spec": "{}"}],
    ids=["empty", "a number", "deep", "no list"],
)
def test_a_header_that_says_nothing_does_not_move(lake, tmp_path, header) -> None:
    table = filled(lake)
    edit_headers(table, header)
    location = lake.table(NAME).location
    with pytest.raises(CorruptTableError, match="does not say its"):
        lake.table(NAME).rewrite_table_path(location, f"{tmp_path}/elsewhere")


def test_an_error_quotes_no_text_of_any_length(lake) -> None:
    table = filled(lake)
    edit_files(table, file_format="x" * 100_000)
    with pytest.raises(RowlakeError) as raised:
        lake.table(NAME).arrow()
    assert len(str(raised.value)) < 5_000


@pytest.mark.parametrize("name", ["content", "sequence_number", "min_sequence_number"])
def test_a_manifest_list_that_leaves_out_a_required_number_is_refused(lake, name) -> None:
    filled(lake)
    location = manifest_list_of(lake.table(NAME))
    with Path(location).open("rb") as stream:
        reader = fastavro.reader(stream)
        rows, schema, metadata = list(reader), reader.writer_schema, reader.metadata
    for field in schema["fields"]:
        if field["name"] == name:
            field["type"] = ["null", field["type"]]
    with Path(location).open("wb") as stream:
        kept = {key: text for key, text in metadata.items() if not key.startswith("avro.")}
        fastavro.writer(stream, schema, [row | {name: None} for row in rows], metadata=kept)
    with pytest.raises(CorruptTableError, match=f"no {name}"):
        lake.table(NAME).arrow()


def test_sizes_that_no_sum_can_hold_are_shown_as_the_largest_number(lake) -> None:
    table = filled(lake)
    table.append(sales(3, ROWS))
    edit_files(lake.table(NAME), file_size_in_bytes=2**63 - 1)
    found = lake.table(NAME).inspect("partitions")
    assert max(found["total_data_file_size_in_bytes"].to_pylist()) == 2**63 - 1


def test_delete_files_with_absurd_counts_are_compacted(lake) -> None:
    table = filled(lake)
    for number in (1, 2):
        table.delete(f"id = {number}", mode="merge-on-read")

    def change(rows):
        for row in rows:
            if row["data_file"]["content"] == 1:
                row["data_file"]["record_count"] = 2**62

    edit_manifests(lake.table(NAME), change)
    lake.table(NAME).rewrite_position_delete_files(options={"rewrite-all": "true"})
    assert lake.table(NAME).arrow().num_rows == ROWS - 2
