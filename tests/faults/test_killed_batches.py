"""A batch of a stream killed (-9) at every step, then replayed: it is in the table once.

It updates, deletes and adds rows while another writer deletes a row of the same data file.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from rowlake import connect
from rowlake.iceberg.cache import default_cache
from rowlake.model.app_batch import APP_ID
from tests.lakes import SALES, sales
from tests.parts.killed import Death, Work, check_log, run_writer, table_of

if TYPE_CHECKING:
    from pathlib import Path

NAME = "shop.sales"
EVENTS = (
    '[{"id": 6, "note": "new", "op": "u"}, {"id": 7, "note": None, "op": "d"}, '
    '{"id": 100, "note": "new", "op": "u"}]'
)
MERGED = f"table.apply_changes({EVENTS}, keys=['id'], apply_as_deletes=\"op = 'd'\", "
APPENDED = "table.append([{'id': 6, 'note': 'new'}, {'id': 100, 'note': 'new'}], "


def make(warehouse: Path, kind: str) -> None:
    with connect(str(warehouse)) as lake:
        lake.create_namespace("shop")
        lake.create_table(NAME, SALES, **table_of(kind)).append(sales(20))


VECTORS = f"{MERGED} mode='merge-on-read', app_id='feed', batch=3)"
APPEND = f"{APPENDED} **__import__('rowlake.stream.sink', fromlist=['x']).batch_option('feed', 3))"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "kind, operation",
    [("3", VECTORS), ("3", APPEND), ("delta", VECTORS)],
    ids=["vectors", "append", "delta"],
)
def test_a_killed_batch_is_in_the_table_once_after_its_replay(tmp_path, kind, operation) -> None:
    work = Work(None, NAME, operation)
    make(tmp_path / "whole", kind)
    steps, ended = run_writer(work, str(tmp_path / "whole"), Death(at=0))
    assert (ended, steps >= 5) == (0, True)
    wanted = state(tmp_path / "whole", operation)
    for death in [*(Death(at) for at in range(1, steps + 1)), Death(steps, "after")]:
        warehouse = tmp_path / f"{death.at}-{death.side}"
        make(warehouse, kind)
        assert run_writer(work, str(warehouse), death) == (None, -signal.SIGKILL)
        assert state(warehouse, operation) == wanted, death


def state(warehouse: Path, operation: str) -> tuple:
    """Replay the batch; return the rows, and how many commits it has made."""
    default_cache().clear()
    with connect(str(warehouse)) as lake:
        table = lake.table(NAME)
        table.delete("id = 5")
        eval(operation, {"table": table})
        assert eval(operation, {"table": table}).skipped
        rows = table.arrow(["id", "note"]).to_pylist()
        commits = sum(one.summary.get(APP_ID) == "feed" for one in table.snapshots())
        check_log(table)
        return sorted((row["id"], row["note"] or "") for row in rows), commits
