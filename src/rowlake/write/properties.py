"""The table properties that control writing, read once and checked.

Comes in: a table's properties (Iceberg's names). Goes out: frozen options. A value that cannot be
understood raises `InvalidStatementError`; a missing one takes Iceberg's default.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rowlake.errors import InvalidStatementError
from rowlake.model.properties import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MB = 1024 * 1024
BLOOM_FPP = 0.01
PARQUET_CODECS = {
    "uncompressed": "NONE",
    "none": "NONE",
    "snappy": "SNAPPY",
    "gzip": "GZIP",
    "brotli": "BROTLI",
    "lz4": "LZ4",
    "lz4_raw": "LZ4",
    "zstd": "ZSTD",
}
ORC_CODECS = {
    "uncompressed": "uncompressed",
    "none": "uncompressed",
    "zlib": "zlib",
    "snappy": "snappy",
    "lz4": "lz4",
    "zstd": "zstd",
}
AVRO_CODECS = {
    "gzip": "deflate",
    "uncompressed": "null",
    "none": "null",
    "zstd": "zstandard",
    "snappy": "snappy",
}


@dataclass(frozen=True)
class BloomFilter:
    """How one column's Bloom filters are made; `ndv` None: the rows of the row group."""

    fpp: float = BLOOM_FPP
    ndv: int | None = None


@dataclass(frozen=True)
class ParquetOptions:
    """How Parquet files are written; columns are named by their dotted path."""

    codec: str = "ZSTD"
    level: int | None = None
    row_group_size_in_bytes: int = 128 * MB
    row_group_rows: int = 1024 * 1024
    page_size_in_bytes: int = MB
    page_rows: int = 20_000
    page_version: str = "1.0"
    dictionary_size_in_bytes: int = 2 * MB
    bloom_max_size_in_bytes: int = MB
    bloom: Mapping[str, BloomFilter] = field(default_factory=dict)
    dictionary: Mapping[str, bool] = field(default_factory=dict)
    statistics: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class OrcOptions:
    """How ORC files are written."""

    codec: str = "zlib"
    strategy: str = "speed"
    stripe_size_in_bytes: int = 64 * MB
    batch_size: int = 1024
    bloom_columns: tuple[str, ...] = ()
    bloom_fpp: float = 0.05


def parse_fraction(properties: Mapping[str, str], name: str, default: float) -> float:
    """Return a number between 0 and 1, both excluded."""
    return _parsed(properties, name, float, default, lambda value: 0 < value < 1, "between 0 and 1")


def parse_flag(properties: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Return true or false, case-insensitively."""
    text = str(properties.get(name, default)).strip().lower()
    if text not in ("true", "false"):
        raise _not_understood(name, properties[name], "true or false")
    return text == "true"


def parse_choice(
    properties: Mapping[str, str], name: str, choices: Mapping[str, str], default: str
) -> str:
    """Return the choice that the value names, case-insensitively."""
    text = properties.get(name, default)
    try:
        return choices[text.strip().lower()]
    except KeyError:
        raise _not_understood(name, text, f"one of {', '.join(choices)}") from None


def _parsed(
    properties: Mapping[str, str],
    name: str,
    parse: Callable[[str], float],
    default: float,
    accepts: Callable[[float], bool],
    expected: str,
) -> float:
    if name not in properties:
        return default
    try:
        value = parse(properties[name])
    except ValueError:
        raise _not_understood(name, properties[name], expected) from None
    if not accepts(value):
        raise _not_understood(name, properties[name], expected)
    return value


def _not_understood(name: str, value: str, expected: str) -> InvalidStatementError:
    return InvalidStatementError(
        f"Cannot write with table property {name}={value}: expected {expected}."
    )


def by_column(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the properties `<prefix><column>` by column."""
    return {
        name[len(prefix) :]: value for name, value in properties.items() if name.startswith(prefix)
    }


def parquet_options(properties: Mapping[str, str], *, deletes: bool = False) -> ParquetOptions:
    """Return the Parquet options; delete files take `write.delete.parquet.*` first."""
    found = _with_delete_properties(properties, "parquet") if deletes else properties
    start = "write.parquet."
    level = found.get(f"{start}compression-level")
    version = parse_choice(found, f"{start}page-version", {"v1": "1.0", "v2": "2.0"}, "v1")
    return ParquetOptions(
        codec=parse_choice(found, f"{start}compression-codec", PARQUET_CODECS, "zstd"),
        level=None
        if level is None
        else whole_number(found, f"{start}compression-level", 0, least=-(2**31), most=2**31 - 1),
        row_group_size_in_bytes=whole_number(
            found, f"{start}row-group-size-bytes", 128 * MB, least=1
        ),
        page_size_in_bytes=whole_number(found, f"{start}page-size-bytes", MB, least=1),
        page_rows=whole_number(found, f"{start}page-row-limit", 20_000, least=1),
        page_version=version,
        dictionary_size_in_bytes=whole_number(found, f"{start}dict-size-bytes", 2 * MB, least=1),
        bloom_max_size_in_bytes=whole_number(found, f"{start}bloom-filter-max-bytes", MB, least=1),
        bloom=_bloom_filters(found),
        dictionary=_flags(found, f"{start}dict-encoding-enabled.column."),
        statistics=_flags(found, f"{start}stats-enabled.column."),
    )


def _bloom_filters(properties: Mapping[str, str]) -> dict[str, BloomFilter]:
    start = "write.parquet.bloom-filter-"
    filters = {}
    for column, wanted in _flags(properties, f"{start}enabled.column.").items():
        if wanted:
            fpp = parse_fraction(properties, f"{start}fpp.column.{column}", BLOOM_FPP)
            name = f"{start}ndv.column.{column}"
            ndv = whole_number(properties, name, 1, least=1) if name in properties else None
            filters[column] = BloomFilter(fpp, ndv)
    return filters


def _flags(properties: Mapping[str, str], prefix: str) -> dict[str, bool]:
    return {
        column: parse_flag(properties, prefix + column, default=True)
        for column in by_column(properties, prefix)
    }


def orc_options(properties: Mapping[str, str], *, deletes: bool = False) -> OrcOptions:
    """Return the ORC options; delete files take `write.delete.orc.*` first."""
    found = _with_delete_properties(properties, "orc") if deletes else properties
    start = "write.orc."
    names = found.get(f"{start}bloom.filter.columns", "").split(",")
    strategies = {"speed": "speed", "compression": "compression"}
    return OrcOptions(
        codec=parse_choice(found, f"{start}compression-codec", ORC_CODECS, "zlib"),
        strategy=parse_choice(found, f"{start}compression-strategy", strategies, "speed"),
        stripe_size_in_bytes=whole_number(found, f"{start}stripe-size-bytes", 64 * MB, least=1),
        batch_size=whole_number(found, f"{start}vectorized.batch-size", 1024, least=1),
        bloom_columns=tuple(name.strip() for name in names if name.strip()),
        bloom_fpp=parse_fraction(found, f"{start}bloom.filter.fpp", 0.05),
    )


def _with_delete_properties(properties: Mapping[str, str], name: str) -> dict[str, str]:
    overrides = by_column(properties, f"write.delete.{name}.")
    return {**properties, **{f"write.{name}.{key}": value for key, value in overrides.items()}}
