"""All mutations: what they change, and what may come of it (`Verdict`)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tests.hostile import (
    byte_mutations,
    file_meanings,
    hint_meanings,
    list_meanings,
    manifest_meanings,
    metadata_meanings,
    property_meanings,
)
from tests.hostile.mutation import Mutation, kinds_of

if TYPE_CHECKING:
    from tests.hostile.tables import Layout

__all__ = ["Mutation", "choices"]


@lru_cache(maxsize=32)
def choices(layout: Layout, *, meanings: bool) -> list[Mutation]:
    """Return the mutations that a table of this layout can have: of bytes, or of meanings."""
    kinds = kinds_of(layout)
    found = [
        *metadata_meanings.MUTATIONS,
        *property_meanings.MUTATIONS,
        *list_meanings.MUTATIONS,
        *manifest_meanings.MUTATIONS,
        *file_meanings.MUTATIONS,
        *hint_meanings.MUTATIONS,
    ]
    if not meanings:
        found = byte_mutations.mutations(layout)
    return [one for one in found if one.kind in kinds and one.suits(layout)]
