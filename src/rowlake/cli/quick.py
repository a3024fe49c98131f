"""Fast start of metadata commands: pyarrow is kept from importing pandas.

pyarrow imports pandas, which takes a second, when it first converts a list, to check whether it is
a Series. A process that only shows metadata never has one, so pandas is made to look missing.
pyarrow remembers that, so this is for whole processes such as `rowlake files`, never for programs
that import rowlake.
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
    """Keep pyarrow from importing pandas until the process ends."""
    if _SPARED in sys.modules:
        return
    import pyarrow as pa

    spared = _Spared()
    sys.meta_path.insert(0, spared)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(spared)
