from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import rowlake
from rowlake.engine.jobs import GROUP_PROPERTIES
from rowlake.engine.spark import Engine
from rowlake.errors import EngineError
from tests import engine_kernels as kernels
from tests.engine_checks import CHECKS
from tests.engine_kernels import NUMBERS
from tests.spark_session import worker_environment


@pytest.fixture
def engine(spark):
    return Engine(spark)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_any_session(engine, check):
    check(engine)


def test_the_active_session_is_used(spark):
    assert Engine().spark is spark


def test_closing_leaves_the_users_session_alone(spark):
    Engine(spark).close()
    assert spark.range(1).count() == 1


def test_a_task_that_fails_once_gives_its_rows_once(engine, tmp_path):
    kernel = partial(kernels.fail_once, str(tmp_path))
    table = engine.run(kernel, [1, 2, 3], NUMBERS)
    assert sorted(table["n"].to_pylist()) == [1, 2, 3]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2", "3"]


def test_a_lazy_frame_retries_too(engine, tmp_path):
    frame = engine.dataframe(partial(kernels.fail_once, str(tmp_path)), [1, 2], NUMBERS)
    assert sorted(row.n for row in frame.collect()) == [1, 2]


def test_executors_with_another_rowlake_are_told_apart(engine, monkeypatch):
    monkeypatch.setattr("rowlake.engine.spark.__version__", "9.9.9")
    with pytest.raises(EngineError, match=r"driver 9\.9\.9\. Install the same rowlake"):
        engine.run(kernels.count_up, [1, 2], NUMBERS)


def test_the_job_group_of_the_user_is_put_back(engine):
    context = engine.spark.sparkContext
    context.setJobGroup("mine", "my work")
    try:
        engine.run(kernels.count_up, [1, 2], NUMBERS)
        assert context.getLocalProperty("spark.jobGroup.id") == "mine"
        assert context.getLocalProperty("spark.job.description") == "my work"
    finally:
        for key in GROUP_PROPERTIES:
            context.setLocalProperty(key, None)


def test_ctrl_c_cancels_the_job(engine, tmp_path):
    main = threading.get_ident()

    def interrupt() -> None:
        deadline = time.monotonic() + 60
        while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.05)
        signal.pthread_kill(main, signal.SIGINT)

    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt).start()
    begun = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            engine.run(partial(kernels.sleepy, str(tmp_path)), [1, 2], NUMBERS)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert time.monotonic() - begun < 50
    tracker = engine.spark.sparkContext.statusTracker()
    deadline = time.monotonic() + 20
    while tracker.getActiveJobsIds() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not tracker.getActiveJobsIds()


def test_ctrl_c_in_a_call_to_java_that_is_no_job(spark, capfd):
    main = threading.get_ident()
    timer = threading.Timer(0.5, lambda: signal.pthread_kill(main, signal.SIGINT))
    begun = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        spark._jvm.java.lang.Thread.sleep(60_000)
    assert time.monotonic() - begun < 30
    assert spark.range(3).count() == 3
    assert "Traceback" not in capfd.readouterr().err


def test_ctrl_c_leaves_the_connections_of_other_threads_alone(spark):
    client = spark.sparkContext._gateway._gateway_client
    main, over = threading.get_ident(), threading.Event()
    kept = []

    def other() -> None:
        spark.sparkContext.getLocalProperty("any")
        before = client.get_thread_connection()
        signal.pthread_kill(main, signal.SIGINT)
        over.wait(30)
        # An answer after the end of the interrupted call: Java has closed by then what it closes.
        spark._jvm.java.lang.Thread.sleep(300)
        kept.append(client.get_thread_connection() is before)

    thread = threading.Thread(target=other)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        spark._jvm.java.lang.Thread.sleep(60_000)
    over.set()
    thread.join()
    assert kept == [True]


EMPTY_TASKS = """
import psutil
from rowlake.engine.spark import Engine
from rowlake.errors import EngineError
from tests import engine_kernels as kernels
engine, me = Engine(), psutil.Process()

def seconds():
    times = [p.cpu_times() for p in [me, *me.children(recursive=True)]]
    return sum(t.user + t.system for t in times)

def run():
    engine.run(kernels.nothing, list(range(40)), kernels.NUMBERS)

for _ in range(5):
    run()
costs = []
for _ in range(3):
    before = seconds()
    run()
    costs.append((seconds() - before) / 40)
print(min(costs))
"""


def test_an_empty_task_is_cheap():
    """It costs 0.18 s of CPU and more as PySpark comes; the bench measures what it costs here."""
    environment = {**os.environ, **worker_environment()}
    answer = subprocess.run(
        [sys.executable, "-c", EMPTY_TASKS],
        capture_output=True,
        text=True,
        env=environment,
        cwd=Path(__file__).parents[2],
        timeout=200,
    )
    assert answer.returncode == 0, answer.stderr
    assert float(answer.stdout) < 0.08


def test_rows_of_frames_with_dots_in_their_names_are_written(spark, tmp_path):
    lake = rowlake.connect(warehouse=str(tmp_path), spark=spark)
    lake.create_namespace("db")
    schema = pa.schema([("a.b", pa.int64()), ("back`tick", pa.string())])
    for number, parts in enumerate(([], ["`a.b`"], ["bucket(2, `a.b`)"])):
        lake.create_table(f"db.t{number}", schema, partition_by=parts)
        lake.sql(f"INSERT INTO db.t{number} SELECT id, 'x' FROM range(3)")
        found = lake.table(f"db.t{number}").arrow()
        assert sorted(found["a.b"].to_pylist()) == [0, 1, 2]
        assert found.column_names == ["a.b", "back`tick"]
