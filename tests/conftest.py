"""Fixtures for every folder of tests."""

import gc

from tests.spark_session import java_catalog, java_warehouse, spark

__all__ = ["java_catalog", "java_warehouse", "spark"]


def pytest_collection_finish() -> None:
    """Look no more for garbage among tests and modules, which live to the end."""
    gc.freeze()
