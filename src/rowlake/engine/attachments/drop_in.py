"""What a lake does for an attached session, and the requests that it gets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from rowlake.secrets import redacted_repr

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@dataclass
class WriteRequest:
    """A write, as a writer of PySpark is told about it, step by step.

    `verb` is the method that ends it. `partitioned_by` has texts: names and transforms.
    """

    frame: Any
    name: str = ""
    verb: str = ""
    mode: str | None = None
    provider: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    partitioned_by: tuple[str, ...] = ()
    condition: str | None = None
    other: set[str] = field(default_factory=set)

    __repr__ = redacted_repr


@dataclass
class StreamRequest:
    """A streaming query into a table."""

    frame: Any
    name: str = ""
    output_mode: str | None = None
    provider: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    partitioned_by: tuple[str, ...] = ()
    query_name: str | None = None
    trigger: dict[str, Any] | None = None
    other: set[str] = field(default_factory=set)

    __repr__ = redacted_repr


@dataclass(frozen=True)
class MergeAction:
    """A clause of `mergeInto`: texts, and None for the assignments of all columns."""

    when: str
    action: str
    condition: str | None
    assignments: Mapping[str, str] | None = None


@dataclass(frozen=True)
class MergeRequest:
    """A MERGE; columns of `frame` are written with its alias."""

    frame: Any
    name: str
    alias: str
    on: str
    actions: tuple[MergeAction, ...]
    schema_evolution: bool


class DropIn(Protocol):
    """A lake, as entry points of an attached session see it. None (False): it is not the lake's."""

    def sql(self, text: str, arguments: Any, frames: Mapping[str, Any]) -> Any:
        """Run a statement, in which the (quoted) keys of `frames` stand for DataFrames."""

    def table(self, name: str, options: Mapping[str, str]) -> Any | None:
        """Return a table, or a view over tables, as a DataFrame."""

    def load(self, provider: str, path: str, options: Mapping[str, str]) -> Any | None:
        """Return what `spark.read.format(provider).load(path)` means."""

    def write(self, request: WriteRequest) -> bool:
        """Write rows; return whether that was the lake's to do."""

    def has_table(self, name: str) -> bool:
        """Return whether a name means a table of the lake."""

    def merge(self, request: MergeRequest) -> None:
        """Run a MERGE into a table of the lake."""

    def read_stream(
        self, name: str, options: Mapping[str, str], provider: str | None = None
    ) -> Any | None:
        """Return a table as a streaming DataFrame."""

    def write_stream(self, request: StreamRequest) -> Any | None:
        """Start a query into a table."""

    def for_batches(self, function: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
        """Return a function of `foreachBatch` that finds the lake in the session of its batches."""

    def facts(self, name: str) -> TableFacts | None:
        """Return what `spark.catalog` says of a table."""

    def table_facts(self, namespace: str | None) -> list[TableFacts] | None:
        """Return the tables of a namespace, the current one where none is named."""

    def namespaces(self) -> list[str]:
        """Return the names of all namespaces."""

    def use(self, namespace: str) -> bool:
        """Make a namespace the current one; return whether it is the lake's."""

    @property
    def current_namespace(self) -> str:
        """The current namespace."""

    @property
    def catalog_name(self) -> str:
        """The name of the lake's catalog."""


@dataclass(frozen=True)
class TableFacts:
    """A table, as `spark.catalog` shows it; `schema` is Spark's."""

    name: str
    namespace: tuple[str, ...]
    description: str | None = None
    schema: Any = None
    partition_columns: Sequence[str] = ()
