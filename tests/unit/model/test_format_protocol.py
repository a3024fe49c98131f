"""The formats answer the whole protocol, each method with its parameters."""

from __future__ import annotations

import inspect

import pytest

from rowlake.iceberg.format import IcebergFormat
from rowlake.iceberg.listing import ManifestListing
from rowlake.model.format import FileListing, Format
from tests.memory_format.files import MemoryListing
from tests.memory_format.format import MemoryFormat


def methods(protocol: type) -> dict[str, object]:
    return {
        name: value
        for name, value in vars(protocol).items()
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
    }


@pytest.mark.parametrize(
    ("found", "protocol"),
    [
        (IcebergFormat, Format),
        (MemoryFormat, Format),
        (ManifestListing, FileListing),
        (MemoryListing, FileListing),
    ],
    ids=lambda one: one.__name__,
)
def test_every_method_is_there_with_its_parameters(found: type, protocol: type) -> None:
    wanted = methods(protocol)
    assert wanted
    for name, value in wanted.items():
        if isinstance(value, property):
            assert hasattr(found, name), name
        else:
            asked = list(inspect.signature(value).parameters.values())
            given = list(inspect.signature(getattr(found, name)).parameters.values())
            assert [(one.name, one.kind) for one in given] == [
                (one.name, one.kind) for one in asked
            ], name
