from __future__ import annotations

import pytest

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
