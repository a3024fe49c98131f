"""`_last_checkpoint`: a hint to the newest checkpoint (PROTOCOL.md, "Last Checkpoint File").

Readers may ignore it, and must not trust it; its checksum tells them a torn file.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rowlake.delta.commit_file import json_text
from rowlake.delta.log_files import LOG_FOLDER
from rowlake.errors import StorageError
from rowlake.storage.locations import join

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rowlake.storage.files import Storage

NAME = "_last_checkpoint"
CHECKSUM = "checksum"


def write_last_checkpoint(folder: str, fields: Mapping[str, Any], storage: Storage) -> None:
    """Write the hint, unless there is one to a newer checkpoint."""
    location = join(folder, LOG_FOLDER, NAME)
    if _version(location, storage) > fields["version"]:
        return
    content = json_text({**fields, CHECKSUM: checksum_of(fields)})
    # Hadoop keeps checksums of local files beside them, and refuses a file that does not fit.
    storage.delete([join(folder, LOG_FOLDER, f".{NAME}.crc")])
    storage.write(location, content.encode())


def _version(location: str, storage: Storage) -> int:
    try:
        found = json.loads(storage.read(location)).get("version")
    except (StorageError, ValueError, AttributeError, RecursionError):
        return -1
    return found if isinstance(found, int) else -1


def checksum_of(fields: Mapping[str, Any]) -> str:
    """Return the MD5 of the canonical form (PROTOCOL.md, "JSON checksum")."""
    plain = {name: one for name, one in fields.items() if name != CHECKSUM}
    return hashlib.md5(canonical(plain).encode(), usedforsecurity=False).hexdigest()


def canonical(value: Any) -> str:
    """Return the canonical form of a JSON value: each leaf after its path, sorted by paths."""
    pairs = sorted(_leaves(value, ""), key=lambda one: one[0].encode())
    return ",".join(f"{path}={text}" if path else text for path, text in pairs)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _leaves(one, _below(path, _quoted(name)))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _leaves(one, _below(path, str(index)))
    else:
        yield path, _quoted(value) if isinstance(value, str) else json.dumps(value)


def _below(path: str, name: str) -> str:
    return f"{path}+{name}" if path else name


def _quoted(text: str) -> str:
    return f'"{quote(text, safe="-._~")}"'
