"""Storage that fails at every single call: a table is as before or as after, with no stray file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from rowlake import connect
from tests.faults.every_call import Scene, check_every_call
from tests.faults.operations import CREATES, NAME, OPERATIONS, make_table
from tests.parts.failing import CATALOGS, pointer_of, state_of, stray_files

if TYPE_CHECKING:
    from pathlib import Path


def state(catalog: str | None, name: str, place: Path) -> Any:
    """Return what is read of a table but for ids, which no two tables share."""
    found = state_of(place, catalog, name)
    if found is None:
        return None
    return found.rows, len(found.snapshots), found.schema, found.properties


def run(catalog: str | None, operation: str, place: Path) -> None:
    with connect(str(place), catalog) as lake:
        OPERATIONS[operation](lake)


def version(catalog: str | None, name: str, place: Path) -> str | None:
    with connect(str(place), catalog) as lake:
        return pointer_of(lake, name)


@pytest.mark.parametrize("catalog", CATALOGS, ids=["sqlite", "filesystem"])
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_failed_call_leaves_the_table_as_before_or_after(
    tmp_path: Path, monkeypatch, catalog, operation, after
) -> None:
    name = "shop.new" if operation in CREATES else NAME
    scene = Scene(
        make=partial(make_table, catalog=catalog),
        run=partial(run, catalog, operation),
        state=partial(state, catalog, name),
        version=partial(version, catalog, name),
        strays=lambda place: stray_files(place, catalog, name),
    )
    check_every_call(scene, tmp_path, monkeypatch, after=after)
