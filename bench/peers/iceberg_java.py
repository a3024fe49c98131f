"""Iceberg's Java runtime in the same Spark session, on a Hadoop catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.parquet import TABLE_PROPERTIES
from bench.peers.base import (
    AGGREGATE,
    FILTER,
    SPARK_SCHEMA,
    Layout,
    System,
    TableRef,
    sorted_rows,
)
from bench.session import CATALOG, ICEBERG, STORAGE_PARTITIONED_JOINS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class IcebergJava(System):
    """Tables `ice.<namespace>.<name>`; settings of the session as its documentation advises."""

    name = "iceberg-java"

    def configuration(self) -> dict[str, str]:
        joins = ", ".join(f"{key}={value}" for key, value in STORAGE_PARTITIONED_JOINS.items())
        return {
            "package": ICEBERG,
            "storage-partitioned joins": joins,
            "Parquet": ", ".join(f"{key}={value}" for key, value in TABLE_PROPERTIES.items()),
            "catalog": "io.manifest.cache-enabled=true, on Hadoop's raw local file system",
        }

    def sql_name(self, table: TableRef) -> str:
        return f"{CATALOG}.{table.name}"

    def create(self, table: TableRef, layout: Layout) -> None:
        self.drop(table)
        self.lab.spark.sql(
            f"CREATE TABLE {self.sql_name(table)} ({SPARK_SCHEMA}) USING iceberg "
            f"{layout.partitioning_sql} TBLPROPERTIES ({layout.properties_sql})"
        )

    def append(self, table: TableRef, df: DataFrame, layout: Layout) -> None:  # noqa: ARG002
        df.writeTo(self.sql_name(table)).append()

    def ctas(self, table: TableRef, df: DataFrame, layout: Layout) -> None:
        df.createOrReplaceTempView("bench_source")
        self.lab.spark.sql(
            f"CREATE TABLE {self.sql_name(table)} USING iceberg {layout.partitioning_sql} "
            f"TBLPROPERTIES ({layout.properties_sql}) AS SELECT * FROM bench_source"
        )

    def insert_values(self, table: TableRef, values: str) -> None:
        self.lab.spark.sql(f"INSERT INTO {self.sql_name(table)} VALUES {values}").collect()

    def drop(self, table: TableRef) -> None:
        self.lab.spark.sql(f"DROP TABLE IF EXISTS {self.sql_name(table)} PURGE")

    def delete(self, table: TableRef, where: str) -> None:
        self.lab.spark.sql(f"DELETE FROM {self.sql_name(table)} WHERE {where}")

    def frame(self, table: TableRef) -> DataFrame:
        return self.lab.spark.table(self.sql_name(table))

    def fresh_frame(self, table: TableRef) -> DataFrame:
        """Return a table that another system may have changed since this one read it."""
        self.lab.spark.sql(f"REFRESH TABLE {self.sql_name(table)}")
        return self.frame(table)

    def aggregate(self, table: TableRef) -> list[tuple[str, ...]]:
        return self._rows(AGGREGATE.format(table=self.sql_name(table)))

    def filter(self, table: TableRef, low: int, high: int) -> list[tuple[str, ...]]:
        return self._rows(FILTER.format(table=self.sql_name(table), low=low, high=high))

    def _rows(self, query: str) -> list[tuple[str, ...]]:
        return sorted_rows(self.lab.spark.sql(query).collect())
