"""A table whose folder another one takes while a statement runs: nothing lands in the new one."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest

from rowlake import connect
from rowlake.commit.phases import Phase
from rowlake.errors import CommitConflictError
from tests.parts.stopping import stopped_at

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


@pytest.mark.parametrize("phase", [Phase.WRITTEN, Phase.PRODUCED])
@pytest.mark.parametrize(
    "write",
    [lambda table: table.append(ROWS), lambda table: table.delete("id = 1")],
    ids=["append", "delete"],
)
def test_a_commit_never_lands_above_a_hole_in_the_log_of_another_table(tmp_path, phase, write):
    place = ("delta", str(tmp_path / "t"))
    with connect(str(tmp_path / "lake")) as lake:
        table = lake.create_table(place, ROWS.schema)
        for _ in range(3):
            table.append(ROWS)

        def recreate() -> None:
            shutil.rmtree(tmp_path / "t")
            lake.create_table(place, ROWS.schema).append(ROWS)

        with stopped_at(phase, recreate), pytest.raises(CommitConflictError, match="dropped"):
            write(table)
        again = lake.table(place)
        assert [one.snapshot_id for one in again.snapshots()] == [0, 1]
        assert again.arrow().num_rows == 3
