"""Upserts, deletes and merges beside a compaction that hardly rests: no writer fails."""

from __future__ import annotations

import pytest

from tests.lakes import make_lake
from tests.parts.beside import COUNT, LAYOUT, SCHEMA, WRITERS, expected, keys_of, rows, work
from tests.parts.failing import stray_files
from tests.parts.race import race

NAME = "shop.t"


ICEBERG = [({"format-version": "2"}, "copy-on-write"), ({"format-version": "3"}, "merge-on-read")]
DELTA = [({"delta.enableDeletionVectors": "true"}, "merge-on-read")]


@pytest.mark.parametrize("given, mode", [*ICEBERG, *DELTA], ids=["v2", "v3", "delta"])
def test_no_writer_fails_beside_compactions_and_no_row_is_wrong(tmp_path, given, mode):
    properties = {
        **given,
        "write.delete.mode": mode,
        "write.merge.mode": mode,
        # So that neither side starves: the compaction starts over each time.
        "commit.retry.min-wait-ms": "5",
    }
    is_delta = (given, mode) in DELTA
    name = ("delta", str(tmp_path / "t")) if is_delta else NAME
    layout = [] if is_delta else LAYOUT
    warehouse, done = tmp_path / "lake", tmp_path / "done"
    done.mkdir()
    with make_lake(warehouse) as lake:
        lake.create_namespace("shop")
        table = lake.create_table(name, SCHEMA, partition_by=layout, properties=properties)
        table.append(rows([key for n in range(len(WRITERS)) for key in keys_of(n)], "old"))
        *retries, landed = race(work, len(WRITERS) + 1, str(warehouse), name, str(done))
        assert landed, f"no compaction landed between the writers, who retried {retries} times"
        found = lake.table(name).arrow()
        ids = found["id"].to_pylist()
        assert len(ids) == 2 * 2 * COUNT, "two writers leave two rows for each of their keys"
        assert dict(zip(ids, found["v"].to_pylist(), strict=True)) == expected()
    assert stray_files(warehouse, None, name) == set()
