"""Calls into Iceberg's Java core without Spark around it.

Loops over 200 000 files cannot go call by call from Python, so a small Java class does them.
Spark carries a compiler (Janino), which makes the class inside the session's JVM: no build, no
jar of ours.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = Path(__file__).resolve().parent / "java" / "IcebergCore.java"


class IcebergCore:
    """The methods of java/IcebergCore.java; arguments and answers are texts."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark._jvm
        self._gateway: Any = spark.sparkContext._gateway

    @cached_property
    def _methods(self) -> dict[str, Any]:
        compiler = self._jvm.org.codehaus.janino.SimpleCompiler()
        loader = self._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        compiler.setParentClassLoader(loader)
        compiler.cook(SOURCE.read_text())
        compiled = compiler.getClassLoader().loadClass("bench.IcebergCore")
        return {method.getName(): method for method in compiled.getMethods()}

    def call(self, method: str, first: str, second: str, third: str = "") -> str:
        """Run a static method in the JVM."""
        arguments = self._gateway.new_array(self._jvm.java.lang.Object, 3)
        arguments[0], arguments[1], arguments[2] = first, second, third
        return str(self._methods[method].invoke(None, arguments))
