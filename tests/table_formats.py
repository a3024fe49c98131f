"""The table formats that a folder of tests runs on: Iceberg, and tables in memory.

A conftest that imports `pytest_generate_tests` and `table_format` has every test of its folder that
makes tables (that asks for a folder to put them in) run on each format. Tests that look inside
Iceberg, or need its catalogs, are marked `iceberg` and run on that alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lakes import using_format

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMATS = ("iceberg", "memory")
_FOLDERS = {"tmp_path", "tmp_path_factory"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that makes tables on every format."""
    is_marked = metafunc.definition.get_closest_marker("iceberg") is not None
    if not is_marked and _FOLDERS & set(metafunc.fixturenames):
        metafunc.parametrize("table_format", FORMATS, indirect=True)


@pytest.fixture(autouse=True)
def table_format(request: pytest.FixtureRequest) -> Iterator[str]:
    """The format of the tables that `tests.lakes.make_lake` opens."""
    chosen = getattr(request, "param", FORMATS[0])
    with using_format(chosen):
        yield chosen
