"""A blind writer, a writer by position and the conversion of equality deletes, in one partition.

The blind writer reads nothing and never loses for long; the others must land beside it all the
same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rowlake import connect
from tests.parts.one_partition import (
    BLIND,
    CONVERSION,
    KEYS,
    OPERATIONS,
    POSITION,
    PROCESSES,
    SCHEMA,
    keys_of,
    work,
)
from tests.parts.race import race

if TYPE_CHECKING:
    from pathlib import Path

NAME = "shop.t"


@pytest.mark.parametrize("version", ["2", "3"])
def test_nobody_starves_beside_a_blind_writer(tmp_path: Path, version: str) -> None:
    with connect(str(tmp_path)) as lake:
        lake.create_namespace("shop")
        table = lake.create_table(NAME, SCHEMA, properties={"format-version": version})
        table.append([{"id": key, "v": -1} for key in range(2 * KEYS)])
        (tmp_path / "done").mkdir()
        arguments = (str(tmp_path), NAME, str(tmp_path / "done"))
        told = race(work, PROCESSES, *arguments, timeout_seconds=250)
        names = ("blind", "position", "conversion")
        for name, one in zip(names, told, strict=True):
            slowest = f"{one.slowest_seconds:.1f} s at most"
            print(f"\nv{version} {name}: {one.landed} landed, {one.retries} retries, {slowest}")
        expected = dict.fromkeys(range(2 * KEYS), -1) | told[BLIND].held | told[POSITION].held
        rows = lake.table(NAME).arrow().to_pylist()
        assert sorted((row["id"], row["v"]) for row in rows) == sorted(expected.items())
        # A writer that starves gives up with a conflict, which `race` reports.
        assert (told[POSITION].landed, told[CONVERSION].landed) == (OPERATIONS, OPERATIONS)
        assert set(told[POSITION].held) <= set(keys_of(POSITION))
