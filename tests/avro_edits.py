"""Manifests and manifest lists of a table, changed in place: what a hostile writer could store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro

from rowlake.iceberg.cache import default_cache

if TYPE_CHECKING:
    from collections.abc import Callable

    Rows = list[dict[str, Any]]

_OWN = ("avro.schema", "avro.codec")


def edit_avro(
    path: str, change: Callable[[Rows], Rows | None], header: dict[str, str] | None = None
) -> None:
    """Rewrite an Avro file with the rows that `change` returns, or changed in place."""
    with Path(path).open("rb") as stream:
        reader = fastavro.reader(stream)
        rows, schema = list(reader), reader.writer_schema
        metadata = {key: text for key, text in reader.metadata.items() if key not in _OWN}
    metadata |= header or {}
    changed = change(rows)
    with Path(path).open("wb") as stream:
        fastavro.writer(stream, schema, rows if changed is None else changed, metadata=metadata)
    default_cache().clear()


def manifest_list_of(table) -> str:
    return str(table.snapshots()[-1].manifest_list)


def edit_list(table, change: Callable[[Rows], Rows | None]) -> str:
    """Change the manifest list of a table's newest snapshot; return its location."""
    location = manifest_list_of(table)
    edit_avro(location, change)
    return location


def edit_manifests(
    table, change: Callable[[Rows], Rows | None], header: dict[str, str] | None = None
) -> list[str]:
    """Change each manifest of a table's newest snapshot; lengths in the list stay right."""
    paths: list[str] = []

    def adjust(rows: Rows) -> None:
        for row in rows:
            paths.append(row["manifest_path"])
            edit_avro(row["manifest_path"], change, header)
            row["manifest_length"] = Path(row["manifest_path"]).stat().st_size

    edit_list(table, adjust)
    return paths


def edit_files(table, **values: Any) -> list[str]:
    """Set fields of every entry's data file in the manifests of a table's newest snapshot."""

    def change(rows: Rows) -> None:
        for row in rows:
            row["data_file"].update(values)

    return edit_manifests(table, change)


def edit_headers(table, header: dict[str, str]) -> list[str]:
    """Set texts in the headers of the manifests of a table's newest snapshot."""
    return edit_manifests(table, lambda rows: rows, header)
