"""Tables on object stores, and damaged tables: rows, or an error of rowlake's own."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path

import pytest

from rowlake import connect
from rowlake.delta.state import forget_states
from rowlake.errors import RowlakeError
from rowlake.scan.deletes import clear_caches
from tests.parts.memory_s3 import Blob, memory_s3
from tests.plain_values import in_order

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "delta"
VALUES = [b"null", b"-1", b"99999999999999999999", b"[]", b"{}", b'"x"', b"true", b"1e999"]
VALUE = re.compile(rb':\s*("(?:[^"\\]|\\.)*"|[-0-9.]+|true|false|null)')


@pytest.mark.parametrize("name", ["vectors", "sidecars_json", "sidecars_parquet"])
def test_a_table_on_an_object_store_has_the_same_rows(tmp_path, monkeypatch, name):
    expected = json.loads((GOLDEN / name / "expected.json").read_text())
    with memory_s3(monkeypatch) as store, connect(str(tmp_path)) as lake:
        for path in (GOLDEN / name).rglob("*"):
            if path.is_file():
                key = f"bucket/some/t/{path.relative_to(GOLDEN / name)}"
                store.blobs[key] = Blob(path.read_bytes(), 1_700_000_000_000)
        table = lake.table("delta.`s3://bucket/some/t/`")
        for version in (max(map(int, expected)), 2):
            rows = in_order(table.arrow(snapshot_id=version).to_pylist())
            assert rows == expected[str(version)]


def damaged(path: Path, random_: random.Random) -> None:
    """Change a file: a byte, its end, a value of its JSON, or a gap."""
    data = bytearray(path.read_bytes())
    place = random_.randrange(len(data))
    values = list(VALUE.finditer(bytes(data))) if path.suffix == ".json" else []
    kind = random_.randrange(4)
    if kind == 0 and values:
        found = random_.choice(values)
        data[found.start(1) : found.end(1)] = random_.choice(VALUES)
    elif kind == 1:
        del data[place:]
    elif kind == 2:
        del data[place : place + random_.randrange(1, 20)]
    else:
        data[place] = random_.randrange(256)
    path.write_bytes(bytes(data))


def read_all(table) -> None:
    table.arrow()
    table.snapshots()
    table.history()
    table.files()
    table.inspect("partitions")


@pytest.mark.parametrize("name", ["vectors", "sidecars_json", "several_parts", "clustered"])
def test_a_damaged_log_fails_with_an_error_of_rowlake_or_not_at_all(tmp_path, name):
    random_ = random.Random(name)
    with connect(str(tmp_path / "lake")) as lake:
        for number in range(25):
            folder = tmp_path / str(number)
            shutil.copytree(GOLDEN / name, folder)
            log = sorted([*folder.rglob("_delta_log/**/*.*"), *folder.glob("*.bin")])
            damaged(random_.choice([one for one in log if one.is_file()]), random_)
            forget_states()
            clear_caches()
            try:
                read_all(lake.table(f"delta.`{folder}`"))
            except RowlakeError as error:
                assert str(error)
