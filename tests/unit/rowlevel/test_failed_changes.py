"""A change of which one task fails: nothing is committed, and no task's files are left."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowlake.errors import CardinalityError
from rowlake.model.merge import Action, When
from tests.histories.driver import driver_lake, run, tight_limits
from tests.histories.operations import Clause, Merge, Options
from tests.histories.values import Column
from tests.lakes import files_in

ID, QTY = Column(0, "id", "long"), Column(1, "qty", "long")
KEY, VALUE = Column(-1, "k", "long"), Column(1, "v", "long")


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_tasks_that_finished_before_another_failed_leave_no_file(
    tmp_path, table_format, version, mode
):
    with driver_lake(str(tmp_path)) as lake, tight_limits(tight=True):
        properties = {"format-version": version}
        schema = pa.schema([("id", pa.int64()), ("qty", pa.int64())])
        table = lake.create_table("db.t", schema, properties=properties)
        for first in (0, 10, 20):
            table.append([{"id": first + n, "qty": n} for n in range(5)])
        before = files_in(table.location)
        rows = [{-1: each, 1: 7} for each in (1, 11, 21, 21)]
        update = Clause(When.MATCHED, Action.UPDATE, values={1: VALUE})
        merge = Merge(
            [KEY, VALUE], rows, [(ID, KEY, False)], [update], [ID, QTY], Options(mode=mode)
        )
        with pytest.raises(CardinalityError, match="id=21"):
            run(table, merge)
        assert files_in(table.location) == before
        assert len(table.snapshots()) == 3
