from __future__ import annotations

import base64
import pickle
from datetime import date

import pytest

from rowlake.engine.failures import TaskFailure, translated
from rowlake.engine.sealed_errors import DRIVER_SEAL, Seal, as_marked_text, signed
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
    home = translated(
        RuntimeError(f"Spark:\n{TaskFailure(error, DRIVER_SEAL)}\n\tat java"), "scanning"
    )
    assert type(home) is type(error)
    assert str(home) == str(error)
    assert home.__dict__ == error.__dict__


def test_executors_without_rowlake_get_advice():
    error = translated(RuntimeError(NO_ROWLAKE), "scanning ns.t")
    assert isinstance(error, EngineError)
    assert "scanning ns.t" in str(error)
    assert "addArtifacts" in str(error)


OTHER_VERSION = """Job aborted
Traceback (most recent call last):
  File "/x/site-packages/rowlake/engine/worker.py", line 79, in _prepare
rowlake.errors.EngineError: Cannot run the task: the executor has rowlake 0.0.9, the driver 0.1.0.

\tat org.apache.spark.Nothing"""
NO_NUMPY = """Job aborted
Traceback (most recent call last):
  File "/x/site-packages/rowlake/engine/worker.py", line 20, in <module>
ModuleNotFoundError: No module named 'numpy'
\tat org.apache.spark.Nothing"""


def test_another_version_on_the_executors_is_an_engine_error():
    error = translated(RuntimeError(OTHER_VERSION), "scanning")
    assert type(error) is EngineError
    assert "the executor has rowlake 0.0.9, the driver 0.1.0." in str(error)
    assert "addArtifacts" in str(error)


def test_executors_without_a_dependency_are_told_from_a_bug():
    error = translated(RuntimeError(NO_NUMPY), "scanning ns.t")
    assert type(error) is EngineError
    assert "no module numpy" in str(error)


def raised(error: RowlakeError) -> str:
    """Return what Spark says of an error that a worker raised."""
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    return f"Job aborted\nTraceback (most recent call last):\n{name}: {error}\n\n\tat java"


@pytest.mark.parametrize(
    "text",
    ["torn", "two\nlines\n\nand more", "it says [rowlake 0123456789abcdef0123456789abcdef] itself"],
)
def test_signed_errors_keep_class_and_message(text):
    error = signed(CorruptTableError("file:/x", text), DRIVER_SEAL)
    home = translated(RuntimeError(raised(error)), "scanning")
    assert type(home) is CorruptTableError
    assert str(home) == str(CorruptTableError("file:/x", text))


STRANGER = Seal()
CONFLICT = CommitConflictError("MERGE", "ns.t", "because", retryable=True)


class Touches:
    """Makes a file where it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return open, (self.path, "w")


def test_text_with_a_pickle_in_it_runs_no_code(tmp_path):
    made = tmp_path / "made"
    pickled = pickle.dumps((Touches(str(made)), (), {}))
    for form in (f"[rowlake-error {base64.b64encode(pickled).decode()}]", as_marked(pickled)):
        cause = RuntimeError(f"[CAST_INVALID_INPUT] The value '{form}' cannot be cast.")
        assert translated(cause, "updating") is cause
    assert not made.exists()


def as_marked(payload: bytes) -> str:
    packed = base64.b64encode(payload).decode()
    return f"[rowlake-error {packed} {STRANGER.of('mark', packed)}]"


@pytest.mark.parametrize(
    "forged",
    [
        as_marked_text(CONFLICT, STRANGER),
        raised(signed(CONFLICT, STRANGER)),
        raised(CONFLICT),
        "\nrowlake.errors.SystemExit: now",
    ],
    ids=["marked", "signed", "plain", "no error of ours"],
)
def test_errors_that_content_forges_are_nothing_but_text(forged):
    cause = RuntimeError(f"[CAST_INVALID_INPUT] The value '{forged}' cannot be cast.")
    assert translated(cause, "updating") is cause


def test_a_forged_error_before_the_real_one_does_not_hide_it():
    forged = f"{raised(CONFLICT)}\n{as_marked_text(CONFLICT, STRANGER)}"
    real = CorruptTableError(forged, "torn")
    home = translated(RuntimeError(f"Spark: {TaskFailure(real, DRIVER_SEAL)}"), "scanning")
    assert type(home) is CorruptTableError
    assert home.location == forged


def test_a_signature_does_not_fit_another_class_or_text():
    text = raised(signed(CorruptTableError("file:/x", "torn"), DRIVER_SEAL))
    for changed in (text.replace("Corrupt", "Other"), text.replace("torn", "worn")):
        cause = RuntimeError(changed)
        assert translated(cause, "scanning") is cause


def test_fields_that_are_no_plain_data_come_home_as_text():
    error = CardinalityError("twice", keys=[(date(2024, 1, 2), b"x"), {"a": 1}])
    home = translated(RuntimeError(str(TaskFailure(error, DRIVER_SEAL))), "merging")
    assert home.keys == (("2024-01-02", "b'x'"), {"a": 1})


def test_a_seal_does_not_show_its_key():
    assert STRANGER.key.hex() not in repr(STRANGER)
    assert repr(STRANGER.key) not in repr(STRANGER)


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
