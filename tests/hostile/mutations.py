"""All mutations: what they change, and what may come of it (`Verdict`)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tests.hostile import (
    byte_mutations,
    delta_commit_meanings,
    delta_definition_meanings,
    delta_file_meanings,
    delta_log_meanings,
    file_meanings,
    hint_meanings,
    list_meanings,
    manifest_meanings,
    metadata_meanings,
    property_meanings,
)
from tests.hostile.mutation import Mutation

if TYPE_CHECKING:
    from tests.hostile.tables import AnyLayout

__all__ = ["Mutation", "choices"]

MEANINGS = {
    "iceberg": (
        metadata_meanings,
        property_meanings,
        list_meanings,
        manifest_meanings,
        file_meanings,
        hint_meanings,
    ),
    "delta": (
        delta_commit_meanings,
        delta_definition_meanings,
        delta_log_meanings,
        delta_file_meanings,
    ),
}


@lru_cache(maxsize=32)
def choices(layout: AnyLayout, *, meanings: bool) -> list[Mutation]:
    """Return the mutations that a table of this layout can have: of bytes, or of meanings."""
    if not meanings:
        return byte_mutations.mutations(layout)
    found = [one for each in MEANINGS[layout.format] for one in each.MUTATIONS]
    return [one for one in found if one.kind in layout.kinds and one.suits(layout)]
