"""One lake for all cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rowlake
from tests.sql.tables import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def stage(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with rowlake.connect(str(tmp_path_factory.mktemp("cases")), spark=spark) as lake:
        yield Stage(lake)
