"""These fail when PyIceberg changes what `rowlake.iceberg._compat` mends or relies on."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from importlib.metadata import version

import pytest
from pyiceberg import partitioning
from pyiceberg.catalog.rest import DEFAULT_ENDPOINTS, VIEW_ENDPOINTS, Endpoint, RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.conversions import from_json, to_json
from pyiceberg.io import load_file_io
from pyiceberg.schema import Schema, _SetFreshIDs, assign_fresh_schema_ids
from pyiceberg.table import update
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil, TableMetadataV3
from pyiceberg.table.refs import SnapshotRef
from pyiceberg.table.snapshots import Snapshot, SnapshotLogEntry
from pyiceberg.table.statistics import PartitionStatisticsFile
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.table.update.spec import UpdateSpec
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestamptzNanoType,
    UUIDType,
)

from rowlake.iceberg import _compat
from rowlake.iceberg.metadata_files import Definition, new_metadata

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True, initial_default=5, write_default=6),
    NestedField(2, "d", DateType(), initial_default="2024-01-01"),
    NestedField(3, "e", DecimalType(9, 2), initial_default="1.23"),
    NestedField(4, "b", BinaryType(), write_default="00ff"),
    NestedField(5, "u", UUIDType(), write_default="f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    NestedField(6, "n", TimestampNanoType(), write_default="2024-01-01T00:00:00.123456789"),
    NestedField(7, "z", TimestamptzNanoType(), write_default="2024-01-01T00:00:00.123456789+00:00"),
    NestedField(
        8,
        "st",
        StructType(NestedField(9, "in", StringType(), initial_default="x", write_default="y")),
    ),
    NestedField(10, "l", ListType(11, LongType())),
)


def defaults_in(text: str) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}

    def walk(value: object) -> None:
        if isinstance(value, dict):
            kept = {key: value[key] for key in value if str(key).endswith("-default")}
            if kept:
                found[str(value["name"])] = kept
            for below in value.values():
                walk(below)
        elif isinstance(value, list):
            for below in value:
                walk(below)

    walk(json.loads(text))
    return found


DEFAULTS = {
    "id": {"initial-default": 5, "write-default": 6},
    "d": {"initial-default": "2024-01-01"},
    "e": {"initial-default": "1.23"},
    "b": {"write-default": "00ff"},
    "u": {"write-default": "f79c3e09-677c-4bbd-a479-3f349cb785e7"},
    "n": {"write-default": "2024-01-01T00:00:00.123456789"},
    "z": {"write-default": "2024-01-01T00:00:00.123456789+00:00"},
    "in": {"initial-default": "x", "write-default": "y"},
}


def test_the_version_is_the_one_that_was_mended() -> None:
    assert version("pyiceberg").startswith("0.12."), "look through _compat before moving on"


def test_pyiceberg_still_refuses_to_write_v3() -> None:
    source = textwrap.dedent(inspect.getsource(TableMetadataV3))
    refusing = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name == "model_dump_json"
    ]
    assert len(refusing) == 1, "PyIceberg may write v3 itself now: drop the mend"
    assert "NotImplementedError" in ast.unparse(refusing[0])
    assert TableMetadataV3.model_dump_json is _compat._dump_v3


def test_pyiceberg_still_refuses_upgrades_to_v3() -> None:
    source = inspect.getsource(inspect.getmodule(TableMetadataV3))  # type: ignore[arg-type]
    assert "SUPPORTED_TABLE_FORMAT_VERSION = 2" in source, "drop the mend"
    assert "update.format_version > SUPPORTED_TABLE_FORMAT_VERSION" in inspect.getsource(update)


def test_v3_metadata_has_the_next_row_id_that_the_spec_requires() -> None:
    metadata = new_metadata(Definition(SCHEMA, properties={"format-version": "3"}), "/t")
    raw = json.loads(metadata.model_dump_json())
    assert raw["format-version"] == 3
    assert raw["next-row-id"] == 0
    assert raw["last-sequence-number"] == 0
    assert "schema" not in raw
    assert TableMetadataUtil.parse_raw(json.dumps(raw)) == metadata


def test_an_upgraded_table_goes_on_where_its_snapshots_end() -> None:
    metadata = new_metadata(Definition(SCHEMA, properties={"format-version": "3"}), "/t")
    snapshot = Snapshot(
        snapshot_id=1, manifest_list="/m", timestamp_ms=1, first_row_id=10, added_rows=5
    )
    without = metadata.model_copy(update={"snapshots": [snapshot], "next_row_id": None})
    assert _compat.next_row_id(without) == 15
    assert json.loads(without.model_dump_json())["next-row-id"] == 15


def test_below_v3_there_is_no_next_row_id() -> None:
    for given in ("1", "2"):
        plain = Schema(NestedField(1, "id", LongType()))
        metadata = new_metadata(Definition(plain, properties={"format-version": given}), "/t")
        assert _compat.next_row_id(metadata) is None
        assert "next-row-id" not in json.loads(metadata.model_dump_json())


def test_pyiceberg_still_drops_defaults_with_fresh_ids() -> None:
    source = inspect.getsource(inspect.getmodule(_SetFreshIDs))  # type: ignore[arg-type]
    assert "initial_default" not in source, "PyIceberg may keep defaults itself now"
    assert list(inspect.signature(_SetFreshIDs.struct).parameters) == [
        "self",
        "struct",
        "field_results",
    ]


def test_fresh_ids_keep_defaults_and_number_level_by_level() -> None:
    fresh = assign_fresh_schema_ids(SCHEMA)
    assert defaults_in(fresh.model_dump_json()) == DEFAULTS
    assert fresh.find_field("l").field_id == 9
    assert fresh.find_field("st.in").field_id == 10


def test_defaults_survive_metadata_in_both_directions() -> None:
    metadata = new_metadata(Definition(SCHEMA, properties={"format-version": "3"}), "/t")
    text = metadata.model_dump_json()
    assert defaults_in(text) == DEFAULTS
    assert defaults_in(TableMetadataUtil.parse_raw(text).model_dump_json()) == DEFAULTS


@pytest.mark.parametrize("kind", _compat.KEPT_AS_JSON)
def test_pyiceberg_has_no_json_of_its_own_for_these(kind: type) -> None:
    assert to_json.registry[kind] is _compat._as_it_is
    assert from_json.registry[kind] is _compat._as_it_is


def test_the_private_names_that_are_wrapped_are_there() -> None:
    assert inspect.signature(SqlCatalog._create_table_row).parameters.keys() == {
        "self",
        "namespace",
        "table_name",
        "metadata_location",
    }
    assert callable(SqlCatalog._iceberg_type_filter)
    assert callable(SqlCatalog._init_catalog)
    assert "_session" in inspect.getsource(RestCatalog.__init__)
    assert "self._supported_endpoints = " in inspect.getsource(RestCatalog._fetch_config)
    assert list(inspect.signature(_compat._import_file_io).parameters) == ["io_impl", "properties"]
    assert "_import_file_io(" in inspect.getsource(load_file_io)
    assert list(inspect.signature(_compat._import_location_provider).parameters) == [
        "location_provider_impl",
        "table_location",
        "table_properties",
    ]
    assert "_import_location_provider(" in inspect.getsource(load_location_provider)


def test_a_server_that_lists_its_endpoints_offers_those_only() -> None:
    catalog = RestCatalog.__new__(RestCatalog)
    wanted = "POST /v1/{prefix}/transactions/commit"
    for offered, expected in (
        (DEFAULT_ENDPOINTS, True),  # the server listed none
        (DEFAULT_ENDPOINTS | VIEW_ENDPOINTS, True),
        ({Endpoint.from_string("GET /v1/{prefix}/namespaces")}, False),
        ({Endpoint.from_string(wanted)}, True),
    ):
        catalog._supported_endpoints = set(offered)
        assert _compat.rest_offers(catalog, wanted) is expected


def removed(*gone: int) -> TableMetadata:
    """Return the metadata of snapshots 1 to 4, of which 2 has statistics, without some of them."""
    metadata = new_metadata(Definition(Schema(NestedField(1, "id", LongType()))), "/t")
    made = [
        Snapshot(
            snapshot_id=number,
            parent_snapshot_id=number - 1 or None,
            manifest_list=f"/m{number}",
            timestamp_ms=number,
            sequence_number=number,
        )
        for number in range(1, 5)
    ]
    parts = PartitionStatisticsFile(snapshot_id=2, statistics_path="/p", file_size_in_bytes=1)
    full = metadata.model_copy(
        update={
            "snapshots": made,
            "snapshot_log": [SnapshotLogEntry(snapshot_id=n, timestamp_ms=n) for n in range(1, 5)],
            "refs": {
                "main": SnapshotRef(snapshot_id=4, snapshot_ref_type="branch"),
                "tag": SnapshotRef(snapshot_id=2, snapshot_ref_type="tag"),
            },
            "current_snapshot_id": 4,
            "partition_statistics": [parts],
        }
    )
    removal = update.RemoveSnapshotsUpdate(snapshot_ids=list(gone))
    return update.update_table_metadata(full, (removal,))


def test_removed_snapshots_leave_no_gap_in_the_log() -> None:
    left = removed(2)
    assert [one.snapshot_id for one in left.snapshots] == [1, 3, 4]
    assert [one.parent_snapshot_id for one in left.snapshots] == [None, 2, 3]
    assert [one.snapshot_id for one in left.snapshot_log] == [3, 4]
    assert (set(left.refs), left.partition_statistics) == ({"main"}, [])
    assert removed(1, 2, 17).snapshot_log == left.snapshot_log
    whole = removed(1, 2, 3, 4)
    assert (whole.snapshots, whole.refs, whole.current_snapshot_id) == ([], {}, None)


def test_pyiceberg_still_leaves_gaps() -> None:
    source = inspect.getsource(update)
    assert "if snapshot_log_entry.snapshot_id not in update.snapshot_ids" in source, "drop the mend"
    assert update._apply_table_update.dispatch(update.RemoveSnapshotsUpdate) is (
        _compat._remove_snapshots
    )


def test_updated_metadata_is_pyicebergs_without_copies() -> None:
    base = removed(2)
    before = base.model_copy(deep=True)
    changes = (
        update.SetPropertiesUpdate(updates={"a": "1"}),
        update.RemoveSnapshotRefUpdate(ref_name="main"),
    )
    theirs = update.update_table_metadata(base, changes, metadata_location="/t/v1.json")
    ours = _compat.metadata_after(base, changes, "/t/v1.json")
    assert ours.model_copy(update={"last_updated_ms": theirs.last_updated_ms}) == theirs
    assert ours.last_updated_ms >= base.last_updated_ms
    assert ours.snapshots[0] is base.snapshots[0]
    assert base == before
    assert _compat.metadata_after(base, (), "/t/v1.json") is base


def test_pyiceberg_compares_names_of_dropped_sources_with_columns():
    schema = Schema(NestedField(2, "d", StringType()))
    with pytest.raises(ValueError, match="different field"):
        _compat._validate_name("d", IdentityTransform(), 1, schema, set())
    partitioning.validate_partition_name("d", IdentityTransform(), 1, schema, set())
    with pytest.raises(ValueError, match="unique"):
        partitioning.validate_partition_name("d", IdentityTransform(), 1, schema, {"d"})
    for builder in (UpdateSchema._apply, UpdateSpec._apply):
        assert "from pyiceberg.partitioning import validate_partition_name" in inspect.getsource(
            builder
        )
