"""Which tables can be read: reader versions and table features (PROTOCOL.md, "Table Features")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowlake.errors import CorruptTableError, UnsupportedFeatureError, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

FEATURES_READER, FEATURES_WRITER = 3, 7

# What a reader must know to read a table that lists it.
READ_FEATURES = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "typeWidening-preview",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantShredding",
        "variantShredding-preview",
        "variantType",
        "variantType-preview",
    }
)

_REASONS = {
    "catalogManaged": "its commits are the catalog's, so that its folder does not have them all",
    "catalogOwned-preview": "its commits are the catalog's, so that its folder does not have them",
}


@dataclass(frozen=True)
class Protocol:
    """The versions and features that a table asks of its readers and writers."""

    reader_version: int = 1
    writer_version: int = 2
    reader_features: tuple[str, ...] = ()
    writer_features: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """All features that are listed, sorted."""
        return tuple(sorted({*self.reader_features, *self.writer_features}))


def protocol_of(action: Mapping[str, Any], location: str) -> Protocol:
    """Return the protocol of an action; `location` is the file that has it."""
    try:
        return Protocol(
            int(action["minReaderVersion"]),
            int(action["minWriterVersion"]),
            tuple(map(str, action.get("readerFeatures") or ())),
            tuple(map(str, action.get("writerFeatures") or ())),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptTableError(location, f"its protocol action is incomplete ({error})") from error


def protocol_action(protocol: Protocol) -> dict[str, Any]:
    """Return the body of a `protocol` action; features are listed only by versions that have any.

    (PROTOCOL.md, "Protocol Evolution": `readerFeatures` at reader version 3, `writerFeatures` at
    writer version 7, empty ones too.)
    """
    found: dict[str, Any] = {
        "minReaderVersion": protocol.reader_version,
        "minWriterVersion": protocol.writer_version,
    }
    if protocol.reader_version >= FEATURES_READER:
        found["readerFeatures"] = list(protocol.reader_features)
    if protocol.writer_version >= FEATURES_WRITER:
        found["writerFeatures"] = list(protocol.writer_features)
    return found


def validate_readable(protocol: Protocol, table: str) -> None:
    """Refuse a table that needs something of its readers that is not known here."""
    if protocol.reader_version > FEATURES_READER:
        raise UnsupportedFeatureError(
            f"Cannot read {table}: its protocol asks for reader version "
            f"{protocol.reader_version} (supported: 1 to {FEATURES_READER})."
        )
    if protocol.reader_version < FEATURES_READER:
        return
    unknown = sorted(set(protocol.reader_features) - READ_FEATURES)
    if unknown:
        reasons = [f"{name}: {_REASONS[name]}" for name in unknown if name in _REASONS]
        why = f" ({'; '.join(reasons)})" if reasons else ""
        raise UnsupportedFeatureError(
            f"Cannot read {table}: unsupported table feature {shown(unknown)}{why}. "
            f"Supported: {', '.join(sorted(READ_FEATURES))}."
        )
