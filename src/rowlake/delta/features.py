"""Which protocol a table needs, and which tables can be written (PROTOCOL.md, "Table Features").

A feature is asked for by a property or by a column's type; the protocol of a table is raised by
nothing else. A writer must know every feature that a table lists, whether it is active or not; what
is refused here is refused by name, before any file is written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowlake.delta.column_mapping import fields_in, mapping_mode
from rowlake.delta.column_rules import DEFAULT, GENERATED
from rowlake.delta.column_rules import START as IDENTITY
from rowlake.delta.new_schema import simple_types
from rowlake.delta.protocol import FEATURES_READER, FEATURES_WRITER, Protocol
from rowlake.delta.row_tracking import ENABLE as ENABLE_ROW_TRACKING
from rowlake.errors import InvalidStatementError, UnsupportedFeatureError, shown
from rowlake.model.row_rules import RowRule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rowlake.delta.metadata import Metadata

FEATURE_PREFIX, SUPPORTED = "delta.feature.", "supported"
READER_VERSION, WRITER_VERSION = "delta.minReaderVersion", "delta.minWriterVersion"
# Listed by mirrors alone, so that nobody else writes them (`rowlake.delta.mirror`).
MIRROR_FEATURE = "rowlakeMirror"
CONSTRAINTS = "delta.constraints."
APPEND_ONLY = "delta.appendOnly"
CHANGE_FEED = "delta.enableChangeDataFeed"
IN_COMMIT_TIMES = "delta.enableInCommitTimestamps"
INVARIANTS = "delta.invariants"
DEFAULTS_FEATURE = "allowColumnDefaults"

# Features by the legacy writer version that implies them.
_LEGACY_WRITER = {
    "appendOnly": 2,
    "invariants": 2,
    "checkConstraints": 3,
    "changeDataFeed": 4,
    "generatedColumns": 4,
    "columnMapping": 5,
    "identityColumns": 6,
}
_READER_FEATURES = frozenset(
    {
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "typeWidening",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
# What a writer must know of a table that lists it, and rowlake does.
WRITE_FEATURES = frozenset(
    {
        *_LEGACY_WRITER,
        *_READER_FEATURES,
        DEFAULTS_FEATURE,
        "checkpointProtection",
        "clustering",
        "domainMetadata",
        "icebergCompatV1",
        "icebergCompatV2",
        "icebergCompatV3",
        "inCommitTimestamp",
        "rowTracking",
        "typeWidening-preview",
        "variantType",
        "variantType-preview",
    }
)
# Features that can be asked for, and the properties that do.
_BY_FLAG = {
    "delta.enableDeletionVectors": ("deletionVectors",),
    CHANGE_FEED: ("changeDataFeed",),
    APPEND_ONLY: ("appendOnly",),
    IN_COMMIT_TIMES: ("inCommitTimestamp",),
    ENABLE_ROW_TRACKING: ("rowTracking", "domainMetadata"),
    "delta.enableTypeWidening": ("typeWidening",),
}
_CREATED = WRITE_FEATURES - {
    "clustering",
    "icebergCompatV1",
    "icebergCompatV2",
    "icebergCompatV3",
    "variantType",
    "variantType-preview",
    "typeWidening-preview",
    "checkpointProtection",
}
# Properties that ask for more than rowlake writes.
_REFUSED_FLAGS = (
    "delta.enableIcebergCompatV1",
    "delta.enableIcebergCompatV2",
    "delta.enableIcebergCompatV3",
    "delta.enableMaterializePartitionColumns",
    "delta.enableVariantShredding",
)


@dataclass(frozen=True)
class Asked:
    """What properties ask of the protocol; `configuration` is what is left to be stored."""

    configuration: Mapping[str, str]
    features: frozenset[str]
    reader_version: int = 1
    writer_version: int = 2


def asked_of(properties: Mapping[str, str]) -> Asked:
    """Split properties into those of the protocol and those of the table."""
    kept: dict[str, str] = {}
    features: set[str] = set()
    versions = {READER_VERSION: 1, WRITER_VERSION: 2}
    for name, value in properties.items():
        if name.startswith(FEATURE_PREFIX):
            features.add(_supported(name.removeprefix(FEATURE_PREFIX), value))
        elif name in versions:
            versions[name] = _version(name, value)
        elif name.startswith(CONSTRAINTS):
            raise InvalidStatementError(
                f"Cannot set {name[:80]}: add a constraint with ALTER TABLE … ADD CONSTRAINT, "
                "which checks the rows that are there."
            )
        else:
            kept[name] = value
    return Asked(kept, frozenset(features), versions[READER_VERSION], versions[WRITER_VERSION])


def _supported(feature: str, value: str) -> str:
    if value.lower() not in ("supported", "enabled"):
        raise InvalidStatementError(
            f"Cannot set {FEATURE_PREFIX}{feature}={value[:40]}: expected supported."
        )
    if feature not in _CREATED:
        raise UnsupportedFeatureError(
            f"Cannot enable the table feature {feature[:80]}. "
            f"Supported: {', '.join(sorted(_CREATED))}."
        )
    return feature


def _version(name: str, value: str) -> int:
    most = FEATURES_READER if name == READER_VERSION else FEATURES_WRITER
    if not value.isdecimal() or not 1 <= int(value) <= most:
        raise InvalidStatementError(f"Cannot set {name}={value[:40]}: expected 1 to {most}.")
    return int(value)


def needed_features(schema: Mapping[str, Any], configuration: Mapping[str, str]) -> set[str]:
    """Return the features that a table's definition needs."""
    found: set[str] = set()
    for flag, features in _BY_FLAG.items():
        if str(configuration.get(flag, "false")).lower() == "true":
            found |= set(features)
    if mapping_mode(configuration) != "none":
        found.add("columnMapping")
    if any(name.startswith(CONSTRAINTS) for name in configuration):
        found.add("checkConstraints")
    if str(configuration.get("delta.checkpointPolicy", "classic")).lower() == "v2":
        found.add("v2Checkpoint")
    kinds = set(simple_types(schema))
    if "timestamp_ntz" in kinds:
        found.add("timestampNtz")
    for key, feature in ((GENERATED, "generatedColumns"), (IDENTITY, "identityColumns")):
        if any(key in (one.get("metadata") or {}) for one in schema["fields"]):
            found.add(feature)
    return found


def validate_defaults(schema: Mapping[str, Any], protocol: Protocol) -> None:
    """Refuse defaults of columns in a table that does not allow them: nobody asked for that."""
    named = [one["name"] for one in schema["fields"] if DEFAULT in (one.get("metadata") or {})]
    if named and DEFAULTS_FEATURE not in implied_features(protocol):
        raise InvalidStatementError(
            f"Cannot give column {named[0]} a default: the table must allow it. Set the property "
            f"{FEATURE_PREFIX}{DEFAULTS_FEATURE} to supported."
        )


def validate_asked(configuration: Mapping[str, str]) -> None:
    """Refuse properties that ask for what rowlake does not write."""
    for flag in _REFUSED_FLAGS:
        if str(configuration.get(flag, "false")).lower() == "true":
            raise UnsupportedFeatureError(f"Cannot set {flag}: rowlake does not write such tables.")


def protocol_for(
    features: set[str], before: Protocol | None = None, asked: Asked | None = None
) -> Protocol:
    """Return the lowest protocol that has these features beside those of the one before."""
    base = before or Protocol(1, 2)
    reader = max(base.reader_version, asked.reader_version if asked else 1)
    writer = max(base.writer_version, asked.writer_version if asked else 1)
    known = implied_features(base) | implied_features(Protocol(reader, writer))
    missing = features - known
    if not missing and writer < FEATURES_WRITER and reader < FEATURES_READER:
        return Protocol(reader, writer)
    legacy = _legacy_version(known | missing)
    if legacy is not None and writer < FEATURES_WRITER and reader < FEATURES_READER:
        has_mapping = "columnMapping" in known | missing
        return Protocol(max(reader, 2) if has_mapping else reader, max(writer, legacy))
    listed = sorted(known | missing)
    reading = [one for one in listed if one in _READER_FEATURES or one in base.reader_features]
    if set(reading) - {"columnMapping"}:
        reader = FEATURES_READER
    elif reading:
        reader = max(reader, 2)
    in_reader = tuple(reading) if reader == FEATURES_READER else ()
    return Protocol(reader, FEATURES_WRITER, in_reader, tuple(listed))


def _legacy_version(features: set[str]) -> int | None:
    """Return the writer version that implies exactly these features, as Delta on Spark finds it."""
    for version in sorted(set(_LEGACY_WRITER.values())):
        implied = {one for one, at in _LEGACY_WRITER.items() if at <= version}
        if implied == features:
            return version
    return None


def implied_features(protocol: Protocol) -> set[str]:
    """Return all features of a protocol: listed ones, and those that legacy versions imply."""
    found = {*protocol.reader_features, *protocol.writer_features}
    if protocol.writer_version < FEATURES_WRITER:
        found |= {one for one, at in _LEGACY_WRITER.items() if at <= protocol.writer_version}
    return found


def property_facts(protocol: Protocol) -> dict[str, str]:
    """Return versions and features as the properties that ask for them."""
    versions = {
        READER_VERSION: str(protocol.reader_version),
        WRITER_VERSION: str(protocol.writer_version),
    }
    return versions | {f"{FEATURE_PREFIX}{name}": SUPPORTED for name in protocol.features}


def validate_writable(protocol: Protocol, metadata: Metadata, table: str) -> None:
    """Refuse a table that asks of its writers what rowlake does not do."""
    validate_known(protocol, table)
    validate_asked(metadata.configuration)
    _validate_columns(metadata, table)


def validate_known(protocol: Protocol, table: str) -> None:
    """Refuse a table that lists a feature which its writers must know, and rowlake does not."""
    if protocol.writer_version > FEATURES_WRITER:
        raise UnsupportedFeatureError(
            f"Cannot write to {table}: its protocol asks for writer version "
            f"{protocol.writer_version} (supported: 1 to {FEATURES_WRITER})."
        )
    unknown = sorted(implied_features(protocol) - WRITE_FEATURES)
    if MIRROR_FEATURE in unknown:
        raise UnsupportedFeatureError(
            f"Cannot write to {table}: it is the mirror of a table of another format. Write to "
            "that one. Nothing was written."
        )
    if unknown:
        raise UnsupportedFeatureError(
            f"Cannot write to {table}: unsupported table feature {shown(unknown)}. "
            "Nothing was written."
        )


def rules_of(metadata: Metadata) -> tuple[RowRule, ...]:
    """Return what every row must satisfy: CHECK constraints, and invariants of columns."""
    checks = [
        RowRule(f"CHECK constraint {name.removeprefix(CONSTRAINTS)}", text)
        for name, text in metadata.configuration.items()
        if name.startswith(CONSTRAINTS)
    ]
    return (*checks, *_invariants(metadata))


def expressions_of(metadata: Metadata) -> Iterator[tuple[str, str]]:
    """Yield what reads columns of a table by their names, with the expression."""
    for rule in rules_of(metadata):
        yield rule.name, rule.text
    for one in metadata.schema["fields"]:
        text = (one.get("metadata") or {}).get(GENERATED)
        if text is not None:
            yield f"generated column {one['name']}", str(text)


def _invariants(metadata: Metadata) -> Iterator[RowRule]:
    for one in metadata.schema["fields"]:
        text = (one.get("metadata") or {}).get(INVARIANTS)
        if text is not None:
            yield RowRule(f"invariant of column {one['name']}", _expression_in(text))


def _expression_in(text: str) -> str:
    """Return the expression of an invariant; the text itself, which nobody can check, if odd."""
    try:
        return str(json.loads(text)["expression"]["expression"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return str(text)


def _validate_columns(metadata: Metadata, table: str) -> None:
    """Refuse columns whose values a writer must make or check by an expression."""
    wanted = {
        GENERATED: "a generated field",
        IDENTITY: "an identity field",
        DEFAULT: "a field with a default",
    }
    columns = {id(one) for one in metadata.schema["fields"]}
    for one in fields_in(metadata.schema):
        for key, what in wanted.items():
            if key in (one.get("metadata") or {}) and id(one) not in columns:
                raise UnsupportedFeatureError(
                    f"Cannot write to {table}: {one['name']} is {what}, which rowlake does not "
                    "write. Nothing was written."
                )
