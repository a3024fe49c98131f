"""Delta on Spark, rewriting files and with deletion vectors.

Delta has no bucket transform: its table has the bucket as a plain partition column, and its
statements name it, so that it can prune as the others do.
"""

from __future__ import annotations

import itertools
import os
import shutil
from typing import TYPE_CHECKING

from bench.changes import bucket_of
from bench.editors.base import DELETE, INSERT, ON, SET, UPDATE, Base, Editor
from bench.editors.summary import delta_facts
from bench.peers.base import AGGREGATE, COLUMNS, SPARK_SCHEMA, checksum, sorted_rows
from bench.session import CATALOG, DELTA, DELTA_SETTINGS
from bench.staging import BUCKET

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

    from bench.lab import Lab
    from bench.staging import Source

VERSION = 1
LOG = "_delta_log"
_copies = itertools.count()


class DeltaEditor(Editor):
    """Delta's tables are folders; a fresh one is a copy whose data files are links."""

    vectors = False

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab)
        self.folder: Path | None = None
        self.start: Base | None = None

    def configuration(self) -> dict[str, str]:
        settings = {key: value for key, value in DELTA_SETTINGS.items() if "databricks" in key}
        return {
            "package": DELTA,
            "table": f"delta.enableDeletionVectors={str(self.vectors).lower()}, "
            f"partitioned by {BUCKET} = bucket(ss_ticket_number), which ON and WHERE name",
            "session": ", ".join(f"{key}={value}" for key, value in settings.items()),
        }

    def fresh(self, start: Base) -> None:
        self.drop()
        self.start = start
        self.folder = self.lab.scratch / "delta" / f"{self.name}-{next(_copies)}"
        copy_table(delta_base(self.lab, start, vectors=self.vectors), self.folder)

    def merge(self, source: Source) -> None:
        frame = self.lab.spark.read.parquet(str(source.with_bucket))
        self.lab.spark.sql(merge_sql(self._base, f"delta.`{self._folder}`"), changes=frame)

    def delete_row(self, ticket: int, item: int) -> None:
        self.lab.spark.sql(
            delete_sql(self._base, f"delta.`{self._folder}`", ticket, item)
        ).collect()

    def update_row(self, ticket: int, item: int) -> None:
        statement = UPDATE.format(target=f"delta.`{self._folder}`", ticket=ticket, item=item)
        parts = [statement, *bucket_condition(self._base, ticket)]
        self.lab.spark.sql(" AND ".join(parts)).collect()

    def compact(self) -> None:
        self.lab.spark.sql(f"OPTIMIZE delta.`{self._folder}`").collect()

    def read(self) -> list[tuple[str, ...]]:
        query = AGGREGATE.format(table=f"delta.`{self._folder}`")
        return sorted_rows(self.lab.spark.sql(query).collect())

    def truth(self) -> tuple[str, ...]:
        return checksum(self.frame().select(*COLUMNS))

    def frame(self) -> DataFrame:
        return self.lab.spark.read.format("delta").load(str(self._folder))

    def facts(self) -> dict[str, float]:
        history = self.lab.spark.sql(f"DESCRIBE HISTORY delta.`{self._folder}` LIMIT 1")
        return delta_facts(history.collect()[0]["operationMetrics"])

    def drop(self) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    @property
    def _folder(self) -> Path:
        if self.folder is None:
            raise RuntimeError("no table yet")
        return self.folder

    @property
    def _base(self) -> Base:
        if self.start is None:
            raise RuntimeError("no table yet")
        return self.start


class DeltaRewrites(DeltaEditor):
    name = "delta"


class DeltaVectors(DeltaEditor):
    name = "delta-dv"
    vectors = True


def merge_sql(start: Base, target: str) -> str:
    """Return the MERGE; into a bucketed table the bucket is a key and is inserted, too."""
    on, insert = ON, INSERT
    if start.buckets is not None:
        on = f"t.{BUCKET} = s.{BUCKET} AND {ON}"
        columns = [*COLUMNS, BUCKET]
        insert = f"({', '.join(columns)}) VALUES ({', '.join(f's.{name}' for name in columns)})"
    return (
        f"MERGE INTO {target} t USING {{changes}} s ON {on} "
        f"WHEN MATCHED THEN UPDATE SET {SET} WHEN NOT MATCHED THEN INSERT {insert}"
    )


def delete_sql(start: Base, target: str, ticket: int, item: int) -> str:
    statement = DELETE.format(target=target, ticket=ticket, item=item)
    return statement + "".join(f" AND {part}" for part in bucket_condition(start, ticket))


def bucket_condition(start: Base, ticket: int) -> list[str]:
    if start.buckets is None:
        return []
    return [f"{BUCKET} = {bucket_of([ticket], start.buckets)[0]}"]


def delta_base(lab: Lab, start: Base, *, vectors: bool) -> Path:
    """Return the folder of the base as a Delta table, making it when the cache has none."""
    ending = "-dv" if vectors else ""
    folder = lab.cache / "delta" / f"v{VERSION}_{start.name}{ending}"
    if not folder.exists():
        unfinished = folder.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        if vectors:
            copy_table(delta_base(lab, start, vectors=False), unfinished)
            lab.spark.sql(
                f"ALTER TABLE delta.`{unfinished}` SET TBLPROPERTIES "
                "('delta.enableDeletionVectors' = 'true')"
            )
        else:
            _write_base(lab, start, unfinished)
        unfinished.rename(folder)
    return folder


def _write_base(lab: Lab, start: Base, folder: Path) -> None:
    files = lab.spark.read.schema(SPARK_SCHEMA).option("recursiveFileLookup", "true")
    frame = files.parquet(str(start.java.data))
    properties = {"delta.enableDeletionVectors": "false"}
    if start.buckets is None:
        frame.write.format("delta").options(**properties).save(str(folder))
        return
    bucket = f"{CATALOG}.system.bucket({start.buckets}, ss_ticket_number) AS {BUCKET}"
    frame = frame.selectExpr(*COLUMNS, bucket).repartition(start.buckets, BUCKET)
    frame = frame.sortWithinPartitions(BUCKET, "ss_ticket_number")
    frame.write.format("delta").partitionBy(BUCKET).options(**properties).save(str(folder))


def copy_table(source: Path, target: Path) -> None:
    """Copy a Delta table: data files are never changed in place, so links do for them."""
    shutil.copytree(source, target, copy_function=os.link, ignore=shutil.ignore_patterns(LOG))
    shutil.copytree(source / LOG, target / LOG)
