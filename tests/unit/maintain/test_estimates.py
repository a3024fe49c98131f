"""Estimates of health and optimize against what the rewrite really does."""

from __future__ import annotations

import re

import pytest

from rowlake.maintain.autopilot.costs import OPEN_BYTES, balance, rewriting
from rowlake.maintain.autopilot.survey import survey
from tests.lakes import make_lake

pytestmark = pytest.mark.delta

PARTITIONS = 30


@pytest.fixture
def lake(tmp_path):
    with make_lake(tmp_path / "lake") as opened:
        opened.create_namespace("shop")
        yield opened


def filled(lake, appends: int):
    table = lake.create_table("shop.t", "id bigint, p int", partition_by="p")
    for number in range(appends):
        table.append([{"id": number, "p": part} for part in range(PARTITIONS)])
    return table


def small_files_finding(table):
    return next(one for one in table.health().findings if one.name == "small files")


def test_a_few_files_in_each_of_many_partitions_are_found_and_the_advice_merges_them(lake):
    table = filled(lake, 3)
    found = small_files_finding(table)
    assert found.verdict.value == "watch"
    promised = int(re.search(r"leave ([\d,]+) files", found.why)[1].replace(",", ""))
    assert "min-input-files" in found.sql
    table.rewrite_data_files(options={"min-input-files": "2"})
    assert table.files().num_rows == promised == PARTITIONS


def test_what_compaction_would_leave_is_what_it_leaves(lake):
    table = filled(lake, 6)
    found = small_files_finding(table)
    promised = int(re.search(r"leave ([\d,]+) files", found.why)[1].replace(",", ""))
    table.rewrite_data_files()
    assert table.files().num_rows == promised


def test_no_step_promises_to_save_more_than_there_is(lake):
    table = filled(lake, 6)
    step = rewriting(survey(table.handle))
    size = sum(table.files()["file_size_in_bytes"].to_pylist())
    assert step.reads <= size
    assert step.rewrites <= size
    assert step.opens == 5 * PARTITIONS
    assert step.saves == step.reads + step.opens * OPEN_BYTES
    assert balance(step).startswith(f"saves about {5 * PARTITIONS:,} file opens per read; rewrites")
