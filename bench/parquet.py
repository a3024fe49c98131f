"""How every system writes Parquet: the same codec, level and size of row groups."""

from __future__ import annotations

ZSTD_LEVEL = 3
ROW_GROUP_BYTES = 128 * 1024 * 1024
# Properties of Iceberg tables, which rowlake reads as well.
TABLE_PROPERTIES = {
    "write.parquet.compression-codec": "zstd",
    "write.parquet.compression-level": str(ZSTD_LEVEL),
    "write.parquet.row-group-size-bytes": str(ROW_GROUP_BYTES),
}
# The same for what Spark and Delta write.
SESSION_SETTINGS = {
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.hadoop.parquet.compression.codec.zstd.level": str(ZSTD_LEVEL),
    "spark.hadoop.parquet.block.size": str(ROW_GROUP_BYTES),
}
