"""How a table's rows are stored in files, where that is for its format to say.

A view carries one (`TableView.layout`), and tasks that write get it with their context. The default
is Iceberg's: columns under their own names with field ids, all of them in the files, vectors in
Puffin files, and everything else as table properties say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyroaring import BitMap64


@dataclass(frozen=True)
class PackedVectors:
    """The bytes of a file of deletion vectors, and (offset, length) of each vector in it."""

    data: bytes
    places: tuple[tuple[int, int], ...]


class VectorFiles(Protocol):
    """The files that a format keeps deletion vectors in; picklable, since tasks write them."""

    @property
    def file_format(self) -> str:
        """What `files_schema` calls them."""

    def name(self, operation_id: str) -> str:
        """Return a new file name that holds the mark of an operation (`operation_mark`)."""

    def pack(self, vectors: Sequence[tuple[str, BitMap64]]) -> PackedVectors:
        """Return a file of vectors: of each its data file and the deleted positions."""


@dataclass(frozen=True)
class FileLayout:
    """How files of a table are named, and what of its rows they hold.

    - `settings`: properties that hold whatever the table's own properties say;
    - `name_prefix`: what names of data files begin with;
    - `has_hive_folders`: partition folders are escaped as Hive escapes them;
    - `stored_names`: names of fields in files, by field id, where they are not the columns' own;
    - `unstored`: top-level columns (field ids) that files do not hold;
    - `ids`: the field ids that files carry; None: all;
    - `vectors`: the files of deletion vectors; None: Puffin;
    - `images_folder`: where files of changed rows are kept beside the table's; None: they are not.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    name_prefix: str = ""
    has_hive_folders: bool = False
    stored_names: Mapping[int, str] = field(default_factory=dict)
    unstored: frozenset[int] = frozenset()
    ids: frozenset[int] | None = None
    vectors: VectorFiles | None = None
    images_folder: str | None = None


DEFAULT_LAYOUT = FileLayout()


def operation_mark(operation_id: str) -> str:
    """Return what the names of all files of an operation hold: the first half of its UUID."""
    return operation_id[:18]
