"""The adapter: dbt-spark's, with what is in a lake asked of the lake itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dbt.adapters.base import BaseRelation, available
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.rowlake.connections import RowlakeConnectionManager
from dbt.adapters.spark import SparkAdapter, SparkColumn
from dbt.adapters.spark.impl import SparkConfig
from dbt_common.exceptions import DbtRuntimeError

import rowlake
from rowlake.catalog.views import keeps_views

DEFAULT_FORMAT = "iceberg"


@dataclass
class RowlakeConfig(SparkConfig):
    """What a model may say; `file_format` is `iceberg` or `delta`."""

    file_format: str = DEFAULT_FORMAT


class RowlakeAdapter(SparkAdapter):
    """dbt on a lake."""

    ConnectionManager = RowlakeConnectionManager
    AdapterSpecificConfigs = RowlakeConfig

    @property
    def lake(self) -> rowlake.Lake:
        """The lake of this thread's connection."""
        return self.connections.get_thread_connection().handle.lake

    def pre_model_hook(self, config: Any) -> None:
        """Give a model what it does not say: its format, and `merge` where it has a key."""
        given = config.model.config
        if not given.get("file_format"):
            given["file_format"] = DEFAULT_FORMAT
        if given.get("materialized") == "incremental" and not given.get("incremental_strategy"):
            given["incremental_strategy"] = "merge" if given.get("unique_key") else "append"

    @available
    def keeps_views(self) -> bool:
        """Return whether the catalog keeps views (REST catalogs do)."""
        return keeps_views(self.lake.catalog)

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        schema = schema_relation.schema
        if not self.check_schema_exists("", schema):
            return []
        found = []
        views = {
            row.viewName for row in self.lake.sql(f"SHOW VIEWS IN {self.quote(schema)}").collect()
        }
        for row in self.lake.sql(f"SHOW TABLES IN {self.quote(schema)}").collect():
            if row.isTemporary or row.tableName in views:
                continue
            kind = self.lake.table((schema, row.tableName)).format
            found.append(self._relation(schema, row.tableName, RelationType.Table, kind))
        found += [self._relation(schema, name, RelationType.View, "") for name in sorted(views)]
        return found

    def _relation(self, schema: str, name: str, kind: RelationType, format: str) -> BaseRelation:
        return self.Relation.create(
            schema=schema,
            identifier=name,
            type=kind,
            is_iceberg=format == "iceberg",
            is_delta=format == "delta",
        )

    def get_columns_in_relation(self, relation: BaseRelation) -> list[SparkColumn]:
        try:
            rows = self.lake.sql(f"DESCRIBE TABLE {relation}").collect()
        except rowlake.TableNotFoundError:
            return []
        except rowlake.RowlakeError as error:
            raise DbtRuntimeError(str(error)) from error
        columns = []
        for row in rows:
            if not row.col_name or row.col_name.startswith("#"):
                break
            columns.append(self._column(relation, row, len(columns)))
        return columns

    def _column(self, relation: BaseRelation, row: Any, place: int) -> SparkColumn:
        return SparkColumn(
            table_database=None,
            table_schema=relation.schema,
            table_name=relation.name,
            table_type=relation.type,
            table_owner="",
            table_stats=None,
            column=row.col_name,
            column_index=place,
            dtype=row.data_type,
        )

    def list_schemas(self, database: str) -> list[str]:
        return [row[0] for row in self.lake.sql("SHOW NAMESPACES").collect()]

    def check_schema_exists(self, database: str, schema: str) -> bool:
        return schema in self.list_schemas(database)

    def submit_python_job(self, parsed_model: dict, compiled_code: str) -> Any:
        raise DbtRuntimeError(
            "dbt-rowlake runs no Python models: write the model in SQL, or run the job beside dbt "
            "with rowlake.attach(spark)."
        )

    def valid_incremental_strategies(self) -> list[str]:
        return ["append", "merge", "insert_overwrite", "microbatch"]
