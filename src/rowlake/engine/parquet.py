"""Clean Parquet files through Spark's own reader.

Spark resolves columns by name, or by field id where `spark.sql.parquet.fieldId.read.enabled` is
set on the session (no option of one read sets it, and a lazy DataFrame needs it when it runs, so
it is never set on a session of the user's). By field id its row-group filters still go by *name*:
a filter on a column whose name another column had when the file was written prunes by the wrong
one. So this module answers only where either way gives the right rows, and None otherwise:

- by name, where every field has had the same name in every schema of the table, and no other
  field ever had it;
- by field id, where the session has the setting and no name was ever another field's.

Not for uuid, fixed, time, nanoseconds, unknown and variant, nor for columns with defaults, nor
for metadata columns, nor for names that Iceberg's Java writers change in Parquet files.

Spark gets regular files only: it reads a folder as all the files in it, waits forever for a named
pipe, and says of a missing file no more than a Java trace. It lists every file by itself, so one
more question per file costs little.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import types as spark_types

from rowlake.engine.jobs import is_remote
from rowlake.engine.types import spark_schema
from rowlake.errors import CorruptTableError
from rowlake.model.schema import INITIAL_DEFAULT, Schema, children, field_id, type_name
from rowlake.scan.failures import read_failure
from rowlake.storage.local import odd_kind
from rowlake.storage.locations import split

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession

FIELD_ID_SETTING = "spark.sql.parquet.fieldId.read.enabled"
SPARK_FIELD_ID = "parquet.field.id"
FIRST_RESERVED_ID = 2_147_483_447  # the spec keeps the ids from here on for metadata columns
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_GLOB = re.compile(r"([\\{}\[\]*?])")


def read_parquet(
    spark: SparkSession, files: Sequence[str], schema: Schema, history: Sequence[Schema]
) -> DataFrame | None:
    """Return the files as a DataFrame of `schema`, None where Spark would not read them right.

    Raises CorruptTableError for a file that is missing or no file.
    """
    if not files or not all(map(_is_openable, files)):
        return None
    if not all(_is_readable(field) for _, field in schema.walk()):
        return None
    if not _resolves(schema, [schema, *history], by_id=_reads_by_id(spark)):
        return None
    for location in files:
        _check_file(location, is_elsewhere=is_remote(spark))
    # Files that no Spark wrote say nothing of calendars: Iceberg's dates are always proleptic.
    reader: Any = spark.read.schema(_with_field_ids(schema))
    reader = reader.option("datetimeRebaseMode", "CORRECTED").option("int96RebaseMode", "CORRECTED")
    return reader.parquet(*map(_escaped, files))


def _is_openable(location: str) -> bool:
    """Return whether Spark opens it: a local path, and no name that its listing hides."""
    parts = split(location)
    name = location.rsplit("/", 1)[-1]
    return parts.is_local and not parts.authority and not name.startswith(("_", "."))


def _check_file(location: str, *, is_elsewhere: bool) -> None:
    """Check that a path is a file; a Spark server elsewhere may have files that are not here."""
    try:
        kind = odd_kind(split(location).path)
    except OSError as error:
        if is_elsewhere:
            return
        raise read_failure(location, error) from error
    if kind is not None:
        raise CorruptTableError(location, f"it is {kind}")


def _escaped(location: str) -> str:
    return _GLOB.sub(r"\\\1", location)


def _is_readable(field: pa.Field) -> bool:
    if type_name(field) is not None or INITIAL_DEFAULT in (field.metadata or {}):
        return False
    if (field_id(field) or 0) >= FIRST_RESERVED_ID:
        return False
    arrow_type = field.type
    nanoseconds = pa.types.is_timestamp(arrow_type) and arrow_type.unit == "ns"
    return not (
        nanoseconds
        or pa.types.is_time(arrow_type)
        or pa.types.is_fixed_size_binary(arrow_type)
        or pa.types.is_null(arrow_type)
    )


def _reads_by_id(spark: SparkSession) -> bool:
    return str(spark.conf.get(FIELD_ID_SETTING, "false")).lower() == "true"


def _resolves(schema: Schema, history: Sequence[Schema], *, by_id: bool) -> bool:
    """Return whether names (or ids, with filters by name) lead to the same fields in all files."""
    names = _owners(history)
    lowered = [tuple(part.lower() for part in path) for path, _ in schema.walk()]
    if len(set(lowered)) < len(lowered):
        return False
    for path, field in schema.walk():
        if not all(map(_PLAIN_NAME.match, path)):
            return False
        if names[tuple(part.lower() for part in path)] != {field_id(field)}:
            return False
    return by_id or all(_keeps_names(schema, earlier) for earlier in history)


def _owners(history: Iterable[Schema]) -> dict[tuple[str, ...], set[int | None]]:
    """Return which fields ever had a name (its path, in lower case)."""
    owners: dict[tuple[str, ...], set[int | None]] = {}
    for schema in history:
        for path, field in schema.walk():
            owners.setdefault(tuple(part.lower() for part in path), set()).add(field_id(field))
    return owners


def _keeps_names(schema: Schema, earlier: Schema) -> bool:
    paths = earlier.paths
    return all(paths.get(number, path) == path for number, path in schema.paths.items())


def _with_field_ids(schema: Schema) -> Any:
    """Return Spark's schema with field ids in the metadata of every struct field."""
    return _struct_with_ids(spark_schema(schema.arrow), list(schema.arrow))


def _struct_with_ids(shown: Any, fields: list[pa.Field]) -> Any:
    return spark_types.StructType(
        [
            spark_types.StructField(
                column.name,
                _type_with_ids(column.dataType, field),
                True,
                {**(column.metadata or {}), SPARK_FIELD_ID: field_id(field)},
            )
            for column, field in zip(shown.fields, fields, strict=True)
        ]
    )


def _type_with_ids(shown: Any, field: pa.Field) -> Any:
    below = children(field.type)
    if isinstance(shown, spark_types.StructType):
        return _struct_with_ids(shown, below)
    if isinstance(shown, spark_types.ArrayType):
        return spark_types.ArrayType(_type_with_ids(shown.elementType, below[0]), True)
    if isinstance(shown, spark_types.MapType):
        key, value = below
        return spark_types.MapType(
            _type_with_ids(shown.keyType, key), _type_with_ids(shown.valueType, value), True
        )
    return shown
