"""Iceberg's Java runtime: copy-on-write, merge-on-read v2, and v3 deletion vectors.

With an aligned source its storage-partitioned join is on, as its documentation advises; with a
plain source, or into a table without partitions, it runs with its defaults.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from bench import tables
from bench.editors.base import COMPACT, COMPACT_DELETES, DELETE, MERGE, UPDATE, Base, Editor
from bench.editors.summary import iceberg_facts
from bench.peers.base import SPARK_SCHEMA, checksum
from bench.session import CATALOG, ICEBERG, STORAGE_PARTITIONED_JOINS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.lab import Lab
    from bench.peers.base import TableRef
    from bench.staging import Source

VERBS = ("delete", "update", "merge")
ALIGNED = {"write.merge.distribution-mode": "none"}
DEFAULTS = {
    "spark.sql.sources.v2.bucketing.enabled": "false",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.iceberg.planning.preserve-data-grouping": "false",
    "spark.sql.requireAllClusterKeysForCoPartition": "true",
}


class IcebergEditor(Editor):
    """Iceberg Java with one way of writing changes."""

    mode = ""
    format_version = 2

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab)
        self.java = lab.peer("iceberg-java")
        self.table: TableRef | None = None
        self.start: Base | None = None

    def configuration(self) -> dict[str, str]:
        on = ", ".join(f"{key}={value}" for key, value in STORAGE_PARTITIONED_JOINS.items())
        return {
            "package": ICEBERG,
            "table": ", ".join(f"{key}={value}" for key, value in self.properties().items()),
            "aligned source": f"an Iceberg table bucketed alike, {on}, "
            + ", ".join(f"{key}={value}" for key, value in ALIGNED.items()),
            "plain source": "Parquet files, defaults",
        }

    def properties(self) -> dict[str, str]:
        modes = {f"write.{verb}.mode": self.mode for verb in VERBS}
        return {"format-version": str(self.format_version), **modes}

    def fresh(self, start: Base) -> None:
        self.drop()
        self.start = start
        properties = {**self.properties(), **(ALIGNED if start.aligned else {})}
        name = self.name.replace("-", "_")
        self.table = tables.copy_of(self.lab, start.java, name, properties)

    def merge(self, source: Source) -> None:
        spark, target = self.lab.spark, self.java.sql_name(self.table)
        if source.aligned is not None:
            with self._joins(on=True):
                spark.sql(MERGE.format(target=target, source=self.java.sql_name(source.aligned)))
            return
        frame = spark.read.schema(SPARK_SCHEMA).parquet(str(source.plain))
        with self._joins(on=False):
            spark.sql(MERGE.format(target=target, source="{changes}"), changes=frame)

    @contextmanager
    def _joins(self, *, on: bool) -> Iterator[None]:
        """Switch the storage-partitioned join for one statement; the session has it on."""
        if not on:
            for key, value in DEFAULTS.items():
                self.lab.spark.conf.set(key, value)
        try:
            yield
        finally:
            for key, value in STORAGE_PARTITIONED_JOINS.items():
                self.lab.spark.conf.set(key, value)

    def delete_row(self, ticket: int, item: int) -> None:
        target = self.java.sql_name(self.table)
        self.lab.spark.sql(DELETE.format(target=target, ticket=ticket, item=item))

    def update_row(self, ticket: int, item: int) -> None:
        target = self.java.sql_name(self.table)
        self.lab.spark.sql(UPDATE.format(target=target, ticket=ticket, item=item))

    def compact(self) -> None:
        self._call(COMPACT)

    def compact_deletes(self) -> None:
        self._call(COMPACT_DELETES)

    def _call(self, statement: str) -> None:
        self.lab.spark.sql(statement.format(catalog=f"{CATALOG}.", target=self._table.name))

    def read(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = self.java.aggregate(self.table)
        return rows

    def read_clean(self) -> list[tuple[str, ...]]:
        """Do the read query on the base, which nobody changes."""
        rows: list[tuple[str, ...]] = self.java.aggregate(self._base.java)
        return rows

    @property
    def _base(self) -> Base:
        if self.start is None:
            raise RuntimeError("no table yet")
        return self.start

    def truth(self) -> tuple[str, ...]:
        return checksum(self.java.frame(self.table))

    def facts(self) -> dict[str, float]:
        return iceberg_facts(self._table)

    @property
    def _table(self) -> TableRef:
        if self.table is None:
            raise RuntimeError("no table yet")
        return self.table

    def drop(self) -> None:
        if self.table is not None:
            self.java.drop(self.table)
            self.table = None


class IcebergCopyOnWrite(IcebergEditor):
    name = "iceberg-cow"
    mode = "copy-on-write"


class IcebergMergeOnRead(IcebergEditor):
    name = "iceberg-mor-v2"
    mode = "merge-on-read"


class IcebergVectors(IcebergEditor):
    name = "iceberg-v3"
    mode = "merge-on-read"
    format_version = 3
