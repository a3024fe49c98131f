"""What may come of reading a mutated table."""

from __future__ import annotations

from enum import Enum


class Verdict(str, Enum):
    """What counts as right; in every case errors are rowlake's, and time and memory bounded."""

    SAME = "the rows of the table as it was"
    SAME_OR_ERROR = "the rows of the table as it was, or an error"
    REFUSED = "an error"
    COUNT = "as many rows as there were, with any values, or an error"
    ANY = "any rows, or an error"
