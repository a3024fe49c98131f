"""Values that look like rowlake's own errors: a message that quotes them stays a message."""

from __future__ import annotations

import base64
import pickle

import pyarrow as pa
import pytest

import rowlake
from rowlake.engine.sealed_errors import Seal, as_marked_text, signed
from rowlake.errors import CommitConflictError

STRANGER = Seal()
CONFLICT = CommitConflictError("UPDATE", "ns.t", "because a row says so", retryable=True)


class Touches:
    """Makes a file where it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return open, (self.path, "w")


def hostile_values(path: str) -> list[str]:
    packed = base64.b64encode(pickle.dumps((Touches(path), (), {}))).decode()
    return [
        f"[rowlake-error {packed}]",
        f"[rowlake-error {packed} {STRANGER.of('mark', packed)}]",
        as_marked_text(CONFLICT, STRANGER),
        f"x\nrowlake.errors.CommitConflictError: {signed(CONFLICT, STRANGER)}\n\n",
        f"x\nrowlake.errors.CommitConflictError: {CONFLICT}\n\n",
    ]


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    with rowlake.connect(str(tmp_path_factory.mktemp("lake")), spark=spark) as opened:
        yield opened


STATEMENTS = {
    "update": "UPDATE h.t SET n = CAST(v AS BIGINT)",
    "insert": "INSERT INTO h.t SELECT id, CAST(v AS BIGINT), v FROM h.t",
    "merge": "MERGE INTO h.t USING (SELECT id, CAST(v AS BIGINT) AS n FROM h.t) s ON t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET n = s.n",
    "append": None,
}


@pytest.mark.parametrize(
    ("verb", "number"),
    [*(("update", number) for number in range(5)), ("insert", 0), ("merge", 0), ("append", 0)],
)
def test_values_that_an_error_quotes_run_no_code_and_forge_no_error(lake, tmp_path, verb, number):
    made = tmp_path / "made"
    value = hostile_values(str(made))[number]
    lake.create_namespace("h", if_not_exists=True)
    lake.drop_table("h.t", if_exists=True)
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("v", pa.string())])
    table = lake.create_table("h.t", schema)
    table.append(pa.table({"id": [1], "n": [1], "v": [value]}, schema))
    before = table.snapshots()
    with pytest.raises(Exception, match="CAST_INVALID_INPUT") as caught:
        if STATEMENTS[verb]:
            lake.sql(STATEMENTS[verb])
        else:
            table.append(table.df().selectExpr("id", "CAST(v AS BIGINT) AS n", "v"))
    assert not isinstance(caught.value, CommitConflictError)
    assert not made.exists()
    assert lake.table("h.t").snapshots() == before
