"""What a statement asks for: one frozen dataclass per kind of statement.

Names are tuples of their parts, as written. Queries and expressions stay text, with their
offset in the statement, since Spark is to read them. Transforms are in the spec's text form
(`bucket[16]`, `day`, …).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rowlake.dml.operations import Delete, Explain, Merge, Update
from rowlake.secrets import redacted_repr
from rowlake.sql.alter_statements import AlterTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowlake.query.shape import TimeTravel
    from rowlake.sqltext.names import Name
    from rowlake.sqltext.terms import PartitionTerm
    from rowlake.sqltext.types import Field


@dataclass(frozen=True)
class Query:
    """A query (SELECT, WITH, VALUES, FROM, TABLE): Spark's, over lake tables."""

    text: str


@dataclass(frozen=True)
class Passthrough:
    """Anything else: Spark's; lake tables in its query part are visible."""

    text: str


@dataclass(frozen=True)
class CreateTable:
    """CREATE [OR REPLACE] TABLE / REPLACE TABLE [AS SELECT]; `mode` is one of MODES.

    `columns` is None where the query gives them; `query` is its text; `format` is empty unless
    USING names another table format than Iceberg.
    """

    name: Name
    columns: tuple[Field, ...] | None
    partition_by: tuple[PartitionTerm, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None
    comment: str | None = None
    mode: str = "create"
    if_not_exists: bool = False
    query: str | None = None
    position: int = 0
    format: str = ""
    cluster_by: tuple[Name, ...] = ()

    MODES = ("create", "replace", "create or replace")

    __repr__ = redacted_repr


@dataclass(frozen=True)
class CreateTableLike:
    """CREATE TABLE t LIKE s [USING format]."""

    name: Name
    source: Name
    if_not_exists: bool = False
    file_format: str | None = None


@dataclass(frozen=True)
class CreateTempView:
    """CREATE [OR REPLACE] [GLOBAL] TEMPORARY VIEW v AS query.

    `comments` are those of columns, by their names.
    """

    name: Name
    query: str
    columns: tuple[str, ...] = ()
    replace: bool = False
    is_global: bool = False
    comments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CreateView:
    """CREATE [OR REPLACE] VIEW [IF NOT EXISTS] ns.v AS query: a view of the catalog."""

    name: Name
    query: str
    columns: tuple[str, ...] = ()
    replace: bool = False
    if_not_exists: bool = False
    comments: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    __repr__ = redacted_repr


@dataclass(frozen=True)
class AlterView:
    """ALTER VIEW v AS query."""

    name: Name
    query: str


@dataclass(frozen=True)
class RenameView:
    """ALTER VIEW v RENAME TO w."""

    name: Name
    to: Name


@dataclass(frozen=True)
class DropView:
    """DROP VIEW [IF EXISTS] v."""

    name: Name
    if_exists: bool = False


@dataclass(frozen=True)
class ShowViews:
    """SHOW VIEWS [IN ns] [LIKE pattern]."""

    namespace: Name | None = None
    pattern: str | None = None


@dataclass(frozen=True)
class CacheTable:
    """CACHE [LAZY] TABLE t [OPTIONS ('storageLevel' = …)] [AS query]."""

    name: Name
    lazy: bool = False
    storage_level: str | None = None
    query: str | None = None


@dataclass(frozen=True)
class UncacheTable:
    """UNCACHE TABLE [IF EXISTS] t."""

    name: Name
    if_exists: bool = False


@dataclass(frozen=True)
class ClearCache:
    """CLEAR CACHE."""


@dataclass(frozen=True)
class RefreshTable:
    """REFRESH [TABLE] t."""

    name: Name


@dataclass(frozen=True)
class DropTable:
    """DROP TABLE [IF EXISTS] t [PURGE]."""

    name: Name
    if_exists: bool = False
    purge: bool = False


@dataclass(frozen=True)
class CreateNamespace:
    """CREATE NAMESPACE | SCHEMA | DATABASE."""

    name: Name
    if_not_exists: bool = False
    comment: str | None = None
    location: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    __repr__ = redacted_repr


@dataclass(frozen=True)
class DropNamespace:
    """DROP NAMESPACE | SCHEMA | DATABASE."""

    name: Name
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class AlterNamespace:
    """ALTER NAMESPACE … SET [DB]PROPERTIES."""

    name: Name
    properties: Mapping[str, str]

    __repr__ = redacted_repr


@dataclass(frozen=True)
class Use:
    """USE [NAMESPACE | SCHEMA | DATABASE | CATALOG] name."""

    name: Name


@dataclass(frozen=True)
class ShowTables:
    """SHOW TABLES [IN ns] [LIKE pattern]."""

    namespace: Name | None = None
    pattern: str | None = None


@dataclass(frozen=True)
class ShowCurrentNamespace:
    """SHOW CURRENT NAMESPACE."""


@dataclass(frozen=True)
class ShowNamespaces:
    """SHOW NAMESPACES [IN ns] [LIKE pattern]."""

    namespace: Name | None = None
    pattern: str | None = None


@dataclass(frozen=True)
class ShowCreateTable:
    """SHOW CREATE TABLE t."""

    name: Name


@dataclass(frozen=True)
class ShowProperties:
    """SHOW TBLPROPERTIES t [(key)]."""

    name: Name
    key: str | None = None


@dataclass(frozen=True)
class ShowColumns:
    """SHOW COLUMNS IN t."""

    name: Name


@dataclass(frozen=True)
class ShowPartitions:
    """SHOW PARTITIONS t."""

    name: Name


@dataclass(frozen=True)
class DescribeTable:
    """DESCRIBE [EXTENDED | FORMATTED] t [column]."""

    name: Name
    extended: bool = False
    column: Name | None = None


@dataclass(frozen=True)
class DescribeHistory:
    """DESCRIBE HISTORY t."""

    name: Name
    limit: int | None = None


@dataclass(frozen=True)
class DescribeDetail:
    """DESCRIBE DETAIL t."""

    name: Name


@dataclass(frozen=True)
class DescribeNamespace:
    """DESCRIBE NAMESPACE [EXTENDED] ns."""

    name: Name
    extended: bool = False


# --- writes


@dataclass(frozen=True)
class StaticPartition:
    """One `column = value` of PARTITION (…); `value` is an SQL text, None where dynamic."""

    column: str
    value: str | None


@dataclass(frozen=True)
class Insert:
    """INSERT INTO / OVERWRITE.

    `overwrite`: None for INTO. `where` is the text of REPLACE WHERE. `query` starts at `position`.
    """

    name: Name
    query: str
    position: int = 0
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    overwrite: bool = False
    partition: tuple[StaticPartition, ...] = ()
    if_not_exists: bool = False
    where: str | None = None
    with_clause: str = ""


@dataclass(frozen=True)
class Truncate:
    """TRUNCATE TABLE t."""

    name: Name


@dataclass(frozen=True)
class Optimize:
    """OPTIMIZE t [FULL] [WHERE …] [ZORDER BY (…)]."""

    name: Name
    where: str | None = None
    zorder: tuple[Name, ...] = ()
    full: bool = False


@dataclass(frozen=True)
class CreateIndex:
    """CREATE INDEX [IF NOT EXISTS] [i] ON t (…); a table has one index, whatever its name."""

    name: Name
    keys: tuple[Name, ...]
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropIndex:
    """DROP INDEX [IF EXISTS] [i] ON t."""

    name: Name
    if_exists: bool = False


@dataclass(frozen=True)
class Vacuum:
    """VACUUM t [RETAIN n HOURS] [DRY RUN]."""

    name: Name
    retain_hours: float | None = None
    dry_run: bool = False


@dataclass(frozen=True)
class Restore:
    """RESTORE TABLE t TO VERSION AS OF n | TIMESTAMP AS OF …; `travel` is which."""

    name: Name
    travel: TimeTravel


@dataclass(frozen=True)
class CloneTable:
    """CREATE TABLE a [SHALLOW | DEEP] CLONE b [VERSION | TIMESTAMP AS OF …]."""

    name: Name
    source: Name
    shallow: bool = False
    travel: TimeTravel | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None
    if_not_exists: bool = False

    __repr__ = redacted_repr


@dataclass(frozen=True)
class Reorg:
    """REORG TABLE t [WHERE …] APPLY (PURGE)."""

    name: Name
    where: str | None = None


@dataclass(frozen=True)
class ConvertToDelta:
    """CONVERT TO DELTA parquet.`path` [NO STATISTICS] [PARTITIONED BY (column type, …)]."""

    path: str
    partition_by: tuple[Field, ...] | None = None
    statistics: bool = True


@dataclass(frozen=True)
class Generate:
    """GENERATE symlink_format_manifest FOR TABLE t."""

    name: Name
    mode: str


@dataclass(frozen=True)
class AnalyzeTable:
    """ANALYZE TABLE t [PARTITION (…)] COMPUTE STATISTICS [NOSCAN | FOR COLUMNS …].

    `columns` None: all. With `counts_only` nothing is to be computed: metadata has the counts.
    """

    name: Name
    columns: tuple[Name, ...] | None = None
    partitions: bool = False
    counts_only: bool = False


@dataclass(frozen=True)
class CommentOn:
    """COMMENT ON TABLE t | NAMESPACE ns IS …; None takes the comment away."""

    name: Name
    comment: str | None
    of_namespace: bool = False


@dataclass(frozen=True)
class Argument:
    """One argument of CALL: `name` is None by position; `value` is the text of an expression."""

    value: str
    name: str | None = None
    position: int = 0


@dataclass(frozen=True)
class Call:
    """CALL [catalog.]system.procedure(…)."""

    procedure: str
    arguments: tuple[Argument, ...] = ()
    catalog: Name = ()


Statement = (
    Query
    | Passthrough
    | CreateTable
    | CreateTableLike
    | CreateTempView
    | CreateView
    | AlterView
    | RenameView
    | DropView
    | ShowViews
    | CacheTable
    | UncacheTable
    | ClearCache
    | RefreshTable
    | DropTable
    | CreateNamespace
    | DropNamespace
    | AlterNamespace
    | Use
    | ShowTables
    | ShowCurrentNamespace
    | ShowNamespaces
    | ShowCreateTable
    | ShowProperties
    | ShowColumns
    | ShowPartitions
    | DescribeTable
    | DescribeHistory
    | DescribeDetail
    | DescribeNamespace
    | AlterTable
    | Insert
    | Truncate
    | Delete
    | Update
    | Merge
    | Explain
    | Optimize
    | CreateIndex
    | DropIndex
    | Vacuum
    | Restore
    | CloneTable
    | Reorg
    | ConvertToDelta
    | Generate
    | AnalyzeTable
    | CommentOn
    | Call
)
