"""rowlake itself, through its public face."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from bench.peers.base import AGGREGATE, FILTER, SPARK_SCHEMA, Layout, System, TableRef, sorted_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame


class RowlakePeer(System):
    """Own tables in an embedded lake; Java's tables through the file-system catalog."""

    name = "rowlake"

    def configuration(self) -> dict[str, str]:
        import rowlake

        return {"version": getattr(rowlake, "__version__", "?"), "session": "the shared one"}

    @cached_property
    def own_lake(self) -> Any:
        import rowlake

        lake = rowlake.connect(warehouse=str(self.own_warehouse), spark=self.lab.spark)
        lake.sql("CREATE NAMESPACE IF NOT EXISTS scratch")
        return lake

    @cached_property
    def java_lake(self) -> Any:
        import rowlake

        return rowlake.connect(
            warehouse=str(self.lab.java_warehouse), catalog="filesystem", spark=self.lab.spark
        )

    @property
    def own_warehouse(self) -> Path:
        return self.lab.scratch / "rowlake"

    def lake_of(self, table: TableRef) -> Any:
        shared = table.warehouse == self.lab.java_warehouse
        return self.java_lake if shared else self.own_lake

    def close(self) -> None:
        for name in ("own_lake", "java_lake"):
            if name in self.__dict__:
                self.__dict__[name].close()

    def create(self, table: TableRef, layout: Layout) -> None:
        self.drop(table)
        self.lake_of(table).sql(
            f"CREATE TABLE {table.name} ({SPARK_SCHEMA}) USING iceberg "
            f"{layout.partitioning_sql} TBLPROPERTIES ({layout.properties_sql})"
        )

    def append(self, table: TableRef, df: DataFrame, layout: Layout) -> None:  # noqa: ARG002
        self.lake_of(table).table(table.name).append(df)

    def ctas(self, table: TableRef, df: DataFrame, layout: Layout) -> None:
        df.createOrReplaceTempView("bench_source")
        self.lake_of(table).sql(
            f"CREATE TABLE {table.name} USING iceberg {layout.partitioning_sql} "
            f"TBLPROPERTIES ({layout.properties_sql}) AS SELECT * FROM bench_source"
        )

    def insert_values(self, table: TableRef, values: str) -> None:
        self.lake_of(table).sql(f"INSERT INTO {table.name} VALUES {values}").collect()

    def drop(self, table: TableRef) -> None:
        self.lake_of(table).sql(f"DROP TABLE IF EXISTS {table.name} PURGE")

    def frame(self, table: TableRef) -> DataFrame:
        return self.lake_of(table).table(table.name).df()

    def aggregate(self, table: TableRef) -> list[tuple[str, ...]]:
        return self._rows(table, AGGREGATE.format(table=table.name))

    def filter(self, table: TableRef, low: int, high: int) -> list[tuple[str, ...]]:
        return self._rows(table, FILTER.format(table=table.name, low=low, high=high))

    def _rows(self, table: TableRef, query: str) -> list[tuple[str, ...]]:
        return sorted_rows(self.lake_of(table).sql(query).collect())
