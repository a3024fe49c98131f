"""Modules that load at their first use.

`Lake` and `Table` name every room, but most programs, and each look-up of the command line, need
one or two of them. A stand-in takes no time to make and loads its module when something of it is
asked for. For type checkers the import is an ordinary one, under `TYPE_CHECKING`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Deferred:
    """Stands for a module until something of it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)

    def __repr__(self) -> str:
        return f"Deferred({self._name})"


def deferred(package: str, names: str) -> list[Any]:
    """Return stand-ins for modules of a package, in the order of their names."""
    return [Deferred(f"{package}.{name}") for name in names.split()]
