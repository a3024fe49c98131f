"""A mirror: metadata of another format over the data files and vectors of a table.

A table says in `MIRROR` which format follows it. The mirror names the table that it follows
(`MIRROR_OF`), and each of its commits carries the mark of the commit that it repeats: a batch of
the app `APP_ID` whose number is that commit's snapshot id.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rowlake.secrets import redacted_repr

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from rowlake.model.handle import TableHandle
    from rowlake.model.schema import Schema

MIRROR = "rowlake.mirror"
MIRROR_OF = "rowlake.mirror-of"
APP_ID = "rowlake.mirror"
# What the summary of a mirror's commit says of the commit that it repeats.
SOURCE_SNAPSHOT, SOURCE_OPERATION = "rowlake.mirror.snapshot-id", "rowlake.mirror.operation"


@dataclass(frozen=True)
class MirrorDefinition:
    """What a table is in words that every format knows.

    `uuid` is the table's own. `partition_ids` are columns whose values the files have in common;
    how else files are grouped is left out. Where `has_ids` is false files carry no field ids:
    those of the schema say nothing, and `name_mapping` (JSON, by those ids) has the names in files.
    `earlier_types` are types that columns had, by field id, oldest first, where others took their
    place. `notes` say what the mirror leaves out.
    """

    uuid: str
    schema: Schema
    partition_ids: tuple[int, ...] = ()
    has_vectors: bool = False
    has_ids: bool = True
    name_mapping: str | None = None
    earlier_types: Mapping[int, tuple[pa.DataType, ...]] = field(default_factory=dict)
    comment: str | None = None
    notes: tuple[str, ...] = ()

    __repr__ = redacted_repr


@dataclass(frozen=True)
class Mirrored:
    """What `Table.mirror` did.

    `snapshot_id` is the snapshot (or version) that the mirror stands at, `version` its own newest
    version: the metadata file of an Iceberg mirror, the number of a Delta one. `commits` is how
    many commits it took to get there; `notes` say what the mirror leaves out.
    """

    format: str
    location: str
    version: str
    snapshot_id: int | None
    commits: int
    notes: tuple[str, ...] = ()

    __repr__ = redacted_repr


def are_twins(table: TableHandle, other: TableHandle) -> bool:
    """Return whether one of two tables in a folder is the mirror of the other."""
    pairs = ((table, other), (other, table))
    return any(one.properties.get(MIRROR_OF) == twin.uuid for one, twin in pairs)
