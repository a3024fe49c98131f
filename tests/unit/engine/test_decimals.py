from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from rowlake.engine.worker import with_decimals

WHOLE = [0, 1, -1, None, 999_999_999_999_999, -999_999_999_999_999]


def decimals_of(whole, precision=15, scale=3):
    batch = pa.record_batch({"n": range(len(whole)), "d": whole})
    (found,) = with_decimals(((1, precision, scale),), list, iter([batch]))
    assert found.schema.names == ["n", "d"]
    assert found["d"].type == pa.decimal128(precision, scale)
    found.validate(full=True)
    return found["d"].to_pylist()


def expected(whole):
    return [None if number is None else Decimal(number).scaleb(-3) for number in whole]


def test_whole_numbers_become_decimals_again():
    assert decimals_of(pa.array(WHOLE, pa.int64())) == expected(WHOLE)


def test_slices_and_empty_batches_become_decimals_too():
    values = pa.array(WHOLE, pa.int64())
    assert decimals_of(values.slice(2)) == expected(WHOLE[2:])
    assert decimals_of(values.slice(0, 0)) == []
    assert decimals_of(pa.nulls(2, pa.int64())) == [None, None]
