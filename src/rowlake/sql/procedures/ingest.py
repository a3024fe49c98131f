"""CALL add_files, snapshot, migrate: files that exist, as data files of lake tables.

A source is a directory written as a table name (`` parquet.`/path` ``, `orc.…`, `avro.…`), or a
table of Spark's own catalog that is stored as such files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowlake.errors import InvalidStatementError, UnsupportedFeatureError
from rowlake.ingest.folders import FORMATS
from rowlake.model.names import levels_of
from rowlake.sql.tables import need_table, new_name
from rowlake.sqltext.lexer import quote, readable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.lake import Lake


@dataclass(frozen=True)
class IngestSource:
    """A directory of data files; `spark_table` is the name of Spark's table over it."""

    location: str
    file_format: str
    spark_table: str | None = None


def add_files(
    lake: Lake,
    table: str,
    source_table: str,
    partition_filter: Mapping[str, str] | None,
    check_duplicate_files: bool,
    parallelism: int,
) -> pa.Table:
    """Add the files of a source to a table; `parallelism` is the engine's own affair here."""
    del parallelism
    found = need_table(lake, levels_of(table))
    source = source_of(lake, source_table)
    result = found.add_files(
        source.location,
        partition_filter,
        check_duplicate_files=check_duplicate_files,
        file_format=source.file_format,
    )
    summaries = {each.snapshot_id: each.summary for each in found.snapshots()}
    summary = summaries.get(result.snapshot_id or -1, {})
    changed = summary.get("changed-partition-count")
    return pa.table(
        {
            "added_files_count": pa.array([result.data_files_added], pa.int64()),
            "changed_partition_count": pa.array(
                [None if changed is None else int(changed)], pa.int64()
            ),
        }
    )


def snapshot(
    lake: Lake,
    source_table: str,
    table: str,
    location: str | None,
    properties: Mapping[str, str] | None,
    parallelism: int,
) -> pa.Table:
    """Create a table over the files of a source, which stays as it is."""
    del parallelism
    source = source_of(lake, source_table)
    result = lake.snapshot_table(
        source.location,
        new_name(lake, levels_of(table)),
        location=location,
        properties=properties,
        file_format=source.file_format,
    )
    return _count("imported_files_count", result.data_files_added)


def migrate(
    lake: Lake,
    table: str,
    properties: Mapping[str, str] | None,
    drop_backup: bool,
    backup_table_name: str | None,
    parallelism: int,
) -> pa.Table:
    """Make a table of Spark's own a lake table of the same name, in place.

    Spark's entry of it is renamed (`…_BACKUP_`), and dropped where asked: only of an external
    table, since dropping another deletes its files.
    """
    del parallelism
    name = levels_of(table)
    source = source_of(lake, table)
    if source.spark_table is None:
        raise InvalidStatementError(
            "migrate takes a table of Spark's own; for a directory call lake.migrate(directory, "
            "name), or snapshot."
        )
    if drop_backup and not _is_external(lake, source.spark_table):
        raise UnsupportedFeatureError(
            f"Cannot drop the backup of {readable(name)}: it is a managed table of Spark, and "
            "dropping it would delete the files. Migrate without drop_backup."
        )
    plain = name[1:] if name[0].lower() == "spark_catalog" else name
    if len(plain) == 1:
        plain = new_name(lake, plain)
    result = lake.migrate(
        source.location, plain, properties=properties, file_format=source.file_format
    )
    backup = (*name[:-1], backup_table_name or f"{name[-1]}_BACKUP_")
    renamed = ".".join(map(quote, backup))
    lake.spark.sql(f"ALTER TABLE {source.spark_table} RENAME TO {renamed}")
    if drop_backup:
        lake.spark.sql(f"DROP TABLE {renamed}")
    return _count("migrated_files_count", result.data_files_added)


def _count(name: str, value: int) -> pa.Table:
    return pa.table({name: pa.array([value], pa.int64())})


def source_of(lake: Lake, name: str) -> IngestSource:
    """Return the directory that a source's name means."""
    levels = levels_of(name)
    if len(levels) == 2 and levels[0].upper() in FORMATS:
        return IngestSource(levels[1], levels[0].upper())
    text = ".".join(map(quote, levels))
    facts = _facts(lake, text)
    provider = facts.get("provider", "").upper()
    if provider not in FORMATS or "location" not in facts:
        raise UnsupportedFeatureError(
            f"{readable(levels)} is a {facts.get('provider') or 'table without files'}: only "
            f"tables of {', '.join(FORMATS)} files and directories (parquet.`/path`) are taken."
        )
    return IngestSource(facts["location"], provider, text)


def _facts(lake: Lake, table: str) -> dict[str, str]:
    """Return what Spark's catalog says of a table, by lower-case name."""
    try:
        rows: list[Any] = lake.spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    except Exception as error:
        if not type(error).__module__.startswith("pyspark"):
            raise
        raise InvalidStatementError(
            f"There is no table {table} in Spark's catalog. Write a directory as parquet.`/path`."
        ) from error
    return {str(row[0]).lower(): str(row[1]) for row in rows}


def _is_external(lake: Lake, table: str) -> bool:
    return _facts(lake, table).get("type", "").upper() == "EXTERNAL"
