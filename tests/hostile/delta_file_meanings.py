"""Checkpoints, sidecars, vectors, data and change data of Delta tables, by their meaning."""

from __future__ import annotations

import struct
import zlib
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile.byte_mutations import SPARED
from tests.hostile.delta_commit_meanings import PLACES
from tests.hostile.delta_commits import (
    ANY,
    EITHER,
    REFUSED,
    SAME,
    edit_action,
    forget_checksums,
)
from tests.hostile.file_meanings import FULL, bitmaps, repeated, runs_of
from tests.hostile.mutation import Mutation, nested

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hostile.scene import Scene
    from tests.hostile.tables import AnyLayout
    from tests.hostile.verdicts import Verdict

Rows = list[dict[str, Any]]
MB = 1 << 20


def _has_sidecars(layout: AnyLayout) -> bool:
    return bool(getattr(layout, "sidecars", False))


def _is_classic(layout: AnyLayout) -> bool:
    return not _has_sidecars(layout)


# --- rows of checkpoints, in the layout that they have or in another


def _rewrite(kind: str, edit: Callable[[pa.Table], pa.Table], scene: Scene) -> None:
    forget_checksums(scene)
    path = scene.path(kind)
    pq.write_table(edit(pq.read_table(path)), path)


def _rows(edit: Callable[[Rows], object]) -> Callable[[pa.Table], pa.Table]:
    """Return an edit of the rows, in the layout that they have."""

    def change(table: pa.Table) -> pa.Table:
        held = table.to_pylist()
        edit(held)
        return pa.Table.from_pylist(held, table.schema)

    return change


def _adds(**changed: Any) -> Callable[[pa.Table], pa.Table]:
    """Return an edit of the first add, field by field."""

    def edit(held: Rows) -> None:
        next(row["add"] for row in held if row.get("add")).update(changed)

    return _rows(edit)


def _field(name: str, change: Callable[[int], pa.Array]) -> Callable[[pa.Table], pa.Table]:
    """Return an edit that gives a field of adds another type."""

    def edit(table: pa.Table) -> pa.Table:
        column = table["add"].combine_chunks()
        names = [one.name for one in column.type]
        parts = [change(len(column)) if one == name else column.field(one) for one in names]
        made = pa.StructArray.from_arrays(parts, names, mask=column.is_null())
        return table.set_column(table.column_names.index("add"), "add", made)

    return edit


def _column(name: str, change: Callable[[int], pa.Array]) -> Callable[[pa.Table], pa.Table]:
    def edit(table: pa.Table) -> pa.Table:
        return table.set_column(table.column_names.index(name), name, change(table.num_rows))

    return edit


def _twice(held: Rows) -> None:
    held.extend(row for row in list(held) if row.get("add"))


def _bomb(kind: str, scene: Scene) -> None:
    """Write one path of a megabyte, four thousand times: a dictionary keeps it once."""
    forget_checksums(scene)
    path = scene.path(kind)
    indices = pa.array([0] * 4000, pa.int32())
    text = pa.array(["x" * MB])
    add = pa.StructArray.from_arrays(
        [pa.DictionaryArray.from_arrays(indices, text), pa.nulls(4000, pa.int64())],
        ["path", "size"],
    )
    held = pq.read_table(path)
    others = [name for name in held.column_names if name != "add"]
    nulls = [pa.nulls(4000, held.schema.field(name).type) for name in others]
    bomb = pa.Table.from_arrays([*nulls, add], names=[*others, "add"])
    plain = held.select(others).filter(pa.compute.invert(pa.compute.is_valid(held["add"])))
    kept = plain.append_column("add", pa.nulls(plain.num_rows, add.type))
    with pq.ParquetWriter(path, bomb.schema) as writer:
        writer.write_table(kept)
        writer.write_table(bomb)


_text = repeated("x", pa.string())
_number = repeated(5, pa.int64())
OF_ADDS: dict[str, tuple[Callable[[pa.Table], pa.Table], Verdict]] = {
    "adds twice": (_rows(_twice), EITHER),
    "no rows": (lambda table: table.slice(0, 0), ANY),
    "no adds": (lambda table: table.drop_columns(["add"]), ANY),
    "adds of numbers": (_column("add", _number), REFUSED),
    "adds of texts": (_column("add", _text), REFUSED),
    "paths of numbers": (_field("path", _number), REFUSED),
    "sizes of texts": (_field("size", _text), EITHER),
    "partition values of texts": (_field("partitionValues", _text), REFUSED),
    "vectors of texts": (_field("deletionVector", _text), REFUSED),
    "statistics of numbers": (_field("stats", _number), EITHER),
    "parsed statistics of texts": (_field("stats_parsed", _text), EITHER),
    "times of texts": (_field("modificationTime", _text), EITHER),
    "tags of numbers": (_field("tags", _number), EITHER),
    "an add without a path": (_adds(path=None), ANY),
    "an add with an empty path": (_adds(path=""), REFUSED),
    "a size of less than nothing": (_adds(size=-1), EITHER),
    "a huge size": (_adds(size=2**62), EITHER),
    "no partition values": (_adds(partitionValues=None), ANY),
    "a vector of no kind": (
        _adds(
            deletionVector={
                "storageType": "?",
                "pathOrInlineDv": "x",
                "sizeInBytes": 5,
                "cardinality": 1,
            }
        ),
        REFUSED,
    ),
    "a vector of nulls": (_adds(deletionVector={}), ANY),
    "statistics nested too deep": (_adds(stats=nested("[", "]", 100_000)), EITHER),
    "statistics of another shape": (_adds(stats="[5]"), EITHER),
}


def _of(kind: str, suits: Callable[[AnyLayout], bool]) -> list[Mutation]:
    more = {"suits": suits, "filters_lie": True, "history_lies": True}
    return [
        *(
            Mutation(
                f"{kind}: {name}",
                kind,
                _spared(kind, verdict),
                partial(_rewrite, kind, edit),
                **more,
            )
            for name, (edit, verdict) in OF_ADDS.items()
        ),
        *(
            Mutation(
                f"{kind}: a path is {name}",
                kind,
                _spared(kind, _of_path(name)),
                partial(_located, kind, name),
                **more,
            )
            for name in PLACES
        ),
        Mutation(f"{kind}: a bomb", kind, _spared(kind, REFUSED), partial(_bomb, kind), **more),
    ]


def _spared(kind: str, verdict: Verdict) -> Verdict:
    """Return what may come of a damaged file: a checkpoint can be spared where the log is whole."""
    return EITHER if kind == SPARED and verdict is REFUSED else verdict


def _of_path(name: str) -> Verdict:
    # A remove of the same file in another spelling does not mean it.
    return ANY if name == ".." else PLACES[name][1]


def _located(kind: str, name: str, scene: Scene) -> None:
    location, _ = PLACES[name]

    def edit(held: Rows) -> None:
        add = next(row["add"] for row in held if row.get("add"))
        add["path"] = location(scene, scene.table / add["path"])

    _rewrite(kind, _rows(edit), scene)


# --- the other actions of checkpoints


def _action(kind: str, **changed: Any) -> Callable[[pa.Table], pa.Table]:
    def edit(held: Rows) -> None:
        next(row[kind] for row in held if row.get(kind)).update(changed)

    return _rows(edit)


def _without(kind: str) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.drop_columns([kind])


def _doubled(kind: str) -> Callable[[pa.Table], pa.Table]:
    return _rows(lambda held: held.extend(row for row in list(held) if row.get(kind)))


def _top(
    name: str, verdict: Verdict, edit: Callable[[pa.Table], pa.Table], **more: Any
) -> Mutation:
    apply = partial(_rewrite, "checkpoint", edit)
    told = _spared(SPARED, verdict)
    return Mutation(f"checkpoint: {name}", SPARED, told, apply, history_lies=True, **more)


SIDECARS = ("", ".", "..", "../00.json", "/dev/zero", "a\0b", "%2e%2e/x", "x" * 5000, "x", None)
CHECKPOINT = [
    _top("no protocol", REFUSED, _without("protocol")),
    _top("no metaData", REFUSED, _without("metaData")),
    _top("two protocols", EITHER, _doubled("protocol")),
    _top("two definitions", EITHER, _doubled("metaData")),
    _top("a protocol of numbers", REFUSED, _column("protocol", _number)),
    _top("a definition of texts", REFUSED, _column("metaData", _text)),
    _top("transactions of numbers", EITHER, _column("txn", _number)),
    _top("a later reader", REFUSED, _action("protocol", minReaderVersion=9)),
    _top("no schema", REFUSED, _action("metaData", schemaString=None)),
    _top("a schema that is no JSON", REFUSED, _action("metaData", schemaString="{")),
    _top(
        "a schema nested too deep",
        REFUSED,
        _action("metaData", schemaString=nested("[", "]", 100_000)),
    ),
    _top("no columns at all", REFUSED, lambda table: table.select([])),
    *(
        _top(f"a sidecar {name!r:.20}", REFUSED, _action("sidecar", path=name), suits=_has_sidecars)
        for name in SIDECARS
    ),
    _top("sidecars twice", EITHER, _doubled("sidecar"), suits=_has_sidecars),
    _top("no sidecars", ANY, _without("sidecar"), suits=_has_sidecars),
    _top("sidecars of texts", REFUSED, _column("sidecar", _text), suits=_has_sidecars),
    *(
        _top(
            f"a sidecar of {size} bytes",
            EITHER,
            _action("sidecar", sizeInBytes=size),
            suits=_has_sidecars,
        )
        for size in (-1, 0, 2**62)
    ),
]


# --- deletion vectors


def _vector(vector: bytes, cardinality: int, *, checked: bool = True) -> Callable[[Scene], None]:
    """Put a vector of raw bytes into a file of its own, and let the last add mean that one."""
    data = struct.pack("<I", 1681511377) + vector
    checksum = zlib.crc32(data) if checked else 5
    content = b"\x01" + struct.pack(">I", len(data)) + data + struct.pack(">I", checksum)

    def apply(scene: Scene) -> None:
        path = scene.table / "vector.bin"
        path.write_bytes(content)
        descriptor = {"storageType": "p", "pathOrInlineDv": f"file://{path}", "offset": 1}
        more = {"sizeInBytes": len(data), "cardinality": cardinality}
        edit_action("add", lambda add, _: add.update(deletionVector={**descriptor, **more}), scene)

    return apply


VECTORS = [
    Mutation(f"delta vectors: {name}", "delta vectors", verdict, apply)
    for name, (verdict, apply) in {
        "of four billion rows": (ANY, _vector(bitmaps(runs_of(*FULL)), 2**32)),
        "of twenty million rows": (ANY, _vector(bitmaps(runs_of(*FULL[:320])), 320 << 16)),
        "of more rows than are counted": (REFUSED, _vector(bitmaps(runs_of(*FULL)), 3)),
        "of a far row": (ANY, _vector(bitmaps(runs_of((5, 0), high=2**30)), 1)),
        "of a row too far": (REFUSED, _vector(bitmaps(runs_of((5, 0), high=2**32 - 1)), 1)),
        "of nothing": (ANY, _vector(bitmaps(), 0)),
        "of too many bitmaps": (REFUSED, _vector(bitmaps(count=2**60), 1)),
        "of bitmaps that are cut": (REFUSED, _vector(bitmaps(runs_of((5, 0))[:-3]), 1)),
        "of bitmaps of noise": (REFUSED, _vector(bitmaps(b"\xff" * 99), 1)),
        "of another checksum": (REFUSED, _vector(bitmaps(runs_of((1, 0))), 1, checked=False)),
    }.items()
]


# --- data and change data


def _data(
    kind: str, name: str, verdict: Verdict, edit: Callable[[pa.Table], pa.Table], **more: Any
) -> Mutation:
    apply = partial(_rewrite_rows, kind, edit)
    return Mutation(f"{kind}: {name}", kind, verdict, apply, history_lies=True, **more)


def _rewrite_rows(kind: str, edit: Callable[[pa.Table], pa.Table], scene: Scene) -> None:
    path = scene.path(kind)
    pq.write_table(edit(pq.ParquetFile(path).read()), path)


def _recast(place: int, change: Callable[[int], pa.Array]) -> Callable[[pa.Table], pa.Table]:
    def edit(table: pa.Table) -> pa.Table:
        made, at = change(table.num_rows), place % table.num_columns
        held = table.schema.field(at)
        return table.set_column(at, pa.field(held.name, made.type, metadata=held.metadata), made)

    return edit


DATA = [
    _data("delta data", "a row less", ANY, lambda t: t.slice(1)),
    _data("delta data", "a row more", ANY, lambda t: pa.concat_tables([t, t.slice(0, 1)])),
    _data("delta data", "no rows", ANY, lambda t: t.slice(0, 0)),
    _data("delta data", "no columns", ANY, lambda t: t.select([])),
    _data("delta data", "no required column", ANY, lambda t: t.remove_column(0)),
    _data("delta data", "a text for a number", REFUSED, _recast(0, _text)),
    _data(
        "delta data",
        "a struct for a number",
        REFUSED,
        _recast(0, lambda n: pa.array([{"a": 1}] * n)),
    ),
    _data(
        "delta data",
        "nulls in a required column",
        ANY,
        _recast(0, lambda n: pa.nulls(n, pa.int64())),
    ),
    _data("change data", "no rows", SAME, lambda t: t.slice(0, 0)),
    _data("change data", "no kinds of changes", SAME, lambda t: t.drop_columns(["_change_type"])),
    _data("change data", "odd kinds of changes", SAME, _recast(-1, _text)),
    _data("change data", "numbers as kinds of changes", SAME, _recast(-1, _number)),
    _data("change data", "a text for a number", SAME, _recast(0, _text)),
]

MUTATIONS = [
    *_of("checkpoint", _is_classic),
    *_of("sidecar", _has_sidecars),
    *CHECKPOINT,
    *VECTORS,
    *DATA,
]
