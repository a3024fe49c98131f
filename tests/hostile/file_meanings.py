"""Data files, delete files and statistics that can be read and hold what they may not."""

from __future__ import annotations

import json
import struct
import zlib
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile.avro_meanings import CONTAINERS
from tests.hostile.mutation import Mutation, nested
from tests.hostile.scene import read_avro, write_avro
from tests.hostile.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hostile.scene import Scene
    from tests.hostile.tables import Layout

SAME, REFUSED, EITHER, COUNT, ANY = (
    Verdict.SAME,
    Verdict.REFUSED,
    Verdict.SAME_OR_ERROR,
    Verdict.COUNT,
    Verdict.ANY,
)
HISTORY = {"history_lies": True, "filters_lie": True}


def rewritten(
    kind: str,
    name: str,
    verdict: Verdict,
    edit: Callable[[pa.Table], pa.Table],
    *,
    counted: bool = False,
    **more: Any,
) -> Mutation:
    """Return a mutation that edits the rows of a Parquet file; `counted`: so do manifests."""

    def apply(scene: Scene) -> None:
        path = scene.path(kind)
        found = edit(pq.read_table(path))
        pq.write_table(found, path)
        scene.settle(path, found.num_rows if counted else None)

    return Mutation(f"{kind}: {name}", kind, verdict, apply, **{**HISTORY, **more})


def recast(column: str, values: Callable[[int], pa.Array]) -> Callable[[pa.Table], pa.Table]:
    """Return an edit that gives a column other values, with the field id that it had."""

    def edit(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index(column)
        made = values(table.num_rows)
        field = pa.field(column, made.type, metadata=table.schema.field(place).metadata)
        return table.set_column(place, field, made)

    return edit


def repeated(value: Any, of: pa.DataType) -> Callable[[int], pa.Array]:
    return lambda count: pa.array([value] * count, of)


def _no_text(count: int) -> pa.Array:
    """Return texts that are no UTF-8."""
    raw = pa.array([b"\xff\xfe\x80"] * count, pa.binary())
    return pa.Array.from_buffers(pa.string(), count, raw.buffers())


def _same_ids(table: pa.Table) -> pa.Table:
    metadata = table.schema.field(0).metadata
    return table.cast(pa.schema([one.with_metadata(metadata) for one in table.schema]))


def _stripped(table: pa.Table) -> pa.Table:
    names = [f"c{number}" for number in range(table.num_columns)]
    return pa.table([column.combine_chunks() for column in table.columns], names=names)


def _is_parquet(layout: Layout) -> bool:
    return layout.file_format == "parquet"


def _is_avro(layout: Layout) -> bool:
    return layout.file_format == "avro"


_data = partial(rewritten, "data", suits=_is_parquet)
DATA = [
    # The rows are those of the file, whatever its manifest counts: so do all readers.
    _data("a row less", ANY, lambda t: t.slice(1)),
    _data("a row more", ANY, lambda t: pa.concat_tables([t, t.slice(0, 1)])),
    _data("no rows", ANY, lambda t: t.slice(0, 0)),
    _data("no columns", ANY, lambda t: t.select([])),
    _data("no required column", REFUSED, lambda t: t.drop_columns(["id"])),
    _data("a text for a number", REFUSED, recast("id", repeated("x", pa.string()))),
    _data("a list for a number", REFUSED, recast("id", repeated([1], pa.list_(pa.int64())))),
    _data("a number for a struct", REFUSED, recast("place", repeated(1, pa.int64()))),
    _data("a number for a list", REFUSED, recast("tags", repeated(1, pa.int64()))),
    _data("a wider number", ANY, recast("store", repeated(2**40, pa.int64()))),
    _data("a wider decimal", ANY, recast("amount", repeated(10**20, pa.decimal128(38, 2)))),
    _data("a number for a date", ANY, recast("sold_on", repeated(2**31 - 1, pa.int32()))),
    _data(
        "a date too late",
        ANY,
        recast("sold_on", lambda n: pa.array([2**31 - 1] * n, pa.int32()).cast(pa.date32())),
    ),
    _data("nulls in a required column", ANY, recast("id", repeated(None, pa.int64()))),
    _data("texts that are no UTF-8", COUNT, recast("note", _no_text)),
    _data("columns of one id", EITHER, _same_ids),
    _data("columns without ids", ANY, _stripped),
    *(
        Mutation(
            f"data: {name}", "data", verdict, partial(apply, "data"), suits=_is_avro, **HISTORY
        )
        for name, (apply, verdict) in CONTAINERS.items()
    ),
]


# --- position deletes


def _more_positions(*values: Any, path: str | None = "") -> Callable[[pa.Table], pa.Table]:
    """Return an edit that adds rows; `path` is the one of the first row where it is empty."""

    def edit(table: pa.Table) -> pa.Table:
        own = table["file_path"][0].as_py() if path == "" else path
        columns = {
            name: table[name].to_pylist()
            + ([own] * len(values) if name == "file_path" else list(values))
            for name in ("file_path", "pos")
        }
        fields = [table.schema.field(name).with_nullable(True) for name in columns]
        return pa.table(columns, schema=pa.schema(fields))

    return edit


_positions = partial(rewritten, "position deletes")
POSITIONS = [
    _positions("past the end", EITHER, _more_positions(10_000), counted=True),
    _positions("far past the end", EITHER, _more_positions(2**40), counted=True),
    _positions("as far as can be", EITHER, _more_positions(2**63 - 1), counted=True),
    _positions("before the start", EITHER, _more_positions(-1), counted=True),
    _positions("far before the start", EITHER, _more_positions(-(2**63)), counted=True),
    _positions("null", EITHER, _more_positions(None), counted=True),
    _positions("of no file", EITHER, _more_positions(0, path=None), counted=True),
    _positions("of another file", EITHER, _more_positions(0, path="/nowhere"), counted=True),
    _positions("of a path with a NUL", EITHER, _more_positions(0, path="a\0b"), counted=True),
    _positions(
        "backwards", SAME, lambda t: t.take(list(reversed(range(t.num_rows)))), counted=True
    ),
    _positions("twice", SAME, lambda t: pa.concat_tables([t, t]), counted=True),
    _positions("as texts", REFUSED, recast("pos", repeated("x", pa.string()))),
    _positions("of numbers as paths", REFUSED, recast("file_path", repeated(5, pa.int64()))),
    _positions("without positions", REFUSED, lambda t: t.drop_columns(["pos"])),
    _positions("without paths", REFUSED, lambda t: t.drop_columns(["file_path"])),
    _positions("without columns", REFUSED, lambda t: t.select([])),
    _positions("more than are counted", EITHER, _more_positions(10_000, 10_001)),
]


# --- equality deletes

_keys = partial(rewritten, "equality deletes")
EQUALITY = [
    _keys(
        "of unknown keys too",
        SAME,
        lambda t: pa.concat_tables(
            [t, pa.table({"id": pa.array([987], pa.int64())}, schema=t.schema)]
        ),
        counted=True,
    ),
    _keys("twice", SAME, lambda t: pa.concat_tables([t] * 3), counted=True),
    _keys(
        "of nulls too",
        EITHER,
        lambda t: pa.table(
            {"id": pa.array([4, None], pa.int64())},
            schema=pa.schema([t.schema.field(0).with_nullable(True)]),
        ),
        counted=True,
    ),
    _keys("as texts", REFUSED, recast("id", repeated("x", pa.string()))),
    _keys("as lists", REFUSED, recast("id", repeated([4], pa.list_(pa.int64())))),
    _keys("without columns", REFUSED, lambda t: t.select([])),
    _keys("without ids", EITHER, _stripped),
    _keys("more than are counted", EITHER, lambda t: pa.concat_tables([t] * 3)),
]


# --- deletion vectors


def _vector(vector: bytes, cardinality: int, *, checked: bool = True) -> Callable[[Scene], None]:
    """Put a vector of raw bytes into the Puffin file, and let all its entries mean that one."""
    data = b"\xd1\xd3\x39\x64" + vector
    checksum = zlib.crc32(data) if checked else 5
    blob = struct.pack(">I", len(data)) + data + struct.pack(">I", checksum)

    def apply(scene: Scene) -> None:
        path = scene.path("vectors")
        footer = json.dumps({"blobs": []}).encode()
        end = b"PFA1" + footer + struct.pack("<ii", len(footer), 0) + b"PFA1"
        path.write_bytes(b"PFA1" + blob + end)
        for manifest in scene.paths("delete manifest"):
            found = read_avro(manifest)
            for record in found.records:
                facts = {"content_offset": 4, "content_size_in_bytes": len(blob)}
                record["data_file"] |= {**facts, "record_count": cardinality}
            write_avro(manifest, found)
            scene.settle(manifest)
        scene.settle(path)

    return apply


def runs_of(*runs: tuple[int, int], high: int = 0) -> bytes:
    """Return one bitmap of runs (first, length less one) of 2^16 positions each, portable form."""
    count = len(runs)
    cookie = struct.pack("<I", 12347 | (count - 1) << 16)
    flags = bytes([0xFF]) * ((count + 7) // 8)
    keys = b"".join(struct.pack("<HH", place, length) for place, (_, length) in enumerate(runs))
    offsets = (
        b"".join(
            struct.pack("<I", len(cookie + flags + keys) + 4 * count + 6 * place)
            for place in range(count)
        )
        if count >= 4
        else b""
    )
    held = b"".join(struct.pack("<HHH", 1, first, length) for first, length in runs)
    return struct.pack("<I", high) + cookie + flags + keys + offsets + held


def bitmaps(*parts: bytes, count: int | None = None) -> bytes:
    return struct.pack("<Q", len(parts) if count is None else count) + b"".join(parts)


FULL = [(0, 65535)] * 65536


def _vectors(name: str, verdict: Verdict, apply: Callable[[Scene], None]) -> Mutation:
    return Mutation(f"vectors: {name}", "vectors", verdict, apply, **HISTORY)


VECTORS = [
    _vectors("of four billion rows", ANY, _vector(bitmaps(runs_of(*FULL)), 2**32)),
    _vectors("of twenty million rows", ANY, _vector(bitmaps(runs_of(*FULL[:320])), 320 << 16)),
    _vectors("of more rows than are counted", REFUSED, _vector(bitmaps(runs_of(*FULL)), 3)),
    _vectors("of a far row", ANY, _vector(bitmaps(runs_of((5, 0), high=2**30)), 1)),
    _vectors("of a row too far", REFUSED, _vector(bitmaps(runs_of((5, 0), high=2**32 - 1)), 1)),
    _vectors("of nothing", ANY, _vector(bitmaps(), 0)),
    _vectors("of too many bitmaps", REFUSED, _vector(bitmaps(count=2**60), 1)),
    _vectors("of bitmaps that are cut", REFUSED, _vector(bitmaps(runs_of((5, 0))[:-3]), 1)),
    _vectors("of bitmaps of noise", REFUSED, _vector(bitmaps(b"\xff" * 99), 1)),
    _vectors("of another checksum", REFUSED, _vector(bitmaps(runs_of((1, 0))), 1, checked=False)),
]


# --- statistics, which no rows depend on


def _footer(payload: bytes, length: int | None = None, flags: int = 0) -> Callable[[Scene], None]:
    def apply(scene: Scene) -> None:
        said = len(payload) if length is None else length
        end = struct.pack("<iI", said, flags) + b"PFA1"
        path = scene.path("statistics")
        path.write_bytes(b"PFA1PFA1" + payload + end)

        def edit(metadata: dict[str, Any]) -> None:
            size = path.stat().st_size
            metadata["statistics"][0] |= {
                "file-size-in-bytes": size,
                "file-footer-size-in-bytes": size - 4,
            }

        scene.edit_metadata(edit)

    return apply


def _blob(**values: Any) -> bytes:
    blob = {
        "type": "apache-datasketches-theta-v1",
        "fields": [1],
        "snapshot-id": 1,
        "sequence-number": 1,
        "offset": 4,
        "length": 4,
    }
    return json.dumps({"blobs": [{**blob, **values}]}).encode()


STATISTICS = [
    Mutation(f"statistics: {name}", "statistics", SAME, apply)
    for name, apply in {
        "a footer nested too deep": _footer(nested("[", "]", 100_000).encode()),
        "a footer of less than no bytes": _footer(b"{}", -5),
        "a footer of too many bytes": _footer(b"{}", 2**31 - 1),
        "a footer that is no JSON": _footer(b"{"),
        "a footer of no blobs": _footer(b"{}"),
        "a footer of odd blobs": _footer(b'{"blobs": [5, null]}'),
        "a footer with odd flags": _footer(b"{}", None, 0xFFFFFFFF),
        "a footer that is not compressed as said": _footer(b"{}", None, 1),
        "a blob before the start": _footer(_blob(offset=-5)),
        "a blob past the end": _footer(_blob(offset=2**40)),
        "a blob of too many bytes": _footer(_blob(length=2**40)),
        "a blob of less than no bytes": _footer(_blob(length=-5)),
        "a blob of no sketch": _footer(_blob(length=8)),
        "a blob of an unknown codec": _footer(_blob(**{"compression-codec": "odd"})),
        "a blob of an unknown type": _footer(_blob(type="odd")),
    }.items()
]
PARTITIONS = [
    rewritten("partition statistics", name, SAME, edit)
    for name, edit in {
        "no columns": lambda t: t.select([]),
        "no rows": lambda t: t.slice(0, 0),
        "rows twice": lambda t: pa.concat_tables([t, t]),
        "a text for a number": recast("spec_id", repeated("x", pa.string())),
        "an unknown spec": recast("spec_id", repeated(77, pa.int32())),
        "a text for the partition": recast("partition", repeated("x", pa.string())),
        "counts of less than nothing": recast("data_record_count", repeated(-5, pa.int64())),
        "counts that are huge": recast("data_record_count", repeated(2**62, pa.int64())),
    }.items()
]

MUTATIONS = [*DATA, *POSITIONS, *EQUALITY, *VECTORS, *STATISTICS, *PARTITIONS]
