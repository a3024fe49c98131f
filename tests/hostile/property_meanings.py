"""Table properties of others: what they say is no order, least of all to load code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.hostile.metadata_meanings import EITHER, PLACES, Metadata
from tests.hostile.mutation import Mutation, nested

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hostile.scene import Scene

NUMBERS = ("-1", "0", "x", "", "9" * 400, "1e9", "99999999999")
NUMERIC = (
    "write.target-file-size-bytes",
    "write.parquet.row-group-size-bytes",
    "write.parquet.page-size-bytes",
    "write.parquet.dict-size-bytes",
    "write.parquet.compression-level",
    "write.orc.stripe-size-bytes",
    "write.delete.target-file-size-bytes",
    "write.metadata.previous-versions-max",
    "write.metadata.metrics.max-inferred-column-defaults",
    "commit.retry.num-retries",
    "commit.retry.min-wait-ms",
    "commit.retry.total-timeout-ms",
    "commit.manifest.target-size-bytes",
    "commit.manifest.min-count-to-merge",
    "history.expire.max-snapshot-age-ms",
    "history.expire.min-snapshots-to-keep",
    "history.expire.max-ref-age-ms",
    "read.split.target-size",
    "read.split.open-file-cost",
)
CHOICES = (
    "write.format.default",
    "write.delete.format.default",
    "write.metadata.compression-codec",
    "write.parquet.compression-codec",
    "write.avro.compression-codec",
    "write.orc.compression-codec",
    "write.distribution-mode",
    "write.delete.mode",
    "write.update.isolation-level",
    "write.delete.granularity",
    "write.metadata.metrics.default",
    "write.metadata.metrics.column.note",
    "write.metadata.delete-after-commit.enabled",
    "write.object-storage.enabled",
    "gc.enabled",
)
PATHS = ("write.data.path", "write.metadata.path", "write.object-storage.path")
CODE = (
    "py-io-impl",
    "write.py-location-provider.impl",
    "write.location-provider.impl",
    "py-catalog-impl",
    "io-impl",
)
MAPPINGS = {
    "no JSON": "{",
    "of another shape": "5",
    "deep": nested('[{"field-id": 1, "names": ["a"], "fields": ', "}]", 3000, "[]"),
    "deep lists": nested("[", "]", 100_000, ""),
}


def _made(key: str, told: str, value: Callable[[Scene], Any]) -> Mutation:
    def apply(scene: Scene) -> None:
        def edit(metadata: Metadata) -> None:
            metadata.setdefault("properties", {})[key] = value(scene)

        scene.edit_metadata(edit)

    return Mutation(f"property {key} is {told}", "metadata", EITHER, apply)


def _of(key: str, value: Any) -> Mutation:
    return _made(key, repr(value)[:30], lambda scene: value)


MUTATIONS = [
    *(_of(key, value) for key in NUMERIC for value in NUMBERS),
    *(_of(key, value) for key in CHOICES for value in ("odd", "", "none", "a\0b", "\ud800")),
    *(_made(key, name, place) for key in PATHS for name, place in PLACES.items()),
    *(_of(key, "os.system") for key in CODE),
    *(_of(key, "tests.hostile.planted.Planted") for key in CODE),
    *(
        _made("schema.name-mapping.default", name, lambda scene, text=text: text)
        for name, text in MAPPINGS.items()
    ),
    *(_of("x", value) for value in (None, 5, 1.5, True, [1], {"a": "b"}, "x" * 1_000_000)),
]
