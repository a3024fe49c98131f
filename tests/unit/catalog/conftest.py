from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from rowlake.catalog import tables
from rowlake.catalog.open import open_catalog
from rowlake.iceberg.metadata_files import Definition

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.catalog import Catalog

    from rowlake.catalog.handle import IcebergHandle


@pytest.fixture(params=[None, "filesystem"], ids=["sqlite", "filesystem"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    opened = open_catalog(str(tmp_path / "warehouse"), request.param)
    tables.create_namespace(opened, "ns")
    return opened


@pytest.fixture
def definition() -> Definition:
    return Definition(
        Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "s", StringType()))
    )


@pytest.fixture
def table(catalog: Catalog, definition: Definition) -> IcebergHandle:
    return tables.create_table(catalog, "ns.t", definition)
