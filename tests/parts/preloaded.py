"""What racing writers load, imported at once: forks of a process that did so need not load it.

Nothing runs here: neither Arrow's threads nor connections would live on in a fork.
"""

from __future__ import annotations

import importlib
import multiprocessing
import pkgutil
from typing import TYPE_CHECKING

import rowlake

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext

# Arrow loads some of itself and pandas when it first needs them. Each process runs the imports of
# the script that pytest was started by.
OTHERS = ("pandas", "pyarrow.dataset", "pyarrow.pandas_compat", "pytest", "rowlake.engine.java")
# These would load PySpark and Typer, which no writer needs.
APART = ("rowlake.engine", "rowlake.cli")


def forking() -> ForkServerContext:
    """Return how to start processes as forks of one that has imported this module."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def _load() -> None:
    found = (module.name for module in pkgutil.walk_packages(rowlake.__path__, "rowlake."))
    for name in (*OTHERS, *(name for name in found if not name.startswith(APART))):
        importlib.import_module(name)


_load()
