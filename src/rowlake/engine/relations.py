"""Which files a DataFrame reads, where reading plain Parquet files is all that it does.

Comes in: a DataFrame. Goes out: the files and columns of its scan, or None: a session that is not
in this process (Spark Connect), a plan that does more than choose and rename columns, rows that
Spark has cached, settings or options under which Spark reads files otherwise than they say.
Imports pyspark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from rowlake.engine.jobs import is_remote
from rowlake.engine.parquet import SPARK_FIELD_ID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
_SOURCES = "org.apache.spark.sql.execution.datasources."
_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_PROJECT = f"{_LOGICAL}Project"
_TRANSPARENT = frozenset({_PROJECT, f"{_LOGICAL}SubqueryAlias", f"{_LOGICAL}View"})
_RELATION = f"{_SOURCES}LogicalRelation"
_FILES = f"{_SOURCES}HadoopFsRelation"
_PARQUET = f"{_SOURCES}parquet.ParquetFileFormat"
_COLUMN = f"{_EXPRESSIONS}AttributeReference"
_ALIAS = f"{_EXPRESSIONS}Alias"
# Options of a read under which files are read as they say (None: whatever their value).
_OPTIONS = {"path": None, "datetimerebasemode": "corrected", "int96rebasemode": "corrected"}
_SETTINGS = {
    "spark.sql.parquet.datetimeRebaseModeInRead": "corrected",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}


@dataclass(frozen=True)
class RelationColumn:
    """A column of a DataFrame: its name, Spark's type, and what it is in the files.

    `field_id` is what the column must have in each file; None where names alone tell.
    """

    name: str
    type_text: str
    source: str
    field_id: int | None = None


@dataclass(frozen=True)
class ParquetRelation:
    """Local files, and the columns that a DataFrame makes of them."""

    locations: tuple[str, ...]
    columns: tuple[RelationColumn, ...]


def parquet_relation(df: DataFrame) -> ParquetRelation | None:
    """Return what a DataFrame reads; None where it does more, or where that cannot be told."""
    spark = df.sparkSession
    if is_remote(spark) or df.isStreaming or not _reads_as_they_say(spark):
        return None
    if not _may_be_plain(df):
        return None
    # A plan made now: the DataFrame's own may be from before it was cached.
    plan: Any = df.select("*")._jdf.queryExecution().optimizedPlan()
    outputs: list[Any] = []
    if _class(plan) == _PROJECT:
        outputs, plan = _items(plan.projectList()), plan.child()
    if _class(plan) != _RELATION or not _is_plain(plan.relation()):
        return None
    sources = [_source(one) for one in outputs or _items(plan.output())]
    locations = _local_files(plan.relation())
    if locations is None or any(source is None for source in sources):
        return None
    columns = (
        RelationColumn(field.name, field.dataType.simpleString(), source.name(), _field_id(source))
        for field, source in zip(df.schema.fields, sources, strict=True)
        if source is not None
    )
    return ParquetRelation(locations, tuple(columns))


def _may_be_plain(df: Any) -> bool:
    """Return whether a plan is a scan below renamings; other plans are not worth optimizing."""
    plan = df._jdf.queryExecution().analyzed()
    while _class(plan) in _TRANSPARENT:
        plan = plan.child()
    return _class(plan) == _RELATION


def _reads_as_they_say(spark: SparkSession) -> bool:
    return all(
        str(spark.conf.get(name, value)).lower() == value for name, value in _SETTINGS.items()
    )


def _class(found: Any) -> str:
    return str(found.getClass().getName())


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]


def _is_plain(relation: Any) -> bool:
    """Return whether a relation is of Parquet files that are all of one layout, with no options."""
    if _class(relation) != _FILES or _class(relation.fileFormat()) != _PARQUET:
        return False
    if not relation.partitionSchema().isEmpty():
        return False
    options = relation.options()
    given = _items(options.keys().toSeq())
    return all(
        key.lower() in _OPTIONS and _OPTIONS[key.lower()] in (None, str(options.apply(key)).lower())
        for key in given
    )


def _source(expression: Any) -> Any:
    """Return the column that an expression is; None where it is anything else."""
    found = expression.child() if _class(expression) == _ALIAS else expression
    return found if _class(found) == _COLUMN else None


def _field_id(column: Any) -> int | None:
    metadata = column.metadata()
    has_id = metadata.contains(SPARK_FIELD_ID)
    return int(metadata.getLong(SPARK_FIELD_ID)) if has_id else None


def _local_files(relation: Any) -> tuple[str, ...] | None:
    """Return the files as paths; None where some are elsewhere than on a local disk."""
    addresses = [urlsplit(str(address)) for address in relation.location().inputFiles()]
    if not addresses or any(each.scheme != "file" for each in addresses):
        return None
    return tuple(unquote(each.path) for each in addresses)
