"""Spark's own Parquet reader and writer: the limit for work that goes through Spark rows."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from bench.peers.base import AGGREGATE, FILTER, SPARK_SCHEMA, Layout, System, TableRef, sorted_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkParquet(System):
    """Plain folders of Parquet files; the schema is given, so that nothing is inferred."""

    name = "spark-parquet"

    def configuration(self) -> dict[str, str]:
        return {
            "reader": "spark.read.schema(…).parquet, vectorised",
            "writer": "df.write.parquet, zstd; bucketed: repartition(buckets, key) first",
        }

    def frame(self, table: TableRef) -> DataFrame:
        folder = table.data if table.data.exists() else table.location
        reader = self.lab.spark.read.schema(SPARK_SCHEMA).option("recursiveFileLookup", "true")
        return reader.parquet(str(folder))

    def aggregate(self, table: TableRef) -> list[tuple[str, ...]]:
        query = AGGREGATE.format(table="{source}")
        return sorted_rows(self.lab.spark.sql(query, source=self.frame(table)).collect())

    def filter(self, table: TableRef, low: int, high: int) -> list[tuple[str, ...]]:
        query = FILTER.format(table="{source}", low=low, high=high)
        return sorted_rows(self.lab.spark.sql(query, source=self.frame(table)).collect())

    def create(self, table: TableRef, layout: Layout) -> None:  # noqa: ARG002 - a folder has no layout
        self.drop(table)

    def append(self, table: TableRef, df: DataFrame, layout: Layout) -> None:
        if layout.buckets is not None:
            df = df.repartition(layout.buckets, "ss_ticket_number")
        df.write.mode("append").parquet(str(table.location))

    def ctas(self, table: TableRef, df: DataFrame, layout: Layout) -> None:
        self.append(table, df, layout)

    def drop(self, table: TableRef) -> None:
        shutil.rmtree(table.location, ignore_errors=True)
