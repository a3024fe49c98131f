"""Rows read page by page are those of a whole read, and anything odd is left to the whole read."""

from __future__ import annotations

import datetime as dt
import decimal
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowlake.scan.parquet_layout import page_locations, read_layout
from rowlake.scan.parquet_pages import PageReader
from rowlake.scan.source import Unit

ROWS = 5000
FOOTER_END = 8


def sample(rows: int = ROWS) -> pa.Table:
    """Return columns of all kinds that pages can hold, a fifth of the values null."""
    draw = np.random.default_rng(3)
    numbers = draw.integers(-(10**6), 10**6, rows)
    absent = draw.random(rows) < 0.2
    day = dt.date(2024, 1, 1)

    def column(make, kind: pa.DataType) -> pa.Array:
        values = [None if gone else make(int(n)) for n, gone in zip(numbers, absent, strict=True)]
        return pa.array(values, kind)

    return pa.table(
        {
            "required": pa.array(numbers),
            "long": column(int, pa.int64()),
            "double": column(float, pa.float64()),
            "flag": column(lambda n: n % 2 == 0, pa.bool_()),
            "text": column(lambda n: "x" * (n % 7) + str(n), pa.string()),
            "few": column(lambda n: f"kind {n % 4}", pa.string()),
            "bytes": column(lambda n: n.to_bytes(8, "big", signed=True), pa.binary(8)),
            "amount": column(lambda n: decimal.Decimal(n) / 100, pa.decimal128(20, 2)),
            "day": column(lambda n: day + dt.timedelta(n % 900), pa.date32()),
            "at": column(lambda n: n * 1000, pa.timestamp("us", "UTC")),
            "nested": column(lambda n: {"a": n}, pa.struct([("a", pa.int64())])),
            "after": column(int, pa.int32()),
        }
    )


SAMPLE = sample()
SETTINGS = {
    "plain": {"use_dictionary": False, "compression": "none"},
    "dictionary": {"use_dictionary": True, "compression": "zstd"},
    "snappy, version 2": {"compression": "snappy", "data_page_version": "2.0"},
    "gzip, split": {"use_dictionary": False, "column_encoding": {"double": "BYTE_STREAM_SPLIT"}},
    "delta": {"use_dictionary": False, "column_encoding": {"long": "DELTA_BINARY_PACKED"}},
}


def written(**settings) -> bytes:
    """Return a file of the sample in row groups of 2,000 rows and pages of 100 rows."""
    sink = io.BytesIO()
    usual = {"row_group_size": 2000, "max_rows_per_page": 100, "write_batch_size": 100}
    pq.write_table(SAMPLE, sink, **usual, **{"write_page_index": True, **settings})
    return sink.getvalue()


FILES = {name: written(**settings) for name, settings in SETTINGS.items()}


def units_of(metadata: pq.FileMetaData) -> list[Unit]:
    counts = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    firsts = np.cumsum([0, *counts]).tolist()
    return [Unit(group, 0, firsts[group], count) for group, count in enumerate(counts)]


def read(data: bytes, leaf: int, positions: list[int], *, is_local: bool = True) -> pa.Array | None:
    stream = pa.BufferReader(data)
    metadata = pq.read_metadata(pa.BufferReader(data))
    reader = PageReader(stream, metadata, (id(data), leaf), is_local=is_local)
    return reader.column(leaf, units_of(metadata), np.array(positions, np.int64), {})


def leaves() -> list[tuple[int, str]]:
    """Return the columns at the top level with the number of their leaf."""
    return [(place, name) for place, name in enumerate(SAMPLE.column_names) if name != "nested"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("is_local", [True, False], ids=["local", "remote"])
def test_every_kind_of_column_reads_as_it_does_whole(name, is_local):
    positions = [0, 7, 8, 1999, 2000, 3500, ROWS - 1]
    for leaf, column in leaves():
        found = read(FILES[name], leaf, positions, is_local=is_local)
        assert found is not None, column
        assert found.equals(SAMPLE[column].take(positions).combine_chunks()), column


@given(
    positions=st.sets(st.integers(0, ROWS - 1), min_size=1, max_size=12),
    name=st.sampled_from(sorted(FILES)),
    leaf=st.sampled_from(leaves()),
)
def test_any_positions_read_as_they_do_whole(positions, name, leaf):
    chosen = sorted(positions)
    found = read(FILES[name], leaf[0], chosen)
    assert found is not None
    assert found.equals(SAMPLE[leaf[1]].take(chosen).combine_chunks())


def test_nested_columns_and_files_without_an_offset_index_are_read_whole():
    assert read(FILES["plain"], SAMPLE.column_names.index("nested"), [1]) is None
    assert read(written(write_page_index=False), 0, [1]) is None


def test_most_pages_are_read_whole():
    assert read(FILES["plain"], 0, list(range(0, ROWS, 10))) is None


def footer_of(data: bytes) -> bytes:
    size = int.from_bytes(data[-FOOTER_END : -FOOTER_END + 4], "little")
    return data[-FOOTER_END - size : -FOOTER_END]


@given(place=st.integers(0, 10**6), value=st.integers(0, 255), cut=st.booleans())
def test_a_damaged_footer_or_index_is_a_value_error(place, value, cut):
    data = FILES["dictionary"]
    footer = bytearray(footer_of(data))
    footer[place % len(footer)] = value
    try:
        layout = read_layout(bytes(footer[: place % len(footer)] if cut else footer))
    except ValueError:
        return
    assert len(layout.groups) <= len(footer)


@given(place=st.integers(0, 10**6), value=st.integers(0, 255))
def test_a_damaged_offset_index_is_a_value_error_or_numbers(place, value):
    data = FILES["plain"]
    chunk = read_layout(footer_of(data)).groups[0][0]
    index = bytearray(data[chunk.index_at : chunk.index_at + chunk.index_length])
    index[place % len(index)] = value
    try:
        offsets, sizes, first_rows = page_locations(bytes(index))
    except ValueError:
        return
    assert len(offsets) == len(sizes) == len(first_rows)


def test_pages_outside_of_the_file_are_not_read(monkeypatch):
    monkeypatch.setattr(
        "rowlake.scan.parquet_pages.page_locations",
        lambda _: (np.array([4, 10]), np.array([6, 1 << 40]), np.array([0, 1])),
    )
    data = written(use_dictionary=False)
    with pytest.raises(ValueError, match="outside of the file"):
        read(data, 1, [5])
