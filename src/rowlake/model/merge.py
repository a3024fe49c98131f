"""Which rows a clause of MERGE is for, and what it does with them."""

from __future__ import annotations

import enum


class When(str, enum.Enum):
    """Which rows a clause of MERGE is for."""

    MATCHED = "MATCHED"
    NOT_MATCHED = "NOT MATCHED"
    NOT_MATCHED_BY_SOURCE = "NOT MATCHED BY SOURCE"


class Action(str, enum.Enum):
    """What a clause of MERGE does with its rows."""

    UPDATE = "UPDATE"
    DELETE = "DELETE"
    INSERT = "INSERT"
