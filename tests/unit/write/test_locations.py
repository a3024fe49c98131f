from __future__ import annotations

from urllib.parse import unquote_plus

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.errors import UnsupportedFeatureError
from rowlake.write.locations import data_locations

HASHED = {"write.object-storage.enabled": "true"}


def test_files_go_below_the_tables_data_folder():
    places = data_locations("s3://b/db/t/", {})
    assert places.place("", "f") == "s3://b/db/t/data/f"
    assert places.place("a=1/b=2", "f") == "s3://b/db/t/data/a=1/b=2/f"


def test_data_path_moves_them():
    places = data_locations("s3://b/db/t", {"write.data.path": "s3://other/x/"})
    assert places.place("a=1", "f") == "s3://other/x/a=1/f"


@pytest.mark.parametrize(
    ("name", "folders"),
    [
        ("a", "0101/0110/1001/10110010"),
        ("b", "1110/0111/1110/00000011"),
        ("c", "0010/1101/0110/01011111"),
        ("d", "1001/0001/0100/01110011"),
    ],
)
def test_object_stores_get_javas_hash_folders(name, folders):
    places = data_locations("s3://b/db/t", HASHED)
    assert places.place("", name) == f"s3://b/db/t/data/{folders}/{name}"


def test_partitions_can_be_left_out_of_hashed_names():
    properties = {**HASHED, "write.object-storage.partitioned-paths": "false"}
    places = data_locations("s3://b/db/t", properties)
    found = places.place("vals=val", "test.parquet")
    assert found == "s3://b/db/t/data/0110/1010/0011/11101000-test.parquet"


def test_hashed_names_keep_their_partition_and_table():
    inside = data_locations("s3://b/db/t", HASHED).place("a=1", "f")
    assert inside.startswith("s3://b/db/t/data/")
    assert inside.endswith("/a=1/f")
    outside = data_locations("s3://b/db/t", {**HASHED, "write.data.path": "s3://other"})
    assert outside.place("", "f").startswith("s3://other/")
    assert outside.place("", "f").endswith("/db/t/f")


def test_java_location_providers_are_refused():
    with pytest.raises(UnsupportedFeatureError, match="Java code"):
        data_locations("s3://b/t", {"write.location-provider.impl": "com.example.Places"})


LONG = "region=" + "x" * 300


@pytest.mark.parametrize("properties", [{}, HASHED])
def test_folders_with_names_too_long_for_a_disk_are_shortened(properties) -> None:
    places = data_locations("/lake/t", properties)
    found = places.place(f"a=1/{LONG}/b=2", "f.parquet")
    assert max(map(len, found.split("/"))) <= 255
    assert "/a=1/region=xxx" in found
    assert found.endswith("/b=2/f.parquet")
    assert found == places.place(f"a=1/{LONG}/b=2", "f.parquet")
    assert places.place(LONG, "f") != places.place(LONG + "y", "f")


def test_folders_that_fit_stay_as_they_are() -> None:
    fits = "k=" + "%41" * 84
    assert len(fits) == 254
    assert data_locations("/t", {}).place(fits, "f") == f"/t/data/{fits}/f"


def test_many_long_folders_are_shortened_together() -> None:
    names = [f"column_{at}=" + "%C3%A9" * 40 for at in range(40)]
    found = data_locations("/t", {}).place("/".join(names) * 3, "f")
    assert max(map(len, found.split("/"))) <= 24
    other = data_locations("/t", {}).place("/".join([*names[:-1], names[0]]) * 3, "f")
    assert found != other


def test_an_escape_is_not_cut_in_two() -> None:
    for start in range(6):
        found = data_locations("/t", {}).place("k=" + "x" * start + "%C3%A9" * 60, "f")
        assert "é" in unquote_plus(found)
        assert "%" not in unquote_plus(found)


def test_rows_of_long_partition_values_are_written_and_read(tmp_path) -> None:
    values = ["v" * 300, "v" * 301, "é" * 300, "/" * 200, "short"]
    with connect(str(tmp_path)) as lake:
        lake.create_namespace("n")
        kind = pa.schema([("region", pa.string()), ("k", pa.int64())])
        table = lake.create_table("n.t", kind, partition_by=["region"])
        table.append(pa.table({"region": values, "k": range(5)}, schema=kind))
        assert sorted(table.arrow()["region"].to_pylist()) == sorted(values)
        table.delete("k = 2")
        assert sorted(table.arrow()["k"].to_pylist()) == [0, 1, 3, 4]
