"""The examples of docs/streams.md run in order, and do what the page says."""

from __future__ import annotations

import re

import pytest

import rowlake
from tests.spark_session import ROOT

GUIDE = ROOT / "docs" / "streams.md"


@pytest.mark.timeout(300)
def test_the_examples_of_the_guide_run(spark, tmp_path, capsys):
    with rowlake.connect(str(tmp_path / "lake"), spark=spark) as lake:
        for name in ("shop", "raw"):
            lake.create_namespace(name)
        raw = lake.create_table("raw.orders", "id bigint, status string, amount bigint")
        raw.append([{"id": key, "status": "new", "amount": key} for key in range(4)])
        raw.update({"status": "'cancelled'"}, "id = 3")
        scope = {"lake": lake, "folder": str(tmp_path)}
        for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.S):
            exec(block, scope)

        def rows(name: str) -> list[tuple]:
            return sorted(tuple(row.values()) for row in lake.table(name).arrow().to_pylist())

        assert rows("shop.copy") == [(1, "paid", 5)]
        assert rows("shop.orders") == [(1, "sent", 5), (11, "new", 2)]
        assert rows("shop.customers") == [
            (7, "Bonn", 5, None),
            (7, "Trier", 3, 5),
            (7, "Ulm", 1, 3),
        ]
        assert rows("shop.totals") == [("new", 3, 3)]
        assert "update_postimage" in capsys.readouterr().out
