from __future__ import annotations

import importlib
import subprocess
import sys
import zipfile
import zipimport

import pyarrow as pa
import pytest

import rowlake
from rowlake.engine import worker
from rowlake.engine.failures import TaskFailure
from rowlake.engine.sealed_errors import DRIVER_SEAL, from_marks
from rowlake.engine.worker import FRAMES, Job, as_frames, from_frames, pack, run_tasks, unpack
from rowlake.errors import EngineError, StorageError

OUTPUT = pa.schema([("n", pa.int64())])


def numbers(task):
    yield pa.RecordBatch.from_pydict({"n": list(range(task))}, OUTPUT)


def refused(task):
    raise StorageError("s3://bucket/key", f"task {task} was refused")
    yield


def job_of(kernel, tasks=None, **options):
    packed = None if tasks is None else tuple(map(pack, tasks))
    return pack(Job(kernel, bytes(OUTPUT.serialize()), packed, **options))


def task_numbers(*ids):
    return iter([pa.RecordBatch.from_pydict({"id": pa.array(ids, pa.int64())})])


@pytest.fixture(autouse=True)
def prepared(monkeypatch):
    monkeypatch.setitem(worker._state, "prepared", True)


def test_tasks_are_looked_up_by_number():
    out = run_tasks(rowlake.__version__, job_of(numbers, [1, 2, 3]), task_numbers(2))
    assert from_frames(pa.Table.from_batches(out, FRAMES), OUTPUT)["n"].to_pylist() == [0, 1, 2]


def test_tasks_may_come_in_the_batches_themselves():
    rows = pa.RecordBatch.from_pydict({"payload": pa.array([pack(2), pack(1)], pa.binary())})
    out = run_tasks(rowlake.__version__, job_of(numbers), iter([rows]))
    assert from_frames(pa.Table.from_batches(out, FRAMES), OUTPUT)["n"].to_pylist() == [0, 1, 0]


def test_another_version_on_the_executor_is_told_with_the_way_out():
    with pytest.raises(EngineError, match=r"driver 9\.9\.9.*--py-files"):
        list(run_tasks("9.9.9", job_of(numbers, [1]), task_numbers(0)))


def test_errors_are_packed_for_the_driver():
    with pytest.raises(TaskFailure) as caught:
        list(run_tasks(rowlake.__version__, job_of(refused, [7]), task_numbers(0)))
    error = from_marks(f"Java said:\n{caught.value}\n\tat org.apache…", DRIVER_SEAL)
    assert isinstance(error, StorageError)
    assert (error.location, error.cause) == ("s3://bucket/key", "task 7 was refused")
    assert str(error).startswith("Cannot reach s3://bucket/key: task 7 was refused.")


def test_errors_stay_as_they_are_where_no_driver_unpacks_them():
    job = job_of(refused, [7], marks_errors=False)
    with pytest.raises(StorageError):
        list(run_tasks(rowlake.__version__, job, task_numbers(0)))


def test_frames_keep_every_type():
    schema = pa.schema(
        [
            pa.field("u", pa.uuid()),
            pa.field("t", pa.timestamp("ns", "UTC")),
            pa.field("m", pa.map_(pa.int32(), pa.binary())),
            pa.field("h", pa.float16()),
        ],
    )
    rows = [{"u": bytes(16), "t": 5, "m": [(1, b"x")], "h": None}, dict.fromkeys("utmh")]
    table = pa.Table.from_pylist(rows, schema)
    frames = pa.Table.from_batches(as_frames(table.to_batches()), FRAMES)
    assert from_frames(frames, schema).equals(table)


def test_large_results_come_in_several_frames(monkeypatch):
    monkeypatch.setattr(worker, "_FRAME_BYTES", 1000)
    batch = pa.RecordBatch.from_pydict({"n": list(range(100))}, OUTPUT)
    frames = list(as_frames([batch] * 5))
    assert len(frames) == 5
    assert from_frames(pa.Table.from_batches(frames, FRAMES), OUTPUT).num_rows == 500


def test_no_results_are_an_empty_table():
    assert from_frames(FRAMES.empty_table(), OUTPUT).equals(OUTPUT.empty_table())


def test_packing_is_reversible():
    value = {"a": [1, 2, 3], "b": b"\0" * 100_000}
    assert unpack(pack(value)) == value
    assert len(pack(value)) < 1000


@pytest.mark.parametrize(
    ("name", "is_told"), [("lib.zip", True), ("shipped.jar", False)], ids=["of Spark", "shipped"]
)
def test_still_archives_serve_imports_without_being_read_again(
    tmp_path, monkeypatch, name, is_told
):
    archive = tmp_path / name
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("rowlake_test_still/__init__.py", "")
        zipped.writestr("rowlake_test_still/later.py", "VALUE = 41")
    monkeypatch.setattr(sys, "path", [str(archive), *sys.path])
    monkeypatch.setattr(sys, "path_hooks", list(sys.path_hooks))
    monkeypatch.setattr(sys, "path_importer_cache", dict(sys.path_importer_cache))
    monkeypatch.delitem(sys.modules, "rowlake_test_still", raising=False)
    monkeypatch.delitem(sys.modules, "rowlake_test_still.later", raising=False)
    importlib.import_module("rowlake_test_still")
    worker.still_archives(str(archive) if is_told else "")
    read = []
    monkeypatch.setattr(zipimport, "_read_directory", lambda path: read.append(path) or {})
    importlib.invalidate_caches()
    assert importlib.import_module("rowlake_test_still.later").VALUE == 41
    importlib.invalidate_caches()
    assert read == []


def test_what_a_worker_loads_is_light():
    heavy = ["pyspark", "pyiceberg", "pandas", "datafusion", "sqlglot", "rich"]
    code = f"import sys, rowlake.engine.worker; print([m for m in {heavy} if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout.strip() == "[]", answer.stderr


def test_importing_the_engine_does_not_import_pyspark():
    code = "import sys, rowlake.engine.spark; print('pyspark' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout.strip() == "False", answer.stderr
