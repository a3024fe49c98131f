"""Clustered tables: the columns that OPTIMIZE clusters files by (PROTOCOL.md, "Clustered Table").

The domain `delta.clustering` names them by physical names. Files that were clustered say so by
their provider and, in a tag, by which columns: after another CLUSTER BY they are clustered again.
To the rooms above, a clustered file is one that is written in the order `CLUSTERED`.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

import pyarrow.types as pt

from rowlake.delta.commit_file import json_text
from rowlake.delta.stats_writer import stats_columns_of
from rowlake.errors import InvalidStatementError
from rowlake.model.schema import field_id
from rowlake.prune.bind import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from rowlake.delta.schema import TableColumns

    Path = tuple[str, ...]

DOMAIN = "delta.clustering"
FEATURES = frozenset({"clustering", "domainMetadata"})
PROVIDER = "liquid"
COLUMNS_TAG, CUBE_TAG = "ZCUBE_ZORDER_BY", "ZCUBE_ID"
MOST_COLUMNS = 4


def clustering_paths(domains: Mapping[str, str]) -> list[Path]:
    """Return the columns by their physical names; none where a table has none."""
    try:
        found = json.loads(domains.get(DOMAIN, "{}")).get("clusteringColumns") or []
        return [(one,) if isinstance(one, str) else tuple(map(str, one)) for one in found]
    except (ValueError, TypeError, AttributeError):
        return []


def clustered_ids(domains: Mapping[str, str], columns: TableColumns) -> tuple[int, ...]:
    """Return the columns by their field ids."""
    by_path = {path: number for number, path in columns.physical.items()}
    found = (by_path.get(path) for path in clustering_paths(domains))
    return tuple(one for one in found if one is not None)


def clustering_names(domains: Mapping[str, str], columns: TableColumns) -> list[str]:
    """Return the columns by the names that users know, dotted."""
    return [".".join(columns.schema.paths[one]) for one in clustered_ids(domains, columns)]


def domain_text(paths: Sequence[Path]) -> str:
    """Return the domain of clustering by columns (physical names); none: files are not."""
    body = {"clusteringColumns": [list(one) for one in paths], "domainName": DOMAIN}
    return json_text(body)


def file_tags(domains: Mapping[str, str]) -> dict[str, str]:
    """Return the tags of files that are clustered together."""
    return {CUBE_TAG: str(uuid.uuid4()), COLUMNS_TAG: columns_text(domains)}


def columns_text(domains: Mapping[str, str]) -> str:
    """Return the columns as tags of files name them."""
    return json_text([".".join(one) for one in clustering_paths(domains)])


def physical_paths(
    wanted: Sequence[Path], columns: TableColumns, properties: Mapping[str, str]
) -> list[Path]:
    """Return the physical names of columns that a table is to be clustered by.

    Raises InvalidStatementError for columns that files cannot be clustered by: OPTIMIZE and readers
    need their statistics.
    """
    if wanted and columns.spec.fields:
        raise InvalidStatementError(
            "Cannot cluster a partitioned table: CLUSTER BY and PARTITIONED BY exclude each other."
        )
    if len(wanted) > MOST_COLUMNS:
        raise InvalidStatementError(f"Cannot cluster by more than {MOST_COLUMNS} columns.")
    with_stats = set(stats_columns_of(columns, properties).ids)
    found: list[Path] = []
    for path in wanted:
        field = resolve(path, columns.schema)
        number, name = field_id(field) or 0, ".".join(path)
        if not _is_orderable(field.type):
            raise InvalidStatementError(
                f"Cannot cluster by {name}: a column of type {field.type} has no statistics."
            )
        if number not in with_stats:
            raise InvalidStatementError(
                f"Cannot cluster by {name}: the table keeps no statistics of it. Name it in "
                "delta.dataSkippingStatsColumns, or raise delta.dataSkippingNumIndexedCols."
            )
        if columns.physical[number] in found:
            raise InvalidStatementError(f"Column {name} is there twice in CLUSTER BY.")
        found.append(columns.physical[number])
    return found


def _is_orderable(kind: pa.DataType) -> bool:
    checks = (pt.is_integer, pt.is_floating, pt.is_decimal, pt.is_temporal, pt.is_string)
    return any(check(kind) for check in checks)
