"""Streaming upserts and deletes beside `optimize`: no writer fails, and the table stays small."""

from __future__ import annotations

import pytest

from tests.lakes import make_lake
from tests.parts.beside import SCHEMA, rows
from tests.parts.optimizing import OLD, ROUNDS, WRITERS, expected, work
from tests.parts.race import race

NAME = "shop.t"


@pytest.mark.parametrize("version, kind", [("2", "by value"), ("3", "by position")])
def test_a_table_under_streaming_writes_stays_small_and_right(tmp_path, version, kind) -> None:
    properties = {"format-version": version, "commit.retry.min-wait-ms": "5"}
    warehouse, done = tmp_path / "lake", tmp_path / "done"
    done.mkdir()
    with make_lake(warehouse) as lake:
        lake.create_namespace("shop")
        table = lake.create_table(NAME, SCHEMA, properties=properties)
        table.append(rows(range(OLD, OLD + 2 * ROUNDS), "old"))
        told = race(work, WRITERS + 1, str(warehouse), NAME, str(done), kind)
        assert content(table) == expected(kind)
        files, deletes = told[WRITERS]
        assert files < 2 * ROUNDS
        assert deletes < 2 * ROUNDS
        table.optimize()
        seen = table.health()
        assert (seen.data_files < 5, seen.finding("equality deletes").value) == (True, 0)
        assert content(table) == expected(kind)


def content(table) -> dict[int, str]:
    found = table.arrow()
    ids = found["id"].to_pylist()
    assert len(ids) == len(set(ids))
    return dict(zip(ids, found["v"].to_pylist(), strict=True))
