"""The suite runs on every table format."""

from tests.table_formats import pytest_collection_modifyitems, pytest_generate_tests, table_format

__all__ = ["pytest_collection_modifyitems", "pytest_generate_tests", "table_format"]
