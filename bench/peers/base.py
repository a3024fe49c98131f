"""What the systems have in common: names of tables, layouts, queries, checksums.

A system has those of these methods that it can do; cases ask only the systems that can:

- `create(table, layout)`, `drop(table)`, `append(table, df)`, `ctas(table, df, layout)`
- `aggregate(table)`, `filter(table, low, high)`: rows as sorted tuples
- `delete(table, where)`
- `frame(table)`: the table as a Spark DataFrame through the system's own reader
- `configuration()`: what makes it the system's documented best
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bench.data import COLUMNS_SQL
from bench.parquet import TABLE_PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import DataFrame

    from bench.lab import Lab

SPARK_SCHEMA = COLUMNS_SQL
COLUMNS = [column.split()[0] for column in COLUMNS_SQL.split(", ")]
AGGREGATE = "SELECT ss_store_sk, sum(ss_net_paid), count(*) FROM {table} GROUP BY ss_store_sk"
FILTER = (
    "SELECT count(*), sum(ss_quantity), sum(ss_net_paid) FROM {table} "
    "WHERE ss_ticket_number BETWEEN {low} AND {high}"
)
FILTER_COLUMNS = ("ss_ticket_number", "ss_quantity", "ss_net_paid")


@dataclass(frozen=True)
class TableRef:
    """A table by its name and the folder of the catalog that holds it."""

    warehouse: Path
    name: str

    @property
    def location(self) -> Path:
        """Where a catalog of plain folders keeps it."""
        return self.warehouse.joinpath(*self.name.split("."))

    @property
    def data(self) -> Path:
        return self.location / "data"

    @property
    def metadata_location(self) -> str:
        """The newest metadata file of a table in a Hadoop-style catalog."""
        found = (self.location / "metadata").glob("v*.metadata.json")
        return str(max(found, key=lambda path: int(re.findall(r"v(\d+)", path.name)[0])))


@dataclass(frozen=True)
class Layout:
    """How a table is laid out."""

    buckets: int | None = None
    format_version: int = 2
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def partitioning_sql(self) -> str:
        if self.buckets is None:
            return ""
        return f"PARTITIONED BY (bucket({self.buckets}, ss_ticket_number))"

    @property
    def properties_sql(self) -> str:
        """All table properties; those of Parquet are the same for every system."""
        properties = {
            "format-version": str(self.format_version),
            **TABLE_PROPERTIES,
            **self.properties,
        }
        return ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())


class System:
    """The base of all systems: a name and a lab."""

    name = ""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def configuration(self) -> dict[str, str]:
        return {}

    def close(self) -> None:
        """Free what the system holds."""


def sorted_rows(rows: Iterable[Any]) -> list[tuple[str, ...]]:
    """Return rows as sorted tuples of text, equal for equal values of any numeric type."""
    return sorted(tuple(str(value) for value in row) for row in rows)


def checksum(frame: DataFrame) -> tuple[str, ...]:
    """Return the count and an order-free checksum over all columns of a bench table."""
    return row_sums(frame, COLUMNS)


def row_sums(frame: DataFrame, columns: Iterable[str]) -> tuple[str, ...]:
    """Return the count and an order-free checksum of some columns.

    The halves of a row's hash are summed apart: whole numbers that cannot overflow.
    """
    from pyspark.sql import functions as sf

    hashes = frame.select(sf.xxhash64(*(sf.col(name) for name in columns)).alias("h"))
    high, low = sf.shiftrightunsigned("h", 32), sf.col("h").bitwiseAND(0xFFFFFFFF)
    row = hashes.select(sf.count(sf.lit(1)), sf.sum(high), sf.sum(low)).collect()[0]
    return tuple(str(value) for value in row)
