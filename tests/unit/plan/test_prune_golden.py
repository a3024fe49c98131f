"""Pruning of manifests and files that Iceberg's Java library wrote, for every partition type."""

import datetime as dt
import json
from pathlib import Path

import pyarrow as pa
import pytest

from rowlake.iceberg.cache import ManifestCache
from rowlake.iceberg.manifest_list import read_manifest_list
from rowlake.iceberg.manifest_reader import read_by_spec
from rowlake.iceberg.schema import schema_from_iceberg, schema_from_json
from rowlake.model.partition import PartitionField, PartitionSpec
from rowlake.model.predicate import Leaf, Op
from rowlake.model.transform import partition_type
from rowlake.prune.bind import bind
from rowlake.prune.match import manifests_may_match, may_match, must_match
from rowlake.storage.files import Storage
from tests.manifest_samples import PARTITION

GOLDEN = Path(__file__).parents[2] / "golden" / "manifests"
# Not by `string`: its made-up bucket is not the one of its value.
IDENTITY = [(name, value) for name, _, value in PARTITION[:17] if name != "string"]


class Golden:
    """A golden table of one manifest: two files of the same partition, one of nulls."""

    def __init__(self, name):
        metadata = json.loads((GOLDEN / name / "metadata.json").read_text())
        schemas = metadata.get("schemas") or [metadata["schema"]]
        self.schema = schema_from_iceberg(schema_from_json(schemas[0]))
        fields = metadata["partition-specs"][0]["fields"]
        self.spec = PartitionSpec(
            0,
            tuple(
                PartitionField(each["source-id"], each["field-id"], each["transform"], each["name"])
                for each in fields
            ),
        )
        listed = GOLDEN / name / Path(metadata["snapshots"][0]["manifest-list"]).name
        manifests = read_manifest_list(str(listed), Storage({}))
        moved = [str(GOLDEN / name / Path(old).name) for old in manifests["location"].to_pylist()]
        self.manifests = manifests.set_column(0, "location", pa.array(moved))
        kind = partition_type(self.spec, self.schema)
        found = read_by_spec(self.manifests, {0: kind}, Storage({}), cache=ManifestCache())
        self.entries = found[0]

    def found(self, name, op, *values):
        """Return (manifests kept, files that may match, files that must)."""
        predicate = bind(Leaf((name,), op, values), self.schema)
        kept = manifests_may_match(self.manifests, predicate, {0: self.spec}, self.schema)
        about = (self.entries, predicate, self.spec, self.schema)
        return kept.to_pylist(), may_match(*about).to_pylist(), must_match(*about).to_pylist()


@pytest.fixture(scope="module", params=[1, 2, 3])
def golden(request):
    return Golden(f"types_v{request.param}")


@pytest.mark.parametrize(("name", "value"), IDENTITY)
def test_files_of_a_partition_are_found_by_its_value(golden, name, value):
    kept, may, must = golden.found(name, Op.EQ, value)
    assert (kept, may) == ([True], [True, False, True])
    # The second file says that it has no rows, which is not believed.
    assert must == [True, False, True]
    assert golden.found(name, Op.NE, value) == ([False], [False] * 3, [False] * 3)
    assert golden.found(name, Op.IS_NULL)[0] == [True]


def test_manifests_of_other_partitions_are_pruned(golden):
    assert golden.found("int", Op.GT, -7)[0] == [False]
    assert golden.found("ts", Op.LT, dt.datetime(2017, 11, 16))[0] == [False]
    assert golden.found("string", Op.STARTS_WITH, "b")[0] == [False]
