"""The adapter `rowlake`: dbt-spark's macros on a lake that the dbt process itself opens."""

from dbt.adapters.base import AdapterPlugin
from dbt.adapters.rowlake.connections import RowlakeCredentials
from dbt.adapters.rowlake.impl import RowlakeAdapter
from dbt.include import rowlake

Plugin = AdapterPlugin(
    adapter=RowlakeAdapter,
    credentials=RowlakeCredentials,
    include_path=rowlake.PACKAGE_PATH,
    dependencies=["spark"],
)
