"""`attach`: give a Spark session a lake, and take it away again."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowlake.attached import reading, statements, streams, writing
from rowlake.attached.owners import lake_target
from rowlake.connection import connect
from rowlake.engine.attachments import registry
from rowlake.engine.jobs import is_remote
from rowlake.errors import UnsupportedFeatureError
from rowlake.model.names import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rowlake.engine.attachments.drop_in import (
        MergeRequest,
        StreamRequest,
        TableFacts,
        WriteRequest,
    )
    from rowlake.lake import Lake


def attach(spark: Any = None, warehouse: str | None = None, catalog: Any = None) -> Lake:
    """Open a lake and put it behind Spark's own API, until `lake.detach()` or `lake.close()`.

    From then on `spark.sql`, `spark.table`, `spark.read`, `df.write`, `df.writeTo`,
    `df.mergeInto`, `spark.readStream` and `df.writeStream` work on lake tables; everything else is
    Spark's as before. Arguments are those of `connect`. A session has one lake: attaching another
    one takes the place of the first.
    """
    lake = connect(warehouse, catalog, spark)
    attachment = registry.attach(lake.spark, AttachedLake(lake))
    lake.on_detach(lambda: registry.detach(attachment))
    return lake


@dataclass(frozen=True)
class AttachedLake:
    """A lake, as `rowlake.engine.attachments` asks it; each verb names its module."""

    lake: Lake

    def sql(self, text: str, arguments: Any, frames: Mapping[str, Any]) -> Any:
        """Run a statement."""
        return statements.run(self.lake, text, arguments, frames)

    def table(self, name: str, options: Mapping[str, str]) -> Any | None:
        """Return a table as a DataFrame."""
        return reading.table(self.lake, name, options)

    def load(self, provider: str, path: str, options: Mapping[str, str]) -> Any | None:
        """Return what `spark.read.format(provider).load(path)` means."""
        return reading.load(self.lake, provider, path, options)

    def write(self, request: WriteRequest) -> bool:
        """Write rows."""
        return writing.write(self.lake, request)

    def has_table(self, name: str) -> bool:
        """Return whether a name means a table of the lake."""
        return lake_target(self.lake.workspace, name) is not None

    def merge(self, request: MergeRequest) -> None:
        """Run a MERGE."""
        writing.merge(self.lake, request)

    def read_stream(
        self, name: str, options: Mapping[str, str], provider: str | None = None
    ) -> Any | None:
        """Return a table as a streaming DataFrame."""
        return streams.read_stream(self.lake, name, options, provider)

    def write_stream(self, request: StreamRequest) -> Any | None:
        """Start a query into a table."""
        return streams.write_stream(self.lake, request)

    def for_batches(self, function: Callable[[Any, int], None]) -> Callable[[Any, int], None]:
        """Return a function of `foreachBatch` that finds the lake."""
        if not is_remote(self.lake.spark):
            return streams.Batches(function, _Here(self.lake))
        reopen = self.lake.engine.lake_opener
        if reopen is None:
            raise UnsupportedFeatureError(
                "Batches of Spark Connect run on the server, which cannot open this lake again."
            )
        return streams.Batches(function, _There(reopen))

    def facts(self, name: str) -> TableFacts | None:
        """Return what `spark.catalog` says of a table."""
        return reading.facts(self.lake, name)

    def table_facts(self, namespace: str | None) -> list[TableFacts] | None:
        """Return the tables of a namespace."""
        return reading.table_facts(self.lake, namespace)

    def namespaces(self) -> list[str]:
        """Return the names of all namespaces."""
        return reading.namespaces(self.lake)

    def use(self, namespace: str) -> bool:
        """Make a namespace the current one."""
        return reading.use(self.lake, namespace)

    @property
    def current_namespace(self) -> str:
        """The current namespace."""
        return quoted(self.lake.workspace.session.namespace)

    @property
    def catalog_name(self) -> str:
        """The name of the lake's catalog."""
        return str(self.lake.catalog.name)


@contextmanager
def _attached_for_a_while(lake: Lake, spark: Any) -> Iterator[None]:
    attachment = registry.attach(spark, AttachedLake(lake))
    try:
        yield
    finally:
        registry.detach(attachment)


@dataclass(frozen=True)
class _Here:
    """Attaches a lake of this process to another session."""

    lake: Lake

    def __call__(self, spark: Any) -> Any:
        return _attached_for_a_while(self.lake.in_session(spark), spark)


@dataclass(frozen=True)
class _There:
    """Opens a lake in another process and attaches it to a session there."""

    reopen: Callable[[Any], Lake]

    def __call__(self, spark: Any) -> Any:
        return _attached_for_a_while(self.reopen(spark), spark)
