"""Looks at a table without what they have no need of.

pyarrow imports pandas, which takes a second, when it is first handed a list: it asks whether that
is a Series. A process that only shows metadata never has one, so there pyarrow is told that pandas
is missing. It remembers the answer, so this is for whole processes: `rowlake files`, not for
programs that import rowlake.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder

LOOKS = frozenset({"tables", "describe", "history", "snapshots", "files", "health"})
_SPARED = "pandas"


class _Spared(MetaPathFinder):
    """Finds no pandas."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == _SPARED:
            raise ImportError(f"{name} is not needed here")


def spare_pandas() -> None:
    """Have pyarrow do without pandas until the process ends."""
    if _SPARED in sys.modules:
        return
    import pyarrow as pa

    spared = _Spared()
    sys.meta_path.insert(0, spared)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(spared)
