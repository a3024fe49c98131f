from __future__ import annotations

import pytest

from rowlake.engine.failures import TaskFailure, translated
from rowlake.errors import (
    CardinalityError,
    CommitConflictError,
    CorruptTableError,
    EngineError,
    InternalError,
    InvalidStatementError,
    RowlakeError,
    SchemaMismatchError,
    TableNotFoundError,
)

LOST = "Python worker exited unexpectedly (crashed). The consumed memory exceeded the limit."
NO_ROWLAKE = "ModuleNotFoundError: No module named 'rowlake'"
BUG = """Job aborted
Traceback (most recent call last):
  File "/x/site-packages/rowlake/engine/worker.py", line 79, in run_tasks
ZeroDivisionError: division by zero
\tat org.apache.spark.Nothing
\tat more"""


@pytest.mark.parametrize(
    "error",
    [
        InvalidStatementError("wrong", statement="SELECT 1", position=7),
        SchemaMismatchError("no fit", column="a.b"),
        TableNotFoundError("ns.t", similar=["ns.tt"]),
        CardinalityError("twice", keys=[(1, "x")]),
        CommitConflictError("MERGE", "ns.t", "because", snapshot_id=3, files=["f"]),
        CorruptTableError("file:/x", "torn"),
        RowlakeError("plain"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_come_home_with_class_text_and_fields(error):
    home = translated(RuntimeError(f"Spark:\n{TaskFailure(error)}\n\tat java"), "scanning")
    assert type(home) is type(error)
    assert str(home) == str(error)
    assert home.__dict__ == error.__dict__


def test_executors_without_rowlake_get_advice():
    error = translated(RuntimeError(NO_ROWLAKE), "scanning ns.t")
    assert isinstance(error, EngineError)
    assert "scanning ns.t" in str(error)
    assert "addArtifacts" in str(error)


UNPACKED = """Job aborted
Traceback (most recent call last):
  File "/x/site-packages/rowlake/engine/worker.py", line 79, in _prepare
rowlake.errors.EngineError: Cannot run the task: the executor has another rowlake.
Ship it.

\tat org.apache.spark.Nothing"""


def test_an_error_that_no_task_packed_keeps_class_and_message():
    error = translated(RuntimeError(UNPACKED), "scanning")
    assert type(error) is EngineError
    assert str(error) == "Cannot run the task: the executor has another rowlake.\nShip it."


def test_a_lost_worker_is_an_engine_error():
    assert isinstance(translated(RuntimeError(LOST), "scanning"), EngineError)


def test_a_fault_in_a_kernel_is_ours_and_says_where():
    error = translated(RuntimeError(BUG), "scanning")
    assert isinstance(error, InternalError)
    assert "ZeroDivisionError: division by zero" in str(error)
    assert "org.apache.spark" not in str(error)


def test_errors_of_the_users_query_pass_unchanged():
    cause = RuntimeError("[DIVIDE_BY_ZERO] Division by zero.")
    assert translated(cause, "writing") is cause
