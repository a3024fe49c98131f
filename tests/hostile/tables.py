"""The tables that are mutated: small, made once per run, copied for every case.

All of them live at the same place in turn, `arena/lake`, because a table's files name each other by
absolute locations; `templates`, beside the arena, keeps a copy of each. In the arena, `victim` has
files that belong to nobody's table, and every lake has a second table: neither may be touched.
"""

from __future__ import annotations

import datetime
import json
import os
import shutil
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Protocol
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from tests.histories.driver import driver_lake

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rowlake import Lake, Table

NAME, OTHER = "db.t", "db.other"
LONG_AGO = 1_500_000_000
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("store", pa.int32()),
        pa.field("sold_on", pa.date32()),
        pa.field("amount", pa.decimal128(9, 2)),
        pa.field("note", pa.string()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("place", pa.struct([pa.field("x", pa.float64()), pa.field("y", pa.float64())])),
    ]
)


class AnyLayout(Protocol):
    """What a sample table is made of, in any table format."""

    format: ClassVar[str]

    @property
    def catalog(self) -> str | None:
        """The kind of catalog, None for the embedded one."""

    @property
    def kinds(self) -> set[str]:
        """The kinds of files that a table has."""

    def make(self, lake: Lake, name: str) -> Table:
        """Create a table and fill it."""

    def files(self, table: Table) -> dict[str, list[str]]:
        """Return where the files of a table are, by kind."""


@dataclass(frozen=True)
class Layout:
    """What a sample of an Iceberg table is made of."""

    version: int
    file_format: str = "parquet"
    catalog: str | None = None
    codec: str = "none"
    partition_by: tuple[str, ...] = ("store",)
    deletes: tuple[str, ...] = ("position",)
    format: ClassVar[str] = "iceberg"

    @property
    def kinds(self) -> set[str]:
        """The kinds of files that a table has."""
        found = {"metadata", "manifest list", "old manifest list", "manifest", "delete manifest"}
        found |= {"data", "statistics", "vectors" if self.version == 3 else "position deletes"}
        found |= {"version hint"} if self.catalog == "filesystem" else set()
        found |= {"partition statistics"} if self.partition_by else set()
        found |= {"equality deletes"} if "equality" in self.deletes else set()
        return found

    def make(self, lake: Lake, name: str) -> Table:
        """Create a table and fill it."""
        properties = {
            "format-version": str(self.version),
            "write.format.default": self.file_format,
            "write.metadata.compression-codec": self.codec,
        }
        table = lake.create_table(
            name, SCHEMA, partition_by=self.partition_by, properties=properties
        )
        _fill(table, self)
        return table

    def files(self, table: Table) -> dict[str, list[str]]:
        """Return where the files of a table are, by kind."""
        return _files_of(table)


LAYOUTS = {
    "v2": Layout(2, deletes=("position", "equality")),
    "v3": Layout(3, codec="gzip"),
    "files": Layout(2, catalog="filesystem", partition_by=("bucket(2, id)",)),
    "files-v3": Layout(3, catalog="filesystem", codec="gzip", partition_by=()),
    "orc": Layout(2, "orc", partition_by=("truncate(4, note)",)),
    "avro": Layout(2, "avro", codec="gzip", partition_by=("months(sold_on)",)),
}


@dataclass(frozen=True)
class Sample:
    """One sample table: its files by kind (relative to the lake), and its rows by snapshot."""

    name: str
    layout: AnyLayout
    template: Path
    files: dict[str, list[str]]
    snapshots: list[tuple[int, list[str]]] = field(repr=False, default_factory=list)

    @property
    def rows(self) -> list[str]:
        """The rows of the current snapshot."""
        return self.snapshots[-1][1]


def arena_of(root: Path) -> Path:
    """Return the folder that cases may change."""
    return root / "arena"


def rows(count: int, first: int = 0) -> pa.Table:
    """Return rows of SCHEMA with ids from `first` on."""
    day = datetime.date(2024, 1, 1)
    made = [
        {
            "id": i,
            "store": None if i % 11 == 10 else i % 2,
            "sold_on": day + datetime.timedelta(days=i),
            "amount": Decimal(i) / 4,
            "note": None if i % 7 == 0 else f"note {i}",
            "tags": None if i % 5 == 0 else [f"t{n}" for n in range(i % 3)],
            "place": None if i % 4 == 0 else {"x": i / 2, "y": None if i % 3 else -1.5},
        }
        for i in range(first, first + count)
    ]
    return pa.Table.from_pylist(made, SCHEMA)


def as_texts(table: pa.Table) -> list[str]:
    """Return rows as texts, in an order that does not depend on files."""
    return sorted(repr([row.get(name) for name in SCHEMA.names]) for row in table.to_pylist())


# --- making them


def make_samples(root: Path, layouts: Mapping[str, AnyLayout]) -> dict[str, Sample]:
    """Make every sample table below a folder, and the victim in the arena."""
    make_victim(arena_of(root) / "victim")
    made = {}
    for name, layout in layouts.items():
        with mock.patch.object(uuid, "uuid4", _numbered_uuids(name).__next__):
            made[name] = _sample(root, name, layout)
    return made


def _numbered_uuids(name: str) -> Iterator[uuid.UUID]:
    """Yield the same ids in every run, so that files have the same names."""
    random = Random(name)
    while True:
        yield uuid.UUID(int=random.getrandbits(128), version=4)


def _sample(root: Path, name: str, layout: AnyLayout) -> Sample:
    lake_folder = arena_of(root) / "lake"
    shutil.rmtree(lake_folder, ignore_errors=True)
    with driver_lake(str(lake_folder), layout.catalog) as lake:
        other = lake.create_table(OTHER, SCHEMA, format=layout.format)
        other.append(rows(5, 1000))
        table = layout.make(lake, NAME)
        files = {
            kind: [str(Path(found).relative_to(lake_folder)) for found in locations]
            for kind, locations in layout.files(table).items()
        }
        snapshots = [
            (found.snapshot_id, as_texts(table.arrow(snapshot_id=found.snapshot_id)))
            for found in table.snapshots()
            if found.snapshot_id  # the first version of a Delta table has no rows
        ]
    template = root / "templates" / name
    shutil.copytree(lake_folder, template)
    return Sample(name, layout, template, files, snapshots)


def _fill(table: Table, layout: Layout) -> None:
    table.append(rows(12))
    table.append(rows(12, 12))
    if "equality" in layout.deletes:
        table.delete("id = 4", deletes="equality")
    table.compute_table_stats()
    if layout.partition_by:
        table.compute_partition_stats()
    table.delete("id IN (3, 14, 15)", mode="merge-on-read")


def _files_of(table: Table) -> dict[str, list[str]]:
    metadata = table.handle.metadata
    found: dict[str, list[str]] = {
        "metadata": [str(table.handle.metadata_location)],
        "manifest list": [metadata.current_snapshot().manifest_list],
        "old manifest list": [one.manifest_list for one in metadata.snapshots[:-1]],
        "statistics": [one.statistics_path for one in metadata.statistics],
        "partition statistics": [one.statistics_path for one in metadata.partition_statistics],
        "version hint": [],
    }
    hint = Path(table.location) / "metadata" / "version-hint.text"
    found["version hint"] = [str(hint)] if hint.exists() else []
    for row in table.inspect("manifests").to_pylist():
        kind = "delete manifest" if row["content"] else "manifest"
        found.setdefault(kind, []).append(row["path"])
    for row in table.files().to_pylist():
        found.setdefault(_kind_of(row), []).append(row["file_path"])
    return {kind: list(dict.fromkeys(each)) for kind, each in found.items() if each}


def _kind_of(row: dict[str, Any]) -> str:
    if row["content"] == 0:
        return "data"
    if row["content"] == 2:
        return "equality deletes"
    return "vectors" if row["file_format"].upper() == "PUFFIN" else "position deletes"


# --- what must not be touched


def make_victim(folder: Path) -> None:
    """Make files that look like a table's, long ago, that no table may delete."""
    for name in ("data/a.parquet", "data/store=1/b.parquet", "data/c/c.parquet"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows(3, 500), path)
    for name, data in {
        "notes.txt": b"mine",
        "metadata/v1.metadata.json": json.dumps({"format-version": 2}).encode(),
        "metadata/snap-1.avro": b"Obj\x01mine",
        "metadata/stats.puffin": b"PFA1mine",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    for path in folder.rglob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
