"""Tables whose metadata names files of others, and folders of others to look after."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

OLD_SECONDS = 10 * 24 * 60 * 60


def make_victim(folder: Path) -> Path:
    """Make a folder with old files that look like those of a table."""
    names = ("data/a.parquet", "metadata/v1.metadata.json", "metadata/s.stats", "metadata/l.avro")
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"precious {name}".encode())
        os.utime(path, (time.time() - OLD_SECONDS,) * 2)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder with its bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def age(folder: Any) -> None:
    """Make every file below a folder old."""
    for path in Path(str(folder)).rglob("*"):
        os.utime(path, (time.time() - OLD_SECONDS,) * 2, follow_symlinks=False)


def edit(metadata_location: str, change: Any) -> None:
    """Change a metadata file where it is: `change` gets the JSON."""
    path = Path(metadata_location)
    raw = json.loads(path.read_text())
    change(raw)
    path.write_text(json.dumps(raw))


def statistics(snapshot_id: int, location: Path) -> dict[str, Any]:
    return {
        "snapshot-id": snapshot_id,
        "statistics-path": str(location),
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }
