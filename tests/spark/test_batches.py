from __future__ import annotations

import pytest

from rowlake.engine.batches import BYTES, MOST_ROWS, ROWS, UNLIMITED, bounded_by_rows
from rowlake.engine.spark import Engine
from rowlake.errors import CardinalityError
from tests import engine_kernels as kernels
from tests.engine_kernels import NUMBERS


def told(spark):
    return {key: spark.conf.get(key, None) for key in (ROWS, BYTES)}


@pytest.fixture
def before(spark):
    found = told(spark)
    yield found
    for key, value in found.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


def schema(spark, ddl):
    return spark.createDataFrame([], ddl).schema


def test_batches_are_bounded_by_rows_while_a_job_runs(spark, before):
    plain = schema(spark, "n int, s struct<a: array<string>, m: map<string, decimal(9, 2)>>")
    with bounded_by_rows(spark, plain):
        assert told(spark) == {ROWS: str(MOST_ROWS), BYTES: str(UNLIMITED)}
        with bounded_by_rows(spark, plain):
            assert told(spark) == {ROWS: str(MOST_ROWS), BYTES: str(UNLIMITED)}
        assert told(spark)[BYTES] == str(UNLIMITED)
    assert told(spark) == before


@pytest.mark.parametrize(
    "ddl", ["b binary", "n int, s struct<a: array<binary>>", "m map<string, variant>"]
)
def test_values_of_any_size_stay_bounded_by_bytes(spark, before, ddl):
    with bounded_by_rows(spark, schema(spark, ddl)):
        assert told(spark) == before


def test_what_the_session_sets_is_kept(spark, before):
    spark.conf.set(ROWS, "100")
    with bounded_by_rows(spark, schema(spark, "n int")):
        assert told(spark)[ROWS] == "100"
    assert told(spark)[ROWS] == "100"
    spark.conf.set(BYTES, "1000000")
    with bounded_by_rows(spark, schema(spark, "n int")):
        assert told(spark)[BYTES] == "1000000"
    assert told(spark) == {ROWS: "100", BYTES: "1000000"}


def test_settings_are_put_back_after_a_failure(spark, before):
    with pytest.raises(CardinalityError):
        Engine(spark).consume(spark.range(3), kernels.ambiguous_rows, NUMBERS)
    assert told(spark) == before
