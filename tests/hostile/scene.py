"""One copy of a sample table, and the tools to change its files.

A rewritten file has another length, which its referrers say: `settle` tells them, so that a
mutation of meaning is found out by its meaning and not by a length.
"""

from __future__ import annotations

import gzip
import io
import json
import shutil
import zlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import fastavro

from tests.hostile.tables import NAME

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

    from tests.hostile.tables import Sample

LISTS = ("manifest list", "old manifest list")
MANIFESTS = ("manifest", "delete manifest")


@dataclass
class Avro:
    """An Avro file in memory."""

    schema: dict[str, Any]
    header: dict[str, str]
    records: list[dict[str, Any]]


@dataclass
class Scene:
    """A sample table at its place, to be mutated."""

    arena: Path
    sample: Sample
    random: Random
    notes: list[str] = field(default_factory=list)

    def restore(self) -> None:
        """Put the sample back to its place as it was made."""
        shutil.rmtree(self.lake, ignore_errors=True)
        shutil.copytree(self.sample.template, self.lake, symlinks=True)

    @property
    def lake(self) -> Path:
        return self.arena / "lake"

    @property
    def victim(self) -> Path:
        return self.arena / "victim"

    @cached_property
    def table(self) -> Path:
        return self.lake.joinpath(*NAME.split("."))

    def path(self, kind: str) -> Path:
        """Return the first file of a kind."""
        return self.lake / self.sample.files[kind][0]

    def any_path(self, kind: str) -> Path:
        """Return one of the files of a kind."""
        return self.lake / self.random.choice(self.sample.files[kind])

    def paths(self, *kinds: str) -> list[Path]:
        return [self.lake / name for kind in kinds for name in self.sample.files.get(kind, [])]

    # --- metadata

    def metadata(self) -> dict[str, Any]:
        return json.loads(self.metadata_text())

    def metadata_text(self) -> str:
        data = self.path("metadata").read_bytes()
        return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()

    def write_metadata(self, content: dict[str, Any] | str | bytes) -> None:
        """Write the current metadata file, as JSON where it is no text yet."""
        text = json.dumps(content) if not isinstance(content, (str, bytes)) else content
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        path = self.path("metadata")
        path.write_bytes(gzip.compress(data) if ".gz." in path.name else data)

    def edit_metadata(self, edit: Callable[[dict[str, Any]], object]) -> None:
        found = self.metadata()
        edit(found)
        self.write_metadata(found)

    # --- Avro

    def edit_avro(self, path: Path, edit: Callable[[Avro], object]) -> None:
        """Rewrite an Avro file, and tell its referrers of its new length."""
        found = read_avro(path)
        edit(found)
        write_avro(path, found)
        self.settle(path)

    def settle(self, path: Path, records: int | None = None) -> None:
        """Tell manifests and manifest lists the length (and rows) that a file has now."""
        if path in self.paths(*MANIFESTS):
            return self._settle_lists(path)
        for manifest in self.paths(*MANIFESTS):
            found = read_avro(manifest)
            hit = [r for r in found.records if r["data_file"]["file_path"] == str(path)]
            for record in hit:
                record["data_file"]["file_size_in_bytes"] = path.stat().st_size
                if records is not None:
                    record["data_file"]["record_count"] = records
            if hit:
                write_avro(manifest, found)
                self._settle_lists(manifest)
        return None

    def _settle_lists(self, manifest: Path) -> None:
        for path in self.paths(*LISTS):
            found = read_avro(path)
            hit = [r for r in found.records if r["manifest_path"] == str(manifest)]
            for record in hit:
                record["manifest_length"] = manifest.stat().st_size
            if hit:
                write_avro(path, found)


def read_avro(path: Path) -> Avro:
    with path.open("rb") as source:
        reader = fastavro.reader(source)
        records = [dict(record) for record in reader]
        header = {
            key: value for key, value in reader.metadata.items() if not key.startswith("avro.")
        }
        return Avro(json.loads(reader.metadata["avro.schema"]), header, records)


def write_avro(path: Path, content: Avro) -> None:
    out = io.BytesIO()
    schema = fastavro.parse_schema(json.loads(json.dumps(content.schema)))
    fastavro.writer(out, schema, content.records)
    path.write_bytes(_with_raw_schema(out.getvalue(), content))


def _with_raw_schema(data: bytes, content: Avro) -> bytes:
    """Put the schema as it was given into the header: fastavro leaves out what it does not know."""
    source = io.BytesIO(data)
    reader = fastavro.block_reader(source)
    blocks = [(block.num_records, deflated(block.bytes_.getvalue())) for block in reader]
    return avro_container(json.dumps(content.schema), content.header, blocks)


SYNC = bytes(range(16))


def avro_container(
    schema: str, header: dict[str, str], blocks: list[tuple[int, bytes]], codec: str = "deflate"
) -> bytes:
    """Return an Avro file of raw parts: blocks are (row count, bytes as they are stored)."""
    entries = {"avro.schema": schema, "avro.codec": codec, **header}
    parts = [b"Obj\x01", long_of(len(entries))]
    for key, value in entries.items():
        raw = value.encode()
        parts += [long_of(len(key)), key.encode(), long_of(len(raw)), raw]
    parts += [long_of(0), SYNC]
    for count, stored in blocks:
        parts += [long_of(count), long_of(len(stored)), stored, SYNC]
    return b"".join(parts)


def deflated(data: bytes) -> bytes:
    """Return data as Avro's codec `deflate` stores it: without zlib's header."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def long_of(value: int) -> bytes:
    """Return a long as Avro writes it: zigzag, seven bits per byte."""
    left = (value << 1) ^ (value >> 63)
    left &= (1 << 64) - 1
    parts = bytearray()
    while left > 0x7F:
        parts.append((left & 0x7F) | 0x80)
        left >>= 7
    parts.append(left)
    return bytes(parts)
