"""Iceberg's partition transforms as functions of a Spark session.

Spark calls the same code that writes partition values, on Arrow arrays. Each function is registered
once per session, under a name of rowlake's.
"""

from __future__ import annotations

import re
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from rowlake.model.transform import apply_transform

_known: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


def registered_function(spark: Any, transform: str, returns: str) -> str:
    """Return the name of the function in the session; `returns` is Spark's type of its values."""
    name = "__rowlake_" + re.sub(r"\W+", "_", f"{transform} {returns}").strip("_")
    known = _known.setdefault(spark, set())
    if name not in known:
        spark.udf.register(name, _function(transform, returns))
        known.add(name)
    return name


def _function(transform: str, returns: str) -> Any:
    from pyspark.sql import functions

    if hasattr(functions, "arrow_udf"):

        def of_array(values: pa.Array) -> pa.Array:
            return apply_transform(transform, values)

        return functions.arrow_udf(of_array, returnType=returns)

    def of_value(value: Any) -> Any:  # Spark 4.0 has no functions of Arrow arrays
        return None if value is None else apply_transform(transform, pa.array([value]))[0].as_py()

    return functions.udf(of_value, returnType=returns)
