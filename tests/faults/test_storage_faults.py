"""Storage that fails at every single call: a table is as before or as after, with no stray file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rowlake import Lake, connect
from rowlake.errors import CommitStateUnknownError, RowlakeError
from tests.faults.operations import CREATES, NAME, OPERATIONS, make_table
from tests.parts.failing import (
    CATALOGS,
    READS,
    WRITES,
    Faults,
    failing,
    files_below,
    pointer_of,
    state_of,
    stray_files,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MOST_CALLS = 400


def error_of(run: Callable[[Lake], Any], lake: Lake) -> RowlakeError | None:
    try:
        run(lake)
    except RowlakeError as error:
        return error
    return None


@pytest.mark.parametrize("catalog", CATALOGS, ids=["sqlite", "filesystem"])
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_failed_call_leaves_the_table_as_before_or_after(
    tmp_path: Path, monkeypatch, catalog, operation, after
) -> None:
    """Each call fails once, before or after its effect, until one run gets through."""
    name = "shop.new" if operation in CREATES else NAME
    make_table(tmp_path, catalog)
    before, files = state_of(tmp_path, catalog, name), files_below(tmp_path)
    # After the effect only writes can fail: a read that fails either way is the same.
    names = WRITES if after else READS + WRITES
    with connect(str(tmp_path), catalog) as lake:
        pointer = pointer_of(lake, name)
        for at in range(1, MOST_CALLS):
            with failing(monkeypatch, Faults(at, after=after), names) as faults:
                raised = error_of(OPERATIONS[operation], lake)
            if raised is None or isinstance(raised, CommitStateUnknownError):
                break
            where = f"call {at}: {faults.calls[at - 1]}: {raised!r}"
            # Files never change under their name: the same ones and the same pointer to them
            # are the same table.
            assert pointer_of(lake, name) == pointer, where
            assert files_below(tmp_path) == files, where
    found = state_of(tmp_path, catalog, name)
    if raised is None:
        assert found != before
        assert stray_files(tmp_path, catalog, name) == set()
