"""Kernels for rowlake's engine; a light module, because Spark's workers import it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def nothing(task: Any) -> Iterator[Any]:  # noqa: ARG001 - the signature is the engine's
    """Yield no batch."""
    yield from ()
