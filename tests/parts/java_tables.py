"""Iceberg's Java library, in the JVM of the test session: what SQL cannot say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Sequence

# A format version with the granularity of its deletes; vectors are of one data file, whatever the
# property says.
GRANULARITIES = [(2, "file"), (2, "partition"), (3, "file")]


def load(spark: Any, location: str | Path) -> Any:
    """Return Java's `Table` of a folder of the Hadoop catalog."""
    jvm = spark._jvm
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    return jvm.org.apache.iceberg.hadoop.HadoopTables(conf).load(str(location))


def generic_rows(spark: Any, table: Any) -> list[tuple[str, ...]]:
    """Return the rows as Java's generic reader shows them: it knows types that Spark lacks."""
    jvm = spark._jvm
    records = jvm.org.apache.iceberg.data.IcebergGenerics.read(table).build()
    show = jvm.java.util.Objects.toString
    found = []
    iterator = records.iterator()
    while iterator.hasNext():
        record = iterator.next()
        found.append(tuple(show(record.get(place)) for place in range(record.size())))
    records.close()
    return sorted(found)


def commit_equality_deletes(
    spark: Any, table: Any, keys: pa.Table, field_ids: Sequence[int], partition: str | None = None
) -> None:
    """Commit a Parquet file of keys as equality deletes of the table's current spec.

    `partition` is a path like `p=1`; without one the deletes of a partitioned table would need an
    unpartitioned spec, so it is for unpartitioned tables only.
    """
    fields = [
        field.with_metadata({b"PARQUET:field_id": str(number).encode()})
        for field, number in zip(keys.schema, field_ids, strict=True)
    ]
    folder = Path(table.location().removeprefix("file:")) / "data"
    file = folder / f"eq-{len(list(folder.glob('eq-*')))}.parquet"
    pq.write_table(keys.cast(pa.schema(fields)), file)
    iceberg = spark._jvm.org.apache.iceberg
    numbers = spark.sparkContext._gateway.new_array(spark._jvm.int, len(field_ids))
    for place, number in enumerate(field_ids):
        numbers[place] = number
    builder = (
        iceberg.FileMetadata.deleteFileBuilder(table.spec())
        .ofEqualityDeletes(numbers)
        .withPath(str(file))
        .withFileSizeInBytes(file.stat().st_size)
        .withRecordCount(keys.num_rows)
        .withFormat(iceberg.FileFormat.PARQUET)
    )
    if partition is not None:
        builder = builder.withPartitionPath(partition)
    table.newRowDelta().addDeletes(builder.build()).commit()
