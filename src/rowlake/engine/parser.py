"""Spark's own parser, asked about a text that is not run."""

from __future__ import annotations

from typing import Any

from rowlake.engine.jobs import is_remote
from rowlake.engine.quiet import quiet_refusals


def parse_error(spark: Any, text: str) -> str | None:
    """Return what Spark's parser says against a text; None where it takes it.

    The parser of a Connect session cannot be asked: None there, too.
    """
    if is_remote(spark):
        return None
    try:
        with quiet_refusals():
            spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
    except Exception as error:
        if type(error).__name__ == "ParseException":
            return str(error)
        raise
    return None
