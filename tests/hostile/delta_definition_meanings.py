"""Actions of a Delta log that are not of files: what a table is, who wrote it, and what changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.hostile.delta_commit_meanings import DEEP, HUGE
from tests.hostile.delta_commits import ANY, EITHER, REFUSED, SAME, drop, made, put, values
from tests.hostile.mutation import LOCATIONS, NUMBERS, nested
from tests.hostile.property_meanings import CODE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hostile.scene import Scene
    from tests.hostile.tables import AnyLayout

# --- the schema


def _schema(change: Callable[[Any], Any]) -> Callable[[Any, Scene], None]:
    """Return an edit of the parsed schema: changed in place, or something else returned."""

    def edit(action: Any, scene: Scene) -> None:
        held = json.loads(action["schemaString"])
        instead = change(held)
        action["schemaString"] = json.dumps(held if instead is None else instead)

    return edit


def _field(**changed: Any) -> Callable[[Any, Scene], None]:
    return _schema(lambda held: held["fields"][4].update(changed))  # `note`


def _below(depth: int) -> Any:
    """Return a type of so many lists, one in the other."""
    kind: Any = "string"
    for _ in range(depth):
        kind = {"type": "array", "elementType": kind, "containsNull": True}
    return kind


def _metadata_of_field(**changed: Any) -> Callable[[Any, Scene], None]:
    return _schema(lambda held: held["fields"][4]["metadata"].update(changed))


def _is_mapped(layout: AnyLayout) -> bool:
    return "delta.columnMapping.mode" in getattr(layout, "properties", {})


def _is_plain(layout: AnyLayout) -> bool:
    return not _is_mapped(layout)


TEXTS = {
    "nothing": "",
    "no JSON": "{",
    "null": "null",
    "a list": "[]",
    "an object": "{}",
    "a number": "5",
    "a type": '"long"',
    "nested too deep": nested("[", "]", DEEP),
    "objects nested too deep": nested('{"type":', "}", DEEP),
    "no fields": '{"type": "struct"}',
    "fields that are null": '{"type": "struct", "fields": null}',
    "fields that are numbers": '{"type": "struct", "fields": [1, 2]}',
}
ODD_TYPES = (
    "odd",
    "",
    "decimal(99,99)",
    "decimal(-1,5)",
    "decimal(9",
    "varchar",
    5,
    None,
    [],
    {},
    True,
)
SCHEMA = [
    *(
        made("metaData", f"schema is {name}", REFUSED, put(("schemaString",), text))
        for name, text in TEXTS.items()
    ),
    *values("metaData", ("schemaString",), REFUSED, None, 5, [], {}, "x" * 1_000_000),
    *(made("metaData", f"a type is {kind!r}", REFUSED, _field(type=kind)) for kind in ODD_TYPES),
    *(
        made("metaData", f"lists {depth} deep", REFUSED, _field(type=_below(depth)))
        for depth in (60, 400)
    ),
    *(
        made("metaData", f"a name is {name!r:.20}", REFUSED, _field(name=name))
        for name in (None, 5, [], "id")
    ),
    *(
        made("metaData", f"a name is {name!r:.20}", ANY, _field(name=name))
        for name in ("", "ID", "x" * 100_000, "a\0b", "\ud800", "../x")
    ),
    *(
        made("metaData", f"nullable is {value!r}", EITHER, _field(nullable=value))
        for value in (None, "x", 5, [])
    ),
    *(
        made("metaData", f"metadata is {value!r}", EITHER, _field(metadata=value), suits=_is_plain)
        for value in (None, "x", 5, [])
    ),
    *(
        made(
            "metaData", f"metadata is {value!r}", REFUSED, _field(metadata=value), suits=_is_mapped
        )
        for value in (None, "x", 5, [], {})
    ),
    made(
        "metaData",
        "a field without a type",
        REFUSED,
        _schema(lambda held: held["fields"][4].__delitem__("type")),
    ),
    made(
        "metaData", "the type of a struct has no fields", REFUSED, _field(type={"type": "struct"})
    ),
    made(
        "metaData",
        "fields twice",
        REFUSED,
        _schema(lambda held: held["fields"].extend(held["fields"])),
    ),
    made("metaData", "no columns", ANY, _schema(lambda held: held["fields"].clear())),
    made("metaData", "a column less", ANY, _schema(lambda held: held["fields"].__delitem__(-1))),
    made("metaData", "a column of another type", ANY, _field(type="long")),
    made(
        "metaData",
        "1,000 columns more",
        ANY,
        _schema(
            lambda held: held["fields"].extend(
                {**held["fields"][4], "name": f"n{n}"} for n in range(1_000)
            )
        ),
        suits=_is_plain,
    ),
    *(
        made(
            "metaData",
            f"{key} of a field is {value!r:.20}",
            ANY,
            _metadata_of_field(**{key: value}),
            suits=_is_mapped,
        )
        for key in ("delta.columnMapping.id", "delta.columnMapping.physicalName")
        for value in (None, 1, -1, 2**63, "x", "../../x", [], "")
    ),
    *(
        made(
            "metaData",
            f"{key} of a field is {value!r:.20}",
            EITHER,
            _metadata_of_field(**{key: value}),
        )
        for key in (
            "CURRENT_DEFAULT",
            "delta.generationExpression",
            "delta.invariants",
            "delta.identity.start",
            "delta.typeChanges",
            "comment",
            "__CHAR_VARCHAR_TYPE_STRING",
        )
        for value in (5, [], "x(", "sleep(100)", nested("(", ")", 3000))
    ),
]


# --- the rest of the definition


def _property(key: str, value: Any) -> Callable[[Any, Scene], None]:
    def edit(action: Any, scene: Scene) -> None:
        action["configuration"][key] = value

    return edit


PROPERTIES = {
    "delta.columnMapping.mode": ("odd", "", "none", "id", "name", 5),
    "delta.columnMapping.maxColumnId": ("x", "-1", "9" * 400, ""),
    "delta.enableDeletionVectors": ("x", "false", ""),
    "delta.checkpointInterval": ("0", "-1", "x", "1", "9" * 400, "²"),
    "delta.checkpointPolicy": ("odd", "", "v2"),
    "delta.logRetentionDuration": (
        "odd",
        "",
        "interval -1 days",
        "interval 9999999999999 days",
        "0",
    ),
    "delta.deletedFileRetentionDuration": ("odd", "", "interval -1 days", "interval 0 seconds"),
    "delta.setTransactionRetentionDuration": ("odd", "interval -5 hours"),
    "delta.enableExpiredLogCleanup": ("x", "true"),
    "delta.dataSkippingNumIndexedCols": ("x", "-2", "9" * 400),
    "delta.dataSkippingStatsColumns": ("x", "`", "a.b.c", ",,,", "x" * 100_000),
    "delta.appendOnly": ("x", "true"),
    "delta.enableChangeDataFeed": ("x", "true"),
    "delta.enableInCommitTimestamps": ("x", "true"),
    "delta.inCommitTimestampEnablementVersion": ("x", "-1", "9" * 400),
    "delta.enableRowTracking": ("x", "true"),
    "delta.compatibility.symlinkFormatManifest.enabled": ("x", "true"),
    "delta.constraints.c": ("", "x(", "id > 0", "sleep(100)", nested("(", ")", 3000)),
    "delta.targetFileSize": ("x", "-1", "9" * 400),
    "delta.randomPrefixLength": ("x", "-1", "9" * 400),
    "write.target-file-size-bytes": ("x", "-1", "9" * 400),
    "write.parquet.compression-codec": ("odd", ""),
}
DEFINITION = [
    *(
        made("metaData", f"is {value!r}", EITHER, lambda action, scene, value=value: value)
        for value in (5, "x", [])
    ),
    made("metaData", "is empty", REFUSED, lambda action, scene: {}),
    *(made("metaData", f"no {key}", REFUSED, drop(key)) for key in ("id", "schemaString")),
    *(
        made("metaData", f"no {key}", ANY, drop(key))
        for key in ("partitionColumns", "format", "configuration")
    ),
    *values("metaData", ("id",), EITHER, None, 5, [], "", "x" * 1_000_000),
    *values("metaData", ("format",), EITHER, None, {}, {"provider": None}),
    *values("metaData", ("format",), REFUSED, 5, "x", [1], {"provider": "orc"}, {"provider": 5}),
    *values("metaData", ("createdTime",), EITHER, None, "x", 1.5, [], HUGE, *NUMBERS),
    *values("metaData", ("name",), EITHER, 5, [], "x" * 1_000_000, "a\0b"),
    *values("metaData", ("description",), EITHER, 5, [], "x" * 1_000_000, "a\x1b[2Jb"),
    *values(
        "metaData",
        ("partitionColumns",),
        REFUSED,
        ["odd"],
        [5],
        "odd",
        5,
        ["id", "id"],
        ["tags"],
        ["place"],
    ),
    *values("metaData", ("partitionColumns",), ANY, None, [], ["sold_on"]),
    *values("metaData", ("configuration",), REFUSED, 5, "x", [1]),
    *(
        made(
            "metaData",
            f"{key} is {value!r:.20}",
            ANY if "columnMapping" in key else EITHER,
            _property(key, value),
        )
        for key, several in PROPERTIES.items()
        for value in several
    ),
    *(
        made(
            "metaData", f"{key} names code", EITHER, _property(key, "tests.hostile.planted.Planted")
        )
        for key in CODE
    ),
]


# --- the protocol

_VERSIONS = (None, -1, 0, 99, 2**31, HUGE, "x", "3", 1.5, [], True)
PROTOCOL = [
    *(
        made("protocol", f"is {value!r}", EITHER, lambda action, scene, value=value: value)
        for value in (5, "x", [])
    ),
    made("protocol", "is empty", REFUSED, lambda action, scene: {}),
    *values("protocol", ("minReaderVersion",), EITHER, *_VERSIONS),
    *values("protocol", ("minReaderVersion",), REFUSED, 4),
    *values("protocol", ("minWriterVersion",), EITHER, *_VERSIONS),
    *values(
        "protocol", ("readerFeatures",), REFUSED, ["odd"], ["catalogManaged"], [5], [None], "odd", 5
    ),
    *values("protocol", ("readerFeatures",), EITHER, [], None, ["deletionVectors"] * 100_000),
    *values("protocol", ("writerFeatures",), EITHER, ["odd"], [5], "odd", 5, None, []),
]


# --- what writers said

OTHERS = [
    *(
        made(kind, f"is {value!r}", EITHER, lambda action, scene, value=value: value)
        for kind in ("txn", "domainMetadata", "commitInfo", "cdc", "checkpointMetadata", "odd")
        for value in (5, "x", [1], {})
    ),
    *values("txn", ("appId",), EITHER, None, 5, [], "", "x" * 1_000_000),
    *values("txn", ("version",), EITHER, None, "x", 1.5, [], HUGE, *NUMBERS),
    *values("txn", ("lastUpdated",), EITHER, None, "x", 1.5, [], HUGE, *NUMBERS),
    *values("domainMetadata", ("domain",), EITHER, None, 5, [], "", "x" * 1_000_000),
    *values("domainMetadata", ("configuration",), EITHER, None, 5, [], "{", nested("[", "]", DEEP)),
    *values("domainMetadata", ("removed",), EITHER, None, 5, [], "x"),
    *(
        made(
            "domainMetadata",
            f"{domain} is {text:.20}",
            EITHER,
            lambda a, s, d=domain, t=text: {**a, "domain": d, "configuration": t},
        )
        for domain in ("delta.rowTracking", "delta.clustering")
        for text in (
            "",
            "{",
            "5",
            "[]",
            "{}",
            '{"rowIdHighWaterMark": "x"}',
            '{"rowIdHighWaterMark": -9}',
            '{"clusteringColumns": 5}',
            '{"clusteringColumns": [["odd"]]}',
        )
    ),
    *values("commitInfo", ("inCommitTimestamp",), EITHER, None, "x", 1.5, [], HUGE, *NUMBERS),
    *values("commitInfo", ("timestamp",), EITHER, None, "x", 1.5, [], HUGE, *NUMBERS),
    *(
        each
        for key in (
            "operation",
            "operationParameters",
            "operationMetrics",
            "readVersion",
            "isBlindAppend",
            "engineInfo",
            "txnId",
            "tags",
            "userMetadata",
            "isolationLevel",
            "job",
        )
        for each in values(
            "commitInfo", (key,), SAME, None, 5, "x", [1], {"a": {"b": [None]}}, "x" * 1_000_000
        )
    ),
]


# --- change data


def _changes_at(name: str) -> Callable[[Any, Scene], None]:
    location, _ = LOCATIONS[name]

    def edit(action: Any, scene: Scene) -> None:
        action["path"] = location(scene, scene.path("delta data"))

    return edit


CHANGES = [
    *(made("cdc", f"path is {name}", SAME, _changes_at(name)) for name in LOCATIONS),
    *values("cdc", ("path",), EITHER, None, 5, [], "", "..", "x" * 1_000_000),
    *values("cdc", ("size",), EITHER, None, "x", [], HUGE, *NUMBERS),
    *values("cdc", ("partitionValues",), EITHER, None, 5, {}, {"store": "x"}, [1]),
]

MUTATIONS = [*SCHEMA, *DEFINITION, *PROTOCOL, *OTHERS, *CHANGES]
