"""The table formats that a folder of tests runs on: Iceberg, tables in memory, some on Delta Lake.

A conftest that imports the names of `__all__` has every test that asks for `table_format` (mostly
by way of its module's fixture `lake`) run on each format. Tests that look inside Iceberg, or need
its catalogs, are marked `iceberg` and run on that alone. Modules marked `delta` run on Delta tables
too, but for tests marked `not_delta` with what Delta lacks.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import pytest

from tests.lakes import using_format
from tests.memory_format.lake import has_stores

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["pytest_collection_modifyitems", "pytest_generate_tests", "table_format"]

FORMATS = ("iceberg", "memory")
VARIANTS = 4  # of a test, on formats other than Iceberg


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for a format on every one, unless it is marked."""
    marked = metafunc.definition.get_closest_marker
    if "table_format" in metafunc.fixturenames and marked("iceberg") is None:
        on_delta = marked("delta") is not None and marked("not_delta") is None
        formats = (*FORMATS, "delta") if on_delta else FORMATS
        metafunc.parametrize("table_format", formats, indirect=True)


@pytest.fixture
def table_format(request: pytest.FixtureRequest) -> Iterator[str]:
    """The format of the tables that `tests.lakes.make_lake` opens."""
    chosen = getattr(request, "param", FORMATS[0])
    with using_format(chosen):
        yield chosen
        assert has_stores() == (chosen == "memory"), "the test made no lake of its format"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a few variants of each test on other formats: kernels are the same on all of them."""
    left_out = set()
    by_test: dict[str, list[pytest.Item]] = {}
    for item in items:
        if "table_format" in getattr(item, "fixturenames", ()) and _format_of(item) != "iceberg":
            name = item.nodeid.partition("[")[0]
            by_test.setdefault(f"{name} {_format_of(item)}", []).append(item)
    for variants in by_test.values():
        # A checksum spreads the choice over all parameters, the same in every run.
        variants.sort(key=lambda item: zlib.crc32(item.nodeid.encode()))
        left_out |= set(variants[VARIANTS:])
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def _format_of(item: pytest.Item) -> str:
    callspec = getattr(item, "callspec", None)
    return str(callspec.params.get("table_format", FORMATS[0])) if callspec else FORMATS[0]
