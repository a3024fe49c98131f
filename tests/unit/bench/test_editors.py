import json
from pathlib import Path

import pyarrow as pa
import pytest

from bench import environments
from bench.editors import EDITORS
from bench.editors.base import MERGE, Base
from bench.editors.delta import copy_table, delete_sql, merge_sql
from bench.editors.summary import delta_facts, iceberg_facts
from bench.peers.base import TableRef
from bench.staging import some_old_keys


def base(buckets):
    return Base(1_000, buckets, TableRef(Path("w"), "shared.clean_1000_16"))


def test_a_merge_sets_six_columns_and_inserts_all_twelve():
    statement = MERGE.format(target="t1", source="s1")
    assert statement.count(" = s.") == 2 + 6
    assert statement.partition("INSERT")[2].count("s.ss_") == 12


def test_delta_names_the_bucket_where_its_table_has_one():
    assert "t.ss_bucket = s.ss_bucket" in merge_sql(base(16), "x")
    assert "ss_bucket" not in merge_sql(base(None), "x")
    assert " AND ss_bucket = " in delete_sql(base(16), "x", 7, 8)
    assert delete_sql(base(None), "x", 7, 8).endswith("ss_ticket_number = 7 AND ss_item_sk = 8")


def test_rows_to_delete_are_spread_over_those_that_the_table_has():
    keys = pa.table({"ss_ticket_number": [*range(100), 400], "ss_item_sk": [7] * 101})
    found = some_old_keys(keys, rows=1_000)
    assert found == tuple((ticket, 7) for ticket in range(5, 100, 10))
    few = pa.table({"ss_ticket_number": [1, 5, 400], "ss_item_sk": [10, 50, 4000]})
    assert some_old_keys(few, rows=1_000) == ((1, 10), (5, 50))


def test_counters_come_from_the_newest_snapshot(tmp_path):
    table = TableRef(tmp_path, "a.b")
    folder = table.location / "metadata"
    folder.mkdir(parents=True)
    snapshots = [
        {"snapshot-id": 1, "summary": {"added-data-files": "16"}},
        {"snapshot-id": 2, "summary": {"added-data-files": "3", "added-delete-files": "2"}},
    ]
    for number in (2, 10):
        metadata = {"current-snapshot-id": 2, "snapshots": snapshots}
        (folder / f"v{number}.metadata.json").write_text(json.dumps(metadata))
    facts = iceberg_facts(table)
    assert (facts["files_added"], facts["delete_files_added"], facts["files_removed"]) == (3, 2, 0)


def test_delta_tells_the_same_counters_in_the_same_words():
    facts = delta_facts({"numTargetFilesAdded": "4", "executionTimeMs": "9"})
    assert facts == {"files_added": 4.0}


def test_a_copied_delta_table_has_a_log_of_its_own(tmp_path):
    (tmp_path / "a" / "_delta_log").mkdir(parents=True)
    (tmp_path / "a" / "_delta_log" / "0.json").write_text("{}")
    (tmp_path / "a" / "part.parquet").write_text("rows")
    copy_table(tmp_path / "a", tmp_path / "b")
    (tmp_path / "b" / "_delta_log" / "0.json").write_text("changed")
    assert (tmp_path / "a" / "_delta_log" / "0.json").read_text() == "{}"
    assert (tmp_path / "b" / "part.parquet").samefile(tmp_path / "a" / "part.parquet")


def test_a_script_that_fails_tells_its_last_words(tmp_path, monkeypatch):
    import sys

    monkeypatch.setattr(environments, "interpreter", lambda *_: Path(sys.executable))
    script = tmp_path / "s.py"
    script.write_text("raise ValueError('no such thing')")
    with pytest.raises(RuntimeError, match="no such thing"):
        environments.run_script("plots", tmp_path, script)
    script.write_text("print('noise')\nprint('{\"a\": 1}')")
    assert environments.run_script("plots", tmp_path, script) == {"a": 1}


def test_systems_are_known_by_their_own_names():
    assert all(name == kind.name for name, kind in EDITORS.items())
