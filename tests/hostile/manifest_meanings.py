"""Manifests that are sound Avro and say what no table may say."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.hostile.avro_meanings import CONTAINERS
from tests.hostile.mutation import LOCATIONS, NUMBERS, Mutation
from tests.hostile.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hostile.scene import Avro, Scene

SAME, REFUSED, EITHER, ANY = (
    Verdict.SAME,
    Verdict.REFUSED,
    Verdict.SAME_OR_ERROR,
    Verdict.ANY,
)
KINDS = ("manifest", "delete manifest")


def made(
    kind: str, name: str, verdict: Verdict, edit: Callable[[Avro], object], **more: Any
) -> Mutation:
    def apply(scene: Scene) -> None:
        scene.edit_avro(scene.path(kind), edit)

    return Mutation(f"{kind}: {name}", kind, verdict, apply, history_lies=True, **more)


def entry(key: str, value: Any) -> Callable[[Avro], None]:
    def edit(content: Avro) -> None:
        content.records[0][key] = value

    return edit


def file(key: str, value: Any) -> Callable[[Avro], None]:
    """Return an edit that sets a value of the first file."""

    def edit(content: Avro) -> None:
        content.records[0]["data_file"][key] = value

    return edit


def header(key: str, value: str) -> Callable[[Avro], None]:
    def edit(content: Avro) -> None:
        content.header[key] = value

    return edit


def _fields(content: Avro) -> list[dict[str, Any]]:
    (found,) = [f for f in content.schema["fields"] if f["name"] == "data_file"]
    return found["type"]["fields"]


def retyped(key: str, avro_type: Any, value: Any) -> Callable[[Avro], None]:
    def edit(content: Avro) -> None:
        for field in [*content.schema["fields"], *_fields(content)]:
            if field["name"] == key:
                field["type"] = avro_type
                field.pop("default", None)
        for record in content.records:
            held = record if key in record else record["data_file"]
            held[key] = value

    return edit


def without_ids(content: Avro) -> None:
    for field in [*content.schema["fields"], *_fields(content)]:
        field.pop("field-id", None)


def same_ids(content: Avro) -> None:
    for field in _fields(content):
        field["field-id"] = 100


def _at(kind: str, name: str, scene: Scene) -> None:
    location, _ = LOCATIONS[name]

    def edit(content: Avro) -> None:
        held = content.records[0]["data_file"]
        held["file_path"] = location(scene, Path(held["file_path"]))

    scene.edit_avro(scene.path(kind), edit)


def _by_another_name(kind: str, verdict: Verdict) -> Verdict:
    """Return what counts for a file by another name: position deletes do not mean that one."""
    return ANY if kind == "manifest" and verdict is EITHER else verdict


def _without(kind: str, key: str) -> Verdict:
    """Return what counts where a number is left out: without its content, a file has data."""
    return EITHER if (kind, key) == ("manifest", "content") else REFUSED


def bounds(value: Any, key: int = 1) -> Callable[[Avro], None]:
    def edit(content: Avro) -> None:
        for record in content.records:
            for side in ("lower_bounds", "upper_bounds"):
                record["data_file"][side] = [{"key": key, "value": value}]

    return edit


def counts(value: int) -> Callable[[Avro], None]:
    def edit(content: Avro) -> None:
        for record in content.records:
            for side in ("value_counts", "null_value_counts", "nan_value_counts", "column_sizes"):
                record["data_file"][side] = [{"key": key, "value": value} for key in (1, 2, 77)]

    return edit


def partition(value: Any) -> Callable[[Avro], None]:
    """Give the partition's fields a value that their Avro type can hold, or make them null."""

    def edit(content: Avro) -> None:
        for record in content.records:
            held = record["data_file"]["partition"]
            for name, before in held.items():
                if isinstance(before, int) or value is None:
                    held[name] = value
                elif isinstance(before, str):
                    held[name] = "x" * 5000

    return edit


def partition_of_texts(content: Avro) -> None:
    (found,) = [field for field in _fields(content) if field["name"] == "partition"]
    for field in found["type"]["fields"]:
        field["type"] = "string"
        field.pop("default", None)
    for record in content.records:
        held = record["data_file"]["partition"]
        record["data_file"]["partition"] = dict.fromkeys(held, "odd")


def no_partition(content: Avro) -> None:
    (found,) = [field for field in _fields(content) if field["name"] == "partition"]
    found["type"]["fields"] = []


def _twice(content: Avro) -> None:
    content.records.append(content.records[0])


def _is_partitioned(layout: Any) -> bool:
    return bool(layout.partition_by)


def _is_v3(layout: Any) -> bool:
    return layout.version == 3


REQUIRED = {
    "status": "int",
    "content": "int",
    "file_path": "string",
    "file_format": "string",
    "record_count": "long",
    "file_size_in_bytes": "long",
}
LIST = {"type": "array", "items": "int", "element-id": 9009}


def _of_any_content(kind: str) -> list[Mutation]:
    """Return what data and delete manifests share; files of deletes are as required as data."""
    mine = partial(made, kind)
    return [
        *(
            mine(f"status is {value}", REFUSED, entry("status", value))
            for value in (3, -1, 2**31 - 1)
        ),
        *(
            mine(f"content is {value}", REFUSED, file("content", value))
            for value in (3, -1, 2**31 - 1)
        ),
        mine("content is another one", REFUSED, file("content", 0 if kind != "manifest" else 1)),
        *(
            mine(f"the format is {value!r}", REFUSED, file("file_format", value))
            for value in ("odd", "", "a\0b", "x" * 100_000)
        ),
        *(
            mine(f"the format is {value}", EITHER, file("file_format", value))
            for value in ("ORC", "AVRO", "PARQUET", "PUFFIN", "parquet")
        ),
        *(
            mine(f"record_count is {value}", EITHER, file("record_count", value))
            for value in (0, 1, 13, *NUMBERS)
        ),
        *(
            mine(f"file_size_in_bytes is {value}", EITHER, file("file_size_in_bytes", value))
            for value in (0, 1, 5, *NUMBERS)
        ),
        *(
            mine(f"sequence_number is {value}", ANY, entry("sequence_number", value))
            for value in (0, *NUMBERS)
        ),
        *(
            mine(f"file_sequence_number is {value}", EITHER, entry("file_sequence_number", value))
            for value in NUMBERS
        ),
        *(
            mine(f"snapshot_id is {value}", EITHER, entry("snapshot_id", value))
            for value in (None, *NUMBERS)
        ),
        *(
            mine(f"split_offsets are {value}", EITHER, file("split_offsets", value))
            for value in ([], [-5], [2**62, 4], [4, 4, 4], [-(2**63)])
        ),
        mine("split_offsets are very many", EITHER, file("split_offsets", list(range(4, 300_000)))),
        mine("sort_order_id is unknown", EITHER, file("sort_order_id", 77)),
        mine("key_metadata is there", EITHER, file("key_metadata", b"key")),
        mine("counts are negative", EITHER, counts(-5), filters_lie=True),
        mine("counts are huge", EITHER, counts(2**62), filters_lie=True),
        *(
            mine(f"bounds are {name}", EITHER, bounds(value), filters_lie=True)
            for name, value in (("empty", b""), ("short", b"\1"), ("long", b"\xff" * 100_000))
        ),
        mine("bounds are no UTF-8", EITHER, bounds(b"\xff\xfe\xff", 5), filters_lie=True),
        mine(
            "bounds are of an unknown column", EITHER, bounds(b"\xff\xfe\xff", 77), filters_lie=True
        ),
        mine("bounds are of a decimal too wide", EITHER, bounds(b"\x7f" * 40, 4), filters_lie=True),
        mine(
            "bounds are of a date too late",
            EITHER,
            bounds(b"\xff\xff\xff\x7f", 3),
            filters_lie=True,
        ),
        mine(
            "the partition is huge",
            EITHER,
            partition(2**31 - 1),
            filters_lie=True,
            suits=_is_partitioned,
        ),
        mine(
            "the partition is null",
            EITHER if kind == "manifest" else ANY,
            partition(None),
            filters_lie=True,
            suits=_is_partitioned,
        ),
        mine(
            "the partition is of texts",
            ANY,
            partition_of_texts,
            filters_lie=True,
            suits=_is_partitioned,
        ),
        mine(
            "the partition has no fields",
            ANY,
            no_partition,
            filters_lie=True,
            suits=_is_partitioned,
        ),
        *(
            mine(f"{key} is null", _without(kind, key), retyped(key, ["null", of], None))
            for key, of in REQUIRED.items()
        ),
        *(mine(f"{key} is a list", REFUSED, retyped(key, LIST, [1])) for key in REQUIRED),
        mine("record_count is a text", REFUSED, retyped("record_count", "string", "x")),
        mine("fields have no ids", ANY, without_ids),
        mine("fields have the same id", REFUSED, same_ids),
        *(
            mine(f"header {key} is {value[:9]!r}", EITHER, header(key, value))
            for key in ("schema", "partition-spec")
            for value in ("", "{", "5", "[" * 100_000)
        ),
        *(
            mine(f"header {key} is {value!r}", EITHER, header(key, value))
            for key in ("format-version", "content", "partition-spec-id", "schema-id")
            for value in ("", "99", "odd", "-1")
        ),
        *(
            Mutation(
                f"{kind}: a file is {name}",
                kind,
                _by_another_name(kind, verdict),
                partial(_at, kind, name),
                history_lies=True,
            )
            for name, (_, verdict) in LOCATIONS.items()
        ),
        *(
            Mutation(f"{kind}: {name}", kind, verdict, partial(apply, kind), history_lies=True)
            for name, (apply, verdict) in CONTAINERS.items()
        ),
    ]


OF_DATA = [
    # Its rows come twice, as in Iceberg's own readers: the spec does not forbid it.
    made("manifest", "a file twice", ANY, _twice),
    made("manifest", "equality_ids of a data file", EITHER, file("equality_ids", [77])),
    made("manifest", "row ids are negative", EITHER, file("first_row_id", -5), suits=_is_v3),
    made("manifest", "row ids run out", EITHER, file("first_row_id", 2**63 - 1), suits=_is_v3),
]


def _vectors(key: str, value: Any, verdict: Verdict = REFUSED) -> Mutation:
    text = repr(value)[:24]
    return made("delete manifest", f"{key} is {text}", verdict, file(key, value), suits=_is_v3)


def _has_equality(layout: Any) -> bool:
    return "equality" in layout.deletes


def _equality_ids(value: Any) -> Callable[[Scene], None]:
    def apply(scene: Scene) -> None:
        def edit(content: Avro) -> None:
            for record in content.records:
                if record["data_file"]["content"] == 2:
                    record["data_file"]["equality_ids"] = value

        for path in scene.paths("delete manifest"):
            scene.edit_avro(path, edit)

    return apply


OF_DELETES = [
    *(_vectors("content_offset", value) for value in (None, 0, 1, *NUMBERS)),
    *(_vectors("content_size_in_bytes", value) for value in (None, 0, 1, *NUMBERS)),
    _vectors("referenced_data_file", None),
    _vectors("referenced_data_file", "/nowhere", ANY),
    _vectors("referenced_data_file", "", ANY),
    made("delete manifest", "a vector twice", REFUSED, _twice, suits=_is_v3),
    made("delete manifest", "a delete file twice", SAME, _twice, suits=lambda x: x.version == 2),
    *(
        Mutation(
            f"delete manifest: equality_ids are {value}",
            "delete manifest",
            REFUSED,
            _equality_ids(value),
            suits=_has_equality,
            history_lies=True,
        )
        for value in (None, [], [77], [-1], [6], [7], [2**31 - 1])
    ),
]

MUTATIONS = [
    *(one for kind in KINDS for one in _of_any_content(kind)),
    *OF_DATA,
    *OF_DELETES,
]
