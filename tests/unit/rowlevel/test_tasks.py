"""How many tasks change the rows of how many files."""

from __future__ import annotations

from typing import Any

import pytest

from rowlake.model.task import FileTask
from rowlake.rowlevel.strategy import Mode
from rowlake.rowlevel.task import ChangeTask, Matching
from rowlake.rowlevel.tasks import Placed, change_tasks

MEGABYTE = 1 << 20
ANY: Any = None
TEMPLATE = ChangeTask(ANY, ANY, (), Matching(), Mode.AUTO, "", True, "file")


def placed(number: int, size: int) -> Placed:
    file = FileTask(f"f{number}", "PARQUET", size, 1, 0, size, 0, {})
    return Placed(file, (b"%d" % number,), ())


@pytest.mark.parametrize(
    ("large", "small", "tasks"),
    [(16, 0, 2), (16, 64, 2), (40, 0, 4), (100, 0, 6), (0, 16, 1)],
)
def test_slots_get_a_second_task_only_where_there_is_much_to_read(large, small, tasks):
    files = [placed(number, 17 * MEGABYTE) for number in range(large)]
    files += [placed(large + number, 10_000) for number in range(small)]
    made = change_tasks(TEMPLATE, files, None, slots=2, inserts=False)
    assert len(made) == tasks
    assert sorted(file.location for task in made for file in task.files) == sorted(
        one.file.location for one in files
    )
