"""Bring a mirror to where its table is.

The mirror says in its own commits where it stands, so a crash leaves it behind and nothing else.
Two who bring it forward at once meet at its next version: one of them lands, the other looks again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowlake.commit.phases import Phase, reached
from rowlake.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    CorruptTableError,
    InternalError,
    InvalidStatementError,
    RowlakeError,
    UnsupportedFeatureError,
)
from rowlake.mirror.changes import change_of, difference, restates_files
from rowlake.mirror.files import Translation
from rowlake.model.handle import MAIN
from rowlake.model.mirror import APP_ID, MIRROR_OF, Mirrored
from rowlake.model.outcome import Conflict, Unknown

if TYPE_CHECKING:
    from rowlake.model.change import Change
    from rowlake.model.format import Format, LandedCommit, Payload
    from rowlake.model.handle import TableHandle
    from rowlake.model.mirror import MirrorDefinition

MOST_TRIES = 20
ACTION = "mirror"


class _Lost(Exception):
    """Another writer has moved the mirror."""


class _Missing(Exception):
    """The mirror lacks what a commit removes: only the difference helps."""


def mirror(source: TableHandle, target: Format) -> Mirrored:
    """Bring the mirror of a table in another format to the table's newest commit.

    Raises UnsupportedFeatureError for what the other format cannot say; the mirror stays as it was.
    """
    _validate(source, target)
    for _ in range(MOST_TRIES):
        found = _attempt(source, target)
        if found is not None:
            return found
    raise CommitConflictError(
        ACTION, source.name, "other writers were always first", retryable=True
    )


def _attempt(source: TableHandle, target: Format) -> Mirrored | None:
    """Return where the mirror stands; None where another writer was first."""
    try:
        return _Run.begin(source, target).go()
    except _Lost:
        return None


def _validate(source: TableHandle, target: Format) -> None:
    if source.format.name == target.name:
        raise InvalidStatementError(
            f"Cannot mirror {source.name} as {target.name}: it is one already."
        )
    if source.is_in_transaction or getattr(source.catalog, "holds_commits", False):
        raise UnsupportedFeatureError(
            f"Cannot mirror {source.name} in a transaction: the mirror follows what has landed."
        )
    if MIRROR_OF in source.properties:
        raise UnsupportedFeatureError(
            f"Cannot mirror {source.name}: it is a mirror of another table."
        )


@dataclass
class _Run:
    """One look at a table and its mirror, and the commits that bring the mirror forward."""

    source: TableHandle
    mirror: TableHandle
    definition: MirrorDefinition
    commits: int = 0

    @classmethod
    def begin(cls, known: TableHandle, target: Format) -> _Run:
        """Look at the mirror first: the table is then at least as new."""
        found = target.find_mirror(known)
        source = known.format.refresh(known)
        if source.uuid != known.uuid:
            found = target.find_mirror(source)
        definition = source.format.mirror_definition(source)
        return cls(source, found or target.stage_mirror(source, definition), definition)

    def go(self) -> Mirrored:
        """Land what is new, oldest first."""
        first = None
        if not self.mirror.is_staged:
            first = self.mirror.format.redefine_mirror(self.mirror, self.definition)
        landed = self._since()
        if landed is None or self._needs_all(first):
            self._land_difference(first)
        elif landed:
            self._land_commits(landed, first)
        elif first is not None:
            self._swap(first)
        return self._result()

    def _since(self) -> list[LandedCommit] | None:
        """Return the commits that the mirror lacks; None where it is not known which."""
        if self.mirror.is_staged:
            return None
        stands = self.mirror.format.last_landed(self.mirror, MAIN, APP_ID)
        if stands is None:
            return None if self.source.current_snapshot_id is not None else []
        return self.source.format.commits_since(self.source, MAIN, stands.batch_id)

    def _needs_all(self, first: Payload | None) -> bool:
        """Return whether files must be added again: a format with one spec for all of them."""
        if first is None or self.mirror.can.transforms:
            return False
        now = [one.source_id for one in self.mirror.view().spec.fields]
        after = self.mirror.format.altered(self.mirror, first)
        return now != [one.source_id for one in after.view().spec.fields]

    def _translation(self, first: Payload | None) -> Translation:
        after = self.mirror
        if first is not None:
            after = self.mirror.format.altered(self.mirror, first)
        return Translation(self.source.view(), after.view(), self.source.storage)

    def _land_commits(self, landed: list[LandedCommit], first: Payload | None) -> None:
        translate = self._translation(first)
        try:
            for one in landed:
                change = change_of(one, translate)
                if restates_files(change):
                    raise _Missing
                self._land(change, first)
                first = None
        except _Missing:
            self._land_difference(first)
        except CorruptTableError as error:
            if not error.is_missing:  # else a commit's own files have expired
                raise
            self._land_difference(first)

    def _land_difference(self, first: Payload | None) -> None:
        translate = self._translation(first)
        again = self._needs_all(first)
        try:
            self._land(difference(self.source, self.mirror, translate, again=again), first)
        except _Missing as error:
            raise InternalError(f"The mirror of {self.source.name} lacks its own files.") from error

    def _land(self, change: Change, first: Payload | None) -> None:
        held, storage = self.mirror.format, self.mirror.storage
        base = self.mirror if first is None else held.altered(self.mirror, first)
        prepared = held.prepare(base, change, held.new_token(self.mirror), storage)
        produced = held.produce(self.mirror, change, prepared, storage, attempt=0, first=first)
        written = [*prepared.written, *produced.written]
        if produced.missing:
            storage.delete(written)
            raise _Missing
        try:
            self._swap(produced.payload)
        except _Lost:
            storage.delete(written)
            raise
        storage.delete(produced.unused)

    def _swap(self, payload: Payload) -> None:
        reached(Phase.PRODUCED, self.mirror)
        try:
            outcome = self.mirror.format.swap(self.mirror, payload)
        except RowlakeError as error:
            if self.mirror.is_staged and self.mirror.format.find_mirror(self.source) is not None:
                raise _Lost from error  # another writer has created it
            raise
        if isinstance(outcome, Conflict):
            raise _Lost
        if isinstance(outcome, Unknown):
            raise CommitStateUnknownError(self.source.name, None, outcome.cause)
        self.mirror = outcome.handle
        self.commits += 1

    def _result(self) -> Mirrored:
        return Mirrored(
            self.mirror.format.name,
            self.mirror.location,
            self.mirror.version or "",
            self.source.current_snapshot_id,
            self.commits,
            self.definition.notes,
        )
