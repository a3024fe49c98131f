"""One folder, two libraries: `lake` and the Spark catalog `java` are the same tables."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

import rowlake
from tests.spark_session import QUICK, having

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_NUMBERS = count()


@pytest.fixture(scope="session")
def lake(spark: Any, java_catalog: str, java_warehouse: Path) -> Iterator[rowlake.Lake]:
    """Our file-system catalog on the folder of Java's Hadoop catalog; it writes no Java caches."""
    del java_catalog
    with having(spark, QUICK):
        found = rowlake.connect(str(java_warehouse), catalog="filesystem", spark=spark)
        found.create_namespace("db", if_not_exists=True)
        yield found


@pytest.fixture(params=[2, 3], ids=["v2", "v3"])
def version(request: pytest.FixtureRequest) -> int:
    """The format version of the tables of a test."""
    return request.param


@pytest.fixture
def name() -> str:
    """The name of a table that no other test has, with its namespace."""
    return f"db.t{next(_NUMBERS)}"


@pytest.fixture
def java(spark: Any, lake: rowlake.Lake) -> Callable[[str], Any]:
    """Run a statement with Iceberg's Java library; tables are `java.db.t`."""
    del lake
    return spark.sql
