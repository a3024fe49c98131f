"""Reading manifests: what entries inherit, what is selected, what counts as damage."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import fastavro
import pyarrow as pa
import pytest
from pyarrow import fs

from rowlake.codecs import avro_file
from rowlake.codecs.avro_container import container_header, framed
from rowlake.codecs.avro_encode import encode_blocks, encode_rows
from rowlake.errors import CorruptTableError, RowlakeError
from rowlake.iceberg import manifest_reader
from rowlake.iceberg.cache import ManifestCache
from rowlake.iceberg.capabilities import capabilities_of
from rowlake.iceberg.format import ICEBERG
from rowlake.iceberg.manifest_reader import read_by_spec, read_manifests
from rowlake.iceberg.manifest_tasks import (
    entries_by_place,
    manifest_tasks,
    read_manifest_task,
    task_schema,
)
from rowlake.iceberg.manifest_writer import write_manifest
from rowlake.model.files import files_schema
from rowlake.model.partition import PartitionField, PartitionSpec
from rowlake.model.schema import Schema
from rowlake.model.view import TableView
from rowlake.storage.files import Storage
from tests.manifest_samples import (
    UNPARTITIONED,
    committed,
    entries,
    entry,
    header,
    partition_field,
    partition_type,
    partition_values,
)

STORAGE = Storage({})


@pytest.fixture(params=["python", "datafusion"])
def decoder(request, monkeypatch):
    limit = 0 if request.param == "datafusion" else 1 << 40
    monkeypatch.setattr(avro_file, "SMALL_FILE_BYTES", limit)
    monkeypatch.setattr(avro_file, "TINY_FILE_BYTES", limit)
    return request.param


def written(tmp_path, rows, partition=UNPARTITIONED, name="m.avro", **head):
    table = entries(rows, partition)
    return write_manifest(str(tmp_path / name), table, header(**head), STORAGE)


def read(manifests, partition=UNPARTITIONED, **options):
    options = {"cache": ManifestCache(), **options}
    return read_by_spec(manifests, {0: partition}, STORAGE, **options)[0]


NUMBERS = {"data_sequence_number": 2, "file_sequence_number": 1}


@pytest.mark.spec("Sequence Number Inheritance: added entries inherit the manifest's number")
def test_only_added_entries_inherit_sequence_numbers(tmp_path, decoder):
    rows = [entry(), entry(status=0, **NUMBERS), entry(status=2, **NUMBERS)]
    found = read(committed(written(tmp_path, rows), 9), live_only=False)
    assert found["data_sequence_number"].to_pylist() == [9, 2, 2]
    assert found["file_sequence_number"].to_pylist() == [9, 1, 1]


@pytest.mark.spec("Sequence Number Inheritance: entries of version 1 manifests have number 0")
def test_entries_of_v1_have_sequence_number_zero(tmp_path, decoder):
    rows = [entry(), entry(status=0), entry(status=2)]
    manifest = committed(written(tmp_path, rows, format_version=1), 0)
    found = read(manifest, live_only=False)
    assert found["data_sequence_number"].to_pylist() == [0, 0, 0]
    assert found["file_sequence_number"].to_pylist() == [0, 0, 0]
    assert found["content"].to_pylist() == [0, 0, 0]


@pytest.mark.spec("First Row ID Inheritance: live files without one are numbered in order")
def test_row_ids_run_over_live_files_without_one(tmp_path, decoder):
    rows = [
        entry(record_count=50),
        entry(status=0, record_count=7, first_row_id=3, **NUMBERS),
        entry(status=2, record_count=100, **NUMBERS),
        entry(status=0, record_count=25, **NUMBERS),
        entry(record_count=5),
    ]
    manifest = written(tmp_path, rows, format_version=3)
    found = read(committed(manifest, 9, first_row_id=1000), live_only=False)
    assert found["first_row_id"].to_pylist() == [1000, 3, None, 1050, 1075]


@pytest.mark.spec("First Row ID Inheritance: files of a manifest without one have none")
def test_a_committed_manifest_without_row_ids_has_none(tmp_path):
    manifest = written(tmp_path, [entry(first_row_id=5)], format_version=3)
    assert read(committed(manifest))["first_row_id"].to_pylist() == [None]
    assert read(manifest)["first_row_id"].to_pylist() == [5]  # not committed: kept for a merge


def test_columns_not_asked_for_are_not_there(tmp_path, decoder):
    of = partition_type("int", "date")
    rows = [entry(partition=partition_values(of), lower_bounds=[(1, b"x")])]
    manifest = committed(written(tmp_path, rows, of))
    found = read(manifest, of, columns=["partition", "location", "lower_bounds"])
    assert found.column_names == ["status", "location", "partition", "lower_bounds"]
    assert found["partition"].to_pylist() == [partition_values(of)]
    bare = read(manifest, of, columns=["first_row_id", "data_sequence_number"])
    assert bare.to_pylist() == [{"status": 1, "data_sequence_number": 5, "first_row_id": None}]


def test_cached_columns_serve_narrower_reads_and_grow_for_wider_ones(tmp_path, monkeypatch):
    manifest = committed(written(tmp_path, [entry(lower_bounds=[(1, b"x")])]))
    cache = ManifestCache()
    reads = []
    original = manifest_reader.read_manifest

    def counted(*arguments):
        reads.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(manifest_reader, "read_manifest", counted)
    for columns in (["location"], None, ["lower_bounds"], None):
        read(manifest, columns=columns, cache=cache)
    assert len(reads) == 2
    assert read(manifest, cache=cache).schema == files_schema(UNPARTITIONED)


def test_cached_tables_are_returned_as_they_are(tmp_path):
    manifest = committed(written(tmp_path, [entry()]))
    cache = ManifestCache()
    first, second = (read(manifest, cache=cache) for _ in range(2))
    addresses = [table["location"].chunk(0).buffers()[2].address for table in (first, second)]
    assert addresses[0] == addresses[1]


@pytest.mark.parametrize("nearby_bytes", [0, 1 << 30])
def test_threads_are_started_for_many_bytes_only(tmp_path, monkeypatch, nearby_bytes):
    made = [written(tmp_path, [entry()], name=f"{at}.avro") for at in range(3)]
    manifests = committed(pa.concat_tables(made), 9)
    started = []

    def pool(threads):
        started.append(threads)
        return ThreadPoolExecutor(threads)

    monkeypatch.setattr(manifest_reader, "NEARBY_BYTES", nearby_bytes)
    monkeypatch.setattr(manifest_reader, "ThreadPoolExecutor", pool)
    assert read(manifests).num_rows == 3
    assert bool(started) == (not nearby_bytes)


def test_older_partition_types_are_promoted(tmp_path, decoder):
    older = pa.struct(
        [partition_field(1000, "a", pa.int32()), partition_field(1001, "f", pa.float32())]
    )
    newer = pa.struct(
        [
            partition_field(1001, "f2", pa.float64()),
            partition_field(1000, "renamed", pa.int64()),
            partition_field(1002, "added", pa.string()),
        ]
    )
    manifest = committed(written(tmp_path, [entry(partition={"a": 7, "f": 0.5})], older))
    found = read(manifest, newer)["partition"]
    assert found.to_pylist() == [{"f2": 0.5, "renamed": 7, "added": None}]
    assert found.type == newer


def test_a_dropped_source_column_reads_as_null(tmp_path, decoder):
    older = pa.struct([partition_field(1000, "gone", pa.string())])
    newer = pa.struct([partition_field(1000, "gone", pa.null())])
    manifest = committed(written(tmp_path, [entry(partition={"gone": "x"})], older))
    assert read(manifest, newer)["partition"].to_pylist() == [{"gone": None}]
    rewritten = committed(written(tmp_path, [entry()], newer))
    assert read(rewritten, newer)["partition"].to_pylist() == [{"gone": None}]


def test_nanosecond_partitions_come_back(tmp_path, decoder):
    of = pa.struct(
        [
            partition_field(1000, "n", pa.timestamp("ns")),
            partition_field(1001, "z", pa.timestamp("ns", "UTC")),
        ]
    )
    table = entries([entry()], of)
    values = pa.array([1510871468123456789], pa.int64())
    columns = [values.cast(field.type) for field in of]
    native = pa.StructArray.from_arrays(columns, fields=list(of))
    table = table.set_column(8, table.schema.field("partition"), native)
    manifest = write_manifest(str(tmp_path / "m.avro"), table, header(format_version=3), STORAGE)
    assert read(committed(manifest), of)["partition"].combine_chunks().equals(native)


def test_names_that_avro_forbids_are_read(tmp_path, decoder):
    """Some writers do not escape partition names."""
    of = pa.struct([partition_field(1000, "a b", pa.string())])
    written(tmp_path, [entry(partition={"a b": "x"})], of)
    data = (tmp_path / "m.avro").read_bytes()
    # Same length, so that nothing else moves.
    damaged = data.replace(b'"name":"a_x20b"', b'"name":"a . b "')
    assert damaged != data
    (tmp_path / "m.avro").write_bytes(damaged)
    manifest = committed(written(tmp_path, [entry(partition={"a b": "x"})], of, name="o.avro"))
    manifest = manifest.set_column(0, "location", pa.array([str(tmp_path / "m.avro")]))
    assert read(manifest, of)["partition"].to_pylist() == [{"a b": "x"}]


@pytest.mark.parametrize("codec", ["bzip2", "xz"])
def test_codecs_that_we_do_not_write_are_read(tmp_path, codec, decoder):
    manifest = committed(written(tmp_path, [entry(), entry(location="b")]))
    path = tmp_path / "m.avro"
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        schema, rows = reader.writer_schema, list(reader)
    with path.open("wb") as file:
        fastavro.writer(file, schema, rows, codec=codec)
    manifest = manifest.set_column(1, "manifest_length", pa.array([path.stat().st_size]))
    assert read(manifest)["location"].to_pylist() == [entry()["location"], "b"]


def _damage_magic(data):
    return b"PAR1" + data[4:]


def _damage_header(data):
    return data[:100] + b"\xff" * 200 + data[300:]


def _damage_block(data):
    middle = len(data) - 60
    return data[:middle] + bytes(20) + data[middle + 20 :]


def _damage_sync(data):
    return data[:-8] + bytes(8)


def _cut(data):
    return data[:-30]


def _empty(_data):
    return b""


DAMAGES = [_damage_magic, _damage_header, _damage_block, _damage_sync, _cut, _empty]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damaged_manifests_are_named(tmp_path, damage, decoder):
    rows = [entry(location=f"s3://bucket/{at}.parquet") for at in range(20)]
    manifest = committed(written(tmp_path, rows))
    path = tmp_path / "m.avro"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CorruptTableError) as caught:
        read(manifest)
    assert caught.value.location == str(path)


def test_rows_beyond_their_block_do_not_hang_the_reader(tmp_path, monkeypatch):
    monkeypatch.setattr(avro_file, "TINY_FILE_BYTES", 0)
    monkeypatch.setattr(avro_file, "SMALL_FILE_BYTES", 0)
    monkeypatch.setattr(avro_file, "PATIENCE_SECONDS", 0.2)
    asked = []

    def endless(*arguments):
        asked.append(arguments)
        time.sleep(1)

    monkeypatch.setattr(avro_file, "decode_datafusion", endless)
    manifest = committed(written(tmp_path, [entry()]))
    for _ in range(2):
        assert read(manifest)["location"].to_pylist() == [entry()["location"]]
    assert len(asked) == 1


def test_a_missing_manifest_is_named(tmp_path):
    manifest = committed(written(tmp_path, [entry()]))
    (tmp_path / "m.avro").unlink()
    with pytest.raises(RowlakeError, match=r"m\.avro"):
        read(manifest)


def test_fewer_entries_than_the_list_says_are_damage(tmp_path, decoder):
    manifest = committed(written(tmp_path, [entry()]))
    index = manifest.schema.get_field_index("added_files_count")
    manifest = manifest.set_column(index, manifest.schema.field(index), pa.array([2], pa.int32()))
    with pytest.raises(CorruptTableError, match="1 entries where the manifest list says 2"):
        read(manifest)


def _avro_file(path, fields, columns, count):
    schema = json.dumps({"type": "record", "name": "manifest_entry", "fields": fields})
    head, sync = container_header({"avro.schema": schema}, "null")
    blocks = encode_blocks(encode_rows(fields, columns, count), 0, "null", 1000)
    path.write_bytes(head + b"".join(framed(block, sync) for block in blocks))


def test_a_manifest_without_a_required_column_is_damaged(tmp_path):
    manifest = committed(written(tmp_path, [entry()]))
    fields = [{"name": "status", "type": "int", "field-id": 0}]
    path = tmp_path / "m.avro"
    _avro_file(path, fields, {0: pa.array([1])}, 1)
    manifest = manifest.set_column(1, "manifest_length", pa.array([path.stat().st_size]))
    with pytest.raises(CorruptTableError, match="no column location"):
        read(manifest)


def _view(spec: PartitionSpec, schema: Schema) -> TableView:
    return TableView(
        name="db.t",
        uuid="u",
        location="/t",
        format_version=2,
        schema=schema,
        schemas={0: schema},
        specs={spec.spec_id: spec},
        default_spec_id=spec.spec_id,
        sort_orders={},
        default_sort_order_id=0,
        properties={},
        snapshot=None,
        format=ICEBERG,
        can=capabilities_of(2),
    )


def test_manifests_of_a_view_are_read_by_spec(tmp_path):
    schema = Schema(pa.schema([pa.field("d", pa.date32(), metadata={"PARQUET:field_id": "1"})]))
    spec = PartitionSpec(0, (PartitionField(1, 1000, "identity", "d"),))
    of = pa.struct([partition_field(1000, "d", pa.date32())])
    days = [{"d": None}, {"d": 3}]
    manifest = committed(written(tmp_path, [entry(partition=day) for day in days], of))
    found = read_manifests(manifest, _view(spec, schema), STORAGE)
    assert list(found) == [0]
    assert found[0]["partition"].type == of
    assert read_manifests(manifest[:0], _view(spec, schema), STORAGE) == {}
    other = PartitionSpec(1, spec.fields)
    with pytest.raises(CorruptTableError, match="no partition spec 0"):
        read_manifests(manifest, _view(other, schema), STORAGE)


def test_tasks_read_manifests_of_several_specs(tmp_path):
    first, second = partition_type("int"), partition_type("string", "dec9")
    rows = [entry(partition=partition_values(first))]
    other = [entry(partition=partition_values(second), spec_id=1, location="b")]
    manifests = pa.concat_tables(
        [
            committed(written(tmp_path, rows, first)),
            committed(written(tmp_path, other, second, name="n.avro", spec_id=1)),
        ]
    )
    types = {0: first, 1: second}
    columns = ("location", "spec_id", "partition", "record_count")
    (task,) = manifest_tasks(manifests, types, {}, columns=columns, tasks=1)
    read_in_task = pa.Table.from_batches(read_manifest_task(task), task_schema(columns))
    found = dict(entries_by_place(read_in_task, [0, 1], types))
    direct = read_by_spec(manifests, types, STORAGE, columns=columns, cache=ManifestCache())
    assert {key: table.to_pylist() for key, table in found.items()} == {
        key: table.to_pylist() for key, table in direct.items()
    }
    assert found[1]["partition"].type == second


def test_tasks_load_no_heavy_packages():
    program = (
        "import sys, rowlake.iceberg.manifest_tasks\n"
        "heavy = {'pyiceberg', 'datafusion', 'pandas', 'pyspark', 'sqlglot'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


class RemoteStorage(Storage):
    """Local files behind a file system that is not this machine's; counts what is read."""

    def __init__(self, root):
        super().__init__({})
        self.root, self.reads = root, 0

    def resolve(self, location):
        inner = fs.SubTreeFileSystem(str(self.root), fs.LocalFileSystem())
        return inner, location.removeprefix("mem://")

    def read(self, location):
        self.reads += 1
        filesystem, path = self.resolve(location)
        with filesystem.open_input_stream(path) as stream:
            return stream.read()


def test_remote_manifests_are_read_once_for_all_processes(tmp_path, decoder):
    folder = tmp_path / "remote"
    folder.mkdir()
    local = committed(pa.concat_tables([written(folder, [entry()], name=name) for name in "ab"]))
    manifests = local.set_column(0, "location", pa.array(["mem://a", "mem://b"]))
    remote = RemoteStorage(folder)
    found = [
        read_by_spec(
            manifests, {0: UNPARTITIONED}, remote, cache=ManifestCache(folder=tmp_path / "cache")
        )[0]
        for _ in range(2)  # each with a memory of its own, as two processes have
    ]
    assert remote.reads == 2
    assert found[0].equals(found[1])
    assert found[0].schema.equals(files_schema(UNPARTITIONED), check_metadata=True)
