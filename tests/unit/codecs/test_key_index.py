"""The key index as bytes: all rows of a key are found, and no damage goes unnoticed."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowlake.codecs.key_hash import family_of, hash_keys
from rowlake.codecs.key_index import IndexedFile, decode_head, encode
from rowlake.errors import CorruptTableError

FIRST_READ = 4096


def _file(count: int) -> IndexedFile:
    return IndexedFile("s3://b/t/data/a.parquet", 1000, count, (1,), ("integer",))


def _ranges(data: bytes):
    def read(starts, lengths):
        pairs = zip(starts.tolist(), lengths.tolist(), strict=True)
        parts = [data[start : start + length] for start, length in pairs]
        return np.frombuffer(b"".join(parts), np.uint8)

    return read


def _opened(data: bytes):
    first = data[:FIRST_READ]
    return decode_head("x.puffin", len(data), first, lambda at, length: data[at : at + length])


def _encoded(hashes) -> bytes:
    return encode(_file(len(hashes)), hashes, created_by="test")


def _found(data: bytes, hashes):
    return _opened(data).find(hashes, _ranges(data)).tolist()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 40), max_size=300),
    st.lists(st.integers(0, 60), max_size=20),
)
def test_every_row_of_a_key_is_found(keys, probes):
    hashes = hash_keys([pa.array(keys, pa.int64())])
    found = _found(_encoded(hashes), hash_keys([pa.array(probes, pa.int64())]))
    assert set(found) >= {at for at, key in enumerate(keys) if key in probes}
    assert found == sorted(set(found))


@pytest.mark.parametrize("count", [0, 1, 127, 128, 129, 5000, 200_000])
def test_few_keys_of_files_of_all_sizes(count):
    hashes = hash_keys([pa.array(np.random.default_rng(1).permutation(count))])
    data = _encoded(hashes)
    wanted = np.arange(0, count, max(count // 50, 1))
    found = _found(data, hashes[wanted])
    assert set(found) >= set(wanted.tolist())
    assert len(found) <= len(wanted) + 10
    absent = hash_keys([pa.array(np.arange(count, count + 1000))])
    assert len(_found(data, absent)) <= 20  # one in 500 passes the filter


def test_many_rows_of_one_key_share_a_bucket():
    hashes = hash_keys([pa.array(np.full(70_000, 7))])
    assert len(_found(_encoded(hashes), hashes[:1])) == 70_000


def test_a_lookup_reads_one_bucket_per_key():
    hashes = hash_keys([pa.array(np.arange(1_000_000))])
    data = _encoded(hashes)
    asked = []

    def read(starts, lengths):
        asked.append(int(lengths.sum()))
        return _ranges(data)(starts, lengths)

    assert 5 in _opened(data).find(hashes[5:6], read)
    assert sum(asked) < 2000


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_flipped_bit_loses_a_row(data):
    hashes = hash_keys([pa.array(np.arange(700))])
    whole = bytearray(_encoded(hashes))
    end = len(whole) - 200  # the Puffin footer is for other tools
    place = data.draw(st.integers(0, end - 1))
    whole[place] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = _found(bytes(whole), hashes)
    except CorruptTableError:
        return
    assert found == list(range(700))


@pytest.mark.parametrize("length", [0, 3, 4, 30, 36, 100, 1000, 3000])
def test_a_truncated_index_is_refused(length):
    hashes = hash_keys([pa.array(np.arange(700))])
    data = _encoded(hashes)[:length]
    with pytest.raises(CorruptTableError):
        _found(data, hashes)


def test_entries_of_another_index_do_not_fit():
    one = _encoded(hash_keys([pa.array(np.arange(700))]))
    other = _encoded(hash_keys([pa.array(np.arange(700, 1400))]))
    index = _opened(one)
    with pytest.raises(CorruptTableError):
        index.find(hash_keys([pa.array(np.arange(700))]), _ranges(other))


def test_claims_of_a_header_are_checked_before_anything_is_allocated():
    data = bytearray(_encoded(hash_keys([pa.array(np.arange(700))])))
    data[4 + 16 : 4 + 24] = struct.pack("<Q", 1 << 60)
    with pytest.raises(CorruptTableError):
        _opened(bytes(data))


VALUES = [
    pa.array([1, None, -5], pa.int32()),
    pa.array([1, None, -5], pa.int64()),
    pa.array([1.5, None, float("nan")], pa.float32()),
    pa.array([1.5, None, float("nan")], pa.float64()),
    pa.array(["a", None, ""]),
    pa.array(["a", None, ""], pa.large_string()),
    pa.array([b"a", None, b""]),
    pa.array([b"ab", None, b"cd"], pa.binary(2)),
    pa.array([True, None, False]),
    pa.array([Decimal("1.50"), None, Decimal("-3.00")], pa.decimal128(9, 2)),
    pa.array([dt.date(2024, 1, 1), None, dt.date(1969, 1, 1)]),
    pa.array([dt.datetime(2024, 1, 1), None, dt.datetime(1969, 1, 1)], pa.timestamp("us")),
    pa.array([dt.time(1), None, dt.time(2)], pa.time64("us")),
]


@pytest.mark.parametrize("values", VALUES, ids=lambda values: str(values.type))
def test_keys_of_all_types_hash_alike_wherever_they_stand(values):
    assert family_of(values.type)
    hashed = hash_keys([values])
    assert len(set(hashed.tolist())) == 3
    sliced = pa.concat_arrays([values, values]).slice(2, 3)
    assert hash_keys([sliced]).tolist() == [hashed[2], hashed[0], hashed[1]]
    assert hash_keys([pa.chunked_array([values])]).tolist() == hashed.tolist()


def test_promoted_values_keep_their_hash():
    assert family_of(pa.timestamp("us")) == family_of(pa.timestamp("us", "UTC"))
    for narrow, wide in [
        (pa.int32(), pa.int64()),
        (pa.float32(), pa.float64()),
        (pa.decimal128(8, 2), pa.decimal128(30, 2)),
        (pa.string(), pa.large_string()),
    ]:
        texts = pa.array(["1", "2"])
        values = (texts if pa.types.is_string(narrow) else texts.cast(pa.int16())).cast(narrow)
        assert family_of(narrow) == family_of(wide)
        assert hash_keys([values]).tolist() == hash_keys([values.cast(wide)]).tolist()


def test_zeros_of_both_signs_and_all_nans_are_one_key():
    odd = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    values = pa.array([0.0, -0.0, float("nan"), *odd])
    hashed = hash_keys([values]).tolist()
    assert hashed[0] == hashed[1]
    assert len(set(hashed[2:])) == 1


def test_composite_keys_depend_on_the_order_of_columns():
    one, two = pa.array([1, 2]), pa.array([2, 1])
    assert hash_keys([one, two])[0] != hash_keys([two, one])[0]
    assert hash_keys([one, two])[0] == hash_keys([two, one])[1]


def test_hashes_never_change():
    assert hash_keys([pa.array([0, 1])]).tolist() == [16294208416658607535, 10451216379200822465]
