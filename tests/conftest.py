"""Fixtures for every folder of tests."""

from tests.spark_session import java_catalog, java_warehouse, spark

__all__ = ["java_catalog", "java_warehouse", "spark"]
