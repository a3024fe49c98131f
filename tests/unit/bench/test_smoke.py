import json

from bench import smoke


def test_a_counter_that_rose_is_worse():
    assert smoke.verdict("data_files_added", 17, 16) == "worse"
    assert smoke.verdict("spark_jobs", 1, 2) == "better"
    assert smoke.verdict("files_considered", 16, 16) == "same"


def test_bytes_may_move_a_little():
    assert smoke.verdict("bytes_written", 105, 100) == "same"
    assert smoke.verdict("bytes_written", 111, 100) == "worse"
    assert smoke.verdict("shuffled_bytes", 90, 100) == "better"


def test_rows_are_exact_and_pruning_is_good():
    assert smoke.verdict("rows_updated", 9, 10) == "worse"
    assert smoke.verdict("files_pruned", 14, 15) == "worse"
    assert smoke.verdict("files_pruned", 15, 14) == "better"


def test_what_was_not_expected_is_new_and_zeros_are_left_out():
    rows = smoke.judge({"a": {"x": 1.0, "y": 0.0}}, {"a": {"z": 2.0}})
    assert rows == [("a", "x", 1.0, None, "new")]


def test_the_run_fails_where_a_counter_rose_and_not_for_time(monkeypatch, tmp_path):
    expected = tmp_path / "expected.json"
    expected.write_text(json.dumps({"a": {"spark_jobs": 1.0}}))
    monkeypatch.setattr(smoke, "EXPECTED", expected)
    monkeypatch.setattr(smoke, "run", lambda console: {"a": {"spark_jobs": 2.0}})
    assert smoke.main([]) == 1
    assert smoke.main(["--write"]) == 0
    assert smoke.main([]) == 0
    monkeypatch.setattr(smoke, "run", lambda console: {})
    assert smoke.main([]) == 1
