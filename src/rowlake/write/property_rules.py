"""Which table properties can be set: not those that Iceberg reserves, and no malformed values.

A malformed value would make every later write fail, or be taken for a default; so it is refused
where it is set. Names that nobody knows pass: tables carry properties of other tools.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rowlake.errors import InvalidStatementError
from rowlake.model.properties import MOST, whole_number
from rowlake.write.metrics_modes import PREFIX as METRICS
from rowlake.write.metrics_modes import parse_mode
from rowlake.write.properties import (
    AVRO_CODECS,
    ORC_CODECS,
    PARQUET_CODECS,
    parse_choice,
    parse_flag,
    parse_fraction,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Rule = Callable[[Mapping[str, str], str], object]

_BY_METADATA = "Iceberg derives it from the table's metadata"
_RESERVED = {
    "sort-order": "change it with ALTER TABLE … WRITE ORDERED BY",
    "identifier-fields": "change it with ALTER TABLE … SET IDENTIFIER FIELDS",
    "location": "give it as LOCATION when the table is created",
    "provider": "give it as USING when the table is created",
    "format": "set write.format.default instead",
    "table_type": _BY_METADATA,
    "uuid": _BY_METADATA,
    "snapshot-count": _BY_METADATA,
    "current-snapshot-id": _BY_METADATA,
    "current-snapshot-summary": _BY_METADATA,
    "current-snapshot-timestamp-ms": _BY_METADATA,
    "current-schema": _BY_METADATA,
    "default-partition-spec": _BY_METADATA,
    "default-sort-order": _BY_METADATA,
}
_VERBS = ("delete", "update", "merge")
_INT = 2**31 - 1


def _number(least: int = 0, most: int = MOST) -> Rule:
    return lambda properties, name: whole_number(properties, name, 0, least=least, most=most)


def _one_of(*choices: str) -> Rule:
    known = {choice: choice for choice in choices}
    return lambda properties, name: parse_choice(properties, name, known, "")


_FLAG: Rule = partial(parse_flag, default=False)
_SIZE = _number(least=1)
_FILES = _one_of("parquet", "orc", "avro")
_DISTRIBUTION = _one_of("none", "hash", "range")


_WAITS = ("num-retries", "min-wait-ms", "max-wait-ms", "total-timeout-ms")
_SIZES = (
    "write.target-file-size-bytes",
    "write.delete.target-file-size-bytes",
    "write.spark.advisory-partition-size-bytes",
    "read.split.target-size",
    "read.split.metadata-target-size",
    "read.split.planning-lookback",
    "read.split.open-file-cost",
    "read.parquet.vectorization.batch-size",
    "read.orc.vectorization.batch-size",
    "commit.manifest.target-size-bytes",
)
_COUNTS = (
    "commit.manifest.min-count-to-merge",
    "history.expire.min-snapshots-to-keep",
    "history.expire.max-snapshot-age-ms",
    "history.expire.max-ref-age-ms",
    "write.metadata.metrics.max-inferred-column-defaults",
    "write.summary.partition-limit",
)
_FLAGS = (
    "commit.manifest-merge.enabled",
    "compatibility.snapshot-id-inheritance.enabled",
    "gc.enabled",
    "read.split.adaptive-size.enabled",
    "read.parquet.vectorization.enabled",
    "read.orc.vectorization.enabled",
    "write.metadata.delete-after-commit.enabled",
    "write.object-storage.enabled",
    "write.object-storage.partitioned-paths",
    "write.spark.accept-any-schema",
    "write.spark.auto-schema-evolution.enabled",
    "write.spark.fanout.enabled",
    "write.wap.enabled",
)


def _rules() -> dict[str, Rule]:
    """Return a rule for each known property."""
    return (
        {f"commit.retry.{one}": _number(most=_INT) for one in _WAITS}
        | {f"commit.status-check.{one}": _number() for one in _WAITS}
        | dict.fromkeys(_SIZES, _SIZE)
        | dict.fromkeys(_COUNTS, _number())
        | dict.fromkeys(_FLAGS, _FLAG)
        | {"write.metadata.previous-versions-max": _number(least=-_INT, most=_INT)}
        | _choices()
        | _file_rules("write.")
        | _file_rules("write.delete.")
    )


def _choices() -> dict[str, Rule]:
    modes = _one_of("auto", "copy-on-write", "merge-on-read")
    found = {
        "write.format.default": _FILES,
        "write.delete.format.default": _FILES,
        "write.distribution-mode": _DISTRIBUTION,
        "write.delete.granularity": _one_of("file", "partition"),
        "write.metadata.compression-codec": _one_of("none", "gzip"),
    }
    found |= {f"write.{verb}.mode": modes for verb in _VERBS}
    found |= {f"write.{verb}.distribution-mode": _DISTRIBUTION for verb in _VERBS}
    isolation = _one_of("serializable", "snapshot")
    return found | {f"write.{verb}.isolation-level": isolation for verb in _VERBS}


def _file_rules(start: str) -> dict[str, Rule]:
    """Return the rules of how files are written, of data or (`write.delete.`) of deletes."""
    sizes = (
        *("parquet.row-group-size-bytes", "parquet.page-size-bytes", "parquet.page-row-limit"),
        *("parquet.dict-size-bytes", "parquet.bloom-filter-max-bytes"),
        *("orc.stripe-size-bytes", "orc.block-size-bytes", "orc.vectorized.batch-size"),
    )
    level = _number(least=-(2**31), most=_INT)
    return {f"{start}{name}": _SIZE for name in sizes} | {
        f"{start}parquet.compression-codec": _one_of(*PARQUET_CODECS),
        f"{start}parquet.compression-level": level,
        f"{start}parquet.page-version": _one_of("v1", "v2"),
        f"{start}orc.compression-codec": _one_of(*ORC_CODECS),
        f"{start}orc.compression-strategy": _one_of("speed", "compression"),
        f"{start}orc.bloom.filter.fpp": partial(parse_fraction, default=0.5),
        f"{start}avro.compression-codec": _one_of(*AVRO_CODECS),
        f"{start}avro.compression-level": level,
    }


_RULES = _rules()
_BY_COLUMN: dict[str, Rule] = {
    f"{METRICS}column.": lambda properties, name: parse_mode(properties[name], name),
    "write.parquet.bloom-filter-enabled.column.": _FLAG,
    "write.parquet.bloom-filter-fpp.column.": partial(parse_fraction, default=0.5),
    "write.parquet.bloom-filter-ndv.column.": _SIZE,
    "write.parquet.dict-encoding-enabled.column.": _FLAG,
    "write.parquet.stats-enabled.column.": _FLAG,
}


def known_properties() -> list[tuple[str, str]]:
    """Return the properties whose values are checked, with what they take, for the docs."""
    named = {**_RULES, f"{METRICS}default": _BY_COLUMN[f"{METRICS}column."]}
    named |= {f"{start}<column>": rule for start, rule in _BY_COLUMN.items()}
    return [(name, _kind(name, rule)) for name, rule in sorted(named.items())]


def _kind(name: str, rule: Rule) -> str:
    """Return what a rule takes, as it says itself when it refuses a value."""
    try:
        rule({name: "?"}, name)
    except InvalidStatementError as error:
        _, expected, words = str(error).partition("expected ")
        return words.partition(". ")[0].rstrip(".") if expected else "see the message"
    return "text"


def validate_settable(properties: Mapping[str, str]) -> None:
    """Refuse reserved properties, and values that no reader or writer understands."""
    given = {str(key): str(value) for key, value in properties.items()}
    _refuse_reserved(given, "set")
    for name in given:
        rule = _rule_for(name)
        if rule is not None:
            rule(given, name)


def validate_unsettable(names: Iterable[str]) -> None:
    """Refuse to remove properties that are not stored as such."""
    given = list(map(str, names))
    _refuse_reserved(given, "unset")
    if "format-version" in given:
        raise InvalidStatementError(
            "Cannot unset the table property format-version: a table always has a version."
        )


def _rule_for(name: str) -> Rule | None:
    if name == f"{METRICS}default":
        return lambda properties, name: parse_mode(properties[name], name)
    found = _RULES.get(name)
    if found is not None:
        return found
    return next((rule for start, rule in _BY_COLUMN.items() if name.startswith(start)), None)


def _refuse_reserved(names: Iterable[str], verb: str) -> None:
    for name in names:
        if name.lower() in _RESERVED:
            raise InvalidStatementError(
                f"Cannot {verb} the table property {name}: the name is reserved; "
                f"{_RESERVED[name.lower()]}."
            )
