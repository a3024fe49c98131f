"""Manifest lists that are sound Avro and say what no table may say."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.hostile.avro_meanings import CONTAINERS
from tests.hostile.mutation import LOCATIONS, NUMBERS, Mutation
from tests.hostile.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hostile.scene import Avro, Scene

KIND = "manifest list"
SAME, REFUSED, EITHER, ANY = (
    Verdict.SAME,
    Verdict.REFUSED,
    Verdict.SAME_OR_ERROR,
    Verdict.ANY,
)


def made(name: str, verdict: Verdict, edit: Callable[[Avro], object], **more: Any) -> Mutation:
    def apply(scene: Scene) -> None:
        scene.edit_avro(scene.path(KIND), edit)

    return Mutation(f"manifest list: {name}", KIND, verdict, apply, **more)


def put(key: str, value: Any) -> Callable[[Avro], None]:
    """Return an edit that sets a value of the first manifest's row."""

    def edit(content: Avro) -> None:
        content.records[0][key] = value

    return edit


def retyped(key: str, avro_type: Any, value: Any) -> Callable[[Avro], None]:
    """Return an edit that makes a field of another type, and gives it a value in all rows."""

    def edit(content: Avro) -> None:
        for field in content.schema["fields"]:
            if field["name"] == key:
                field["type"] = avro_type
                field.pop("default", None)
        for record in content.records:
            record[key] = value

    return edit


def without(key: str) -> Callable[[Avro], None]:
    def edit(content: Avro) -> None:
        content.schema["fields"] = [f for f in content.schema["fields"] if f["name"] != key]

    return edit


def _at(name: str, scene: Scene) -> None:
    location, _ = LOCATIONS[name]

    def edit(content: Avro) -> None:
        row = content.records[0]
        row["manifest_path"] = location(scene, Path(row["manifest_path"]))

    scene.edit_avro(scene.path(KIND), edit)


def _swapped(content: Avro) -> None:
    for row in content.records:
        row["content"] = 1 - row["content"]


def _many(content: Avro) -> None:
    content.records *= 2000


def _summaries(value: Any) -> Callable[[Avro], None]:
    def edit(content: Avro) -> None:
        for row in content.records:
            row["partitions"] = value

    return edit


def _summary(**values: Any) -> dict[str, Any]:
    empty = {"contains_null": False, "contains_nan": None, "lower_bound": None, "upper_bound": None}
    return {**empty, **values}


def _is_partitioned(layout: Any) -> bool:
    return bool(layout.partition_by)


COUNTS = (
    "added_files_count",
    "existing_files_count",
    "deleted_files_count",
    "added_rows_count",
    "existing_rows_count",
    "deleted_rows_count",
)
REQUIRED = {
    "manifest_path": "string",
    "manifest_length": "long",
    "partition_spec_id": "int",
    "content": "int",
    "sequence_number": "long",
    "added_snapshot_id": "long",
}
ODD_BOUNDS = {"empty": b"", "odd": b"\xff", "long": b"\xff" * 100_000}

MUTATIONS = [
    *(made(f"content is {value}", REFUSED, put("content", value)) for value in (2, 7, -1)),
    made("data and deletes are swapped", REFUSED, _swapped),
    made("a manifest twice", REFUSED, lambda c: c.records.append(c.records[0])),
    made("manifests 2,000 times", REFUSED, _many),
    *(
        made(f"manifest_length is {value}", EITHER, put("manifest_length", value))
        for value in (0, 1, *NUMBERS)
    ),
    *(
        made(f"partition_spec_id is {value}", REFUSED, put("partition_spec_id", value))
        for value in (77, -1, 2**31 - 1)
    ),
    *(
        made(f"{key} is {value}", ANY if key == "sequence_number" else EITHER, put(key, value))
        for key in ("sequence_number", "min_sequence_number", "added_snapshot_id")
        for value in NUMBERS
    ),
    *(
        made(f"{key} is {value}", EITHER, put(key, value))
        for key in COUNTS
        for value in (-1, -(2**31), 2**31 - 1)
    ),
    *(
        made(f"{key} is null", REFUSED, retyped(key, ["null", of], None))
        for key, of in REQUIRED.items()
    ),
    *(
        made(f"{key} is a list", REFUSED, retyped(key, {"type": "array", "items": "int"}, [1]))
        for key in REQUIRED
    ),
    *(
        made(f"{key} is missing", ANY if key == "content" else REFUSED, without(key))
        for key in ("manifest_path", "partition_spec_id", "content")
    ),
    made("manifest_length is a text", REFUSED, retyped("manifest_length", "string", "x")),
    made("manifest_path is bytes", EITHER, retyped("manifest_path", "bytes", b"\xff\xfe")),
    made("counts are texts", EITHER, retyped("added_files_count", "string", "many")),
    *(
        made(
            f"bounds of partitions are {name}",
            EITHER,
            _summaries([_summary(lower_bound=bound, upper_bound=bound)]),
            filters_lie=True,
            suits=_is_partitioned,
        )
        for name, bound in ODD_BOUNDS.items()
    ),
    made("too many bounds of partitions", EITHER, _summaries([_summary()] * 9), filters_lie=True),
    made("no bounds of partitions", EITHER, _summaries([]), suits=_is_partitioned),
    made("an encrypted manifest", EITHER, put("key_metadata", b"key")),
    made(
        "row ids are negative",
        EITHER,
        put("first_row_id", -5),
        suits=lambda layout: layout.version == 3,
    ),
    *(
        Mutation(f"manifest list: a manifest is {name}", KIND, verdict, partial(_at, name))
        for name, (_, verdict) in LOCATIONS.items()
    ),
    *(
        Mutation(f"manifest list: {name}", KIND, verdict, partial(apply, KIND))
        for name, (apply, verdict) in CONTAINERS.items()
    ),
]


def _foreign_manifest_list(scene: Scene) -> None:
    """Let the table's current snapshot be the other table's, by its manifest list."""
    lists = list((scene.lake / "db" / "other" / "metadata").glob("snap-*.avro"))
    found = scene.metadata()
    found["snapshots"][-1]["manifest-list"] = str(lists[0])
    scene.write_metadata(json.loads(json.dumps(found)))


MUTATIONS.append(Mutation("manifest list: of the other table", KIND, ANY, _foreign_manifest_list))
