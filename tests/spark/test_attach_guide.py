"""The examples of docs/attach.md run in order, and do what the page says."""

from __future__ import annotations

import re

import pytest

import rowlake
from tests.spark_session import ROOT

GUIDE = ROOT / "docs" / "attach.md"


@pytest.mark.timeout(300)
def test_the_examples_of_the_guide_run(spark, tmp_path):
    scope = {"spark": spark, "folder": str(tmp_path)}
    try:
        for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.S):
            exec(block, scope)
    finally:
        scope["lake"].close()
        spark.catalog.dropTempView("news")
    with rowlake.connect(str(tmp_path / "lake")) as lake:
        kept = [(1, "ulm", 17.5), (2, "bonn", 4.0), (3, "ulm", 1.0)]
        for name in ("shop.sales", "shop.streamed"):
            assert (
                sorted(tuple(row.values()) for row in lake.table(name).arrow().to_pylist()) == kept
            )
        assert lake.table("shop.as_delta").format == "delta"
