"""Metadata files that are well-formed (or nearly so) and say what no table may say."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tests.hostile.mutation import (
    LOCATIONS,
    Mutation,
    gzip_bomb,
    nested,
)
from tests.hostile.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hostile.scene import Scene

Metadata = dict[str, Any]
SAME, REFUSED, EITHER, ANY = (
    Verdict.SAME,
    Verdict.REFUSED,
    Verdict.SAME_OR_ERROR,
    Verdict.ANY,
)
HUGE = 10**30
DEEP = 100_000


def made(name: str, verdict: Verdict, edit: Callable[[Metadata], object], **more: Any) -> Mutation:
    """Return a mutation that edits the parsed metadata."""

    def apply(scene: Scene) -> None:
        scene.edit_metadata(edit)

    return Mutation(f"metadata: {name}", "metadata", verdict, apply, **more)


def whole(name: str, text: str | bytes, verdict: Verdict = REFUSED) -> Mutation:
    def apply(scene: Scene) -> None:
        scene.write_metadata(text)

    return Mutation(f"metadata: {name}", "metadata", verdict, apply)


def put(place: tuple[Any, ...], value: Any) -> Callable[[Metadata], None]:
    """Return an edit that sets a value at a place; the value may be made of the metadata."""

    def edit(metadata: Metadata) -> None:
        held: Any = metadata
        for step in place[:-1]:
            held = held[step]
        held[place[-1]] = value(metadata) if callable(value) else value

    return edit


def drop(place: tuple[Any, ...]) -> Callable[[Metadata], None]:
    def edit(metadata: Metadata) -> None:
        held: Any = metadata
        for step in place[:-1]:
            held = held[step]
        held.pop(place[-1], None)

    return edit


# --- whole files


def _bomb(scene: Scene) -> None:
    path = scene.path("metadata")
    path.write_bytes(gzip_bomb())


def _deep_inside(key: str, opening: str, closing: str, scene: Scene) -> None:
    text = scene.metadata_text()[:-1].rstrip()
    scene.write_metadata(f'{text}, "{key}": {nested(opening, closing, DEEP)}}}')


def _many_digits(scene: Scene) -> None:
    text = scene.metadata_text()
    version = scene.sample.layout.version
    for space in ("", " "):
        text = text.replace(f'"format-version":{space}{version}', f'"format-version": {"9" * 9999}')
    scene.write_metadata(text)


def _encoded(encoding: str, scene: Scene) -> None:
    scene.write_metadata(scene.metadata_text().encode(encoding))


def _doubled_keys(scene: Scene) -> None:
    text = scene.metadata_text().rstrip()
    scene.write_metadata(text[:-1] + ', "snapshots": [], "snapshots": 5}')


WHOLE = [
    *(
        whole(f"is {text!r}"[:40], text)
        for text in ("null", "[]", "{}", "3", '""', "NaN", "true", "[[]]", '{"format-version": 2}')
    ),
    whole("is nested too deep", nested("[", "]", DEEP)),
    whole("is objects nested too deep", nested('{"a":', "}", DEEP)),
    whole("is a text of ten megabytes", '"' + "x" * 10_000_000 + '"'),
    whole("is no UTF-8", b'{"format-version": 2, "location": "\xff\xfe"}'),
    Mutation("metadata: is a gzip bomb", "metadata", REFUSED, _bomb),
    Mutation("metadata: has deep lists", "metadata", EITHER, partial(_deep_inside, "x", "[", "]")),
    Mutation(
        "metadata: has deep properties",
        "metadata",
        EITHER,
        partial(_deep_inside, "properties", '{"a":', "}"),
    ),
    Mutation("metadata: a number of many digits", "metadata", REFUSED, _many_digits),
    Mutation("metadata: is UTF-16", "metadata", EITHER, partial(_encoded, "utf-16")),
    Mutation("metadata: has a BOM", "metadata", EITHER, partial(_encoded, "utf-8-sig")),
    Mutation("metadata: has keys twice", "metadata", EITHER, _doubled_keys),
]


# --- values of wrong types and sizes, wherever they stand

_KEYS: dict[tuple[Any, ...], Verdict] = {
    ("format-version",): REFUSED,
    ("table-uuid",): EITHER,
    ("location",): EITHER,
    ("last-sequence-number",): EITHER,
    ("last-updated-ms",): EITHER,
    ("last-column-id",): EITHER,
    ("schemas",): REFUSED,
    ("current-schema-id",): EITHER,
    ("schemas", 0, "fields"): REFUSED,
    ("schemas", 0, "fields", 0, "id"): EITHER,
    ("schemas", 0, "fields", 0, "type"): REFUSED,
    ("schemas", 0, "fields", 0, "name"): REFUSED,
    ("schemas", 0, "identifier-field-ids"): EITHER,
    ("partition-specs",): EITHER,
    ("partition-specs", 0): EITHER,
    ("default-spec-id",): EITHER,
    ("last-partition-id",): EITHER,
    ("sort-orders",): EITHER,
    ("default-sort-order-id",): EITHER,
    ("properties",): EITHER,
    ("current-snapshot-id",): EITHER,
    ("snapshots",): EITHER,
    ("snapshots", -1): EITHER,
    ("snapshots", -1, "snapshot-id"): EITHER,
    ("snapshots", -1, "sequence-number"): EITHER,
    ("snapshots", -1, "timestamp-ms"): EITHER,
    ("snapshots", -1, "manifest-list"): REFUSED,
    ("snapshots", -1, "summary"): EITHER,
    ("snapshots", -1, "schema-id"): EITHER,
    ("snapshots", -1, "parent-snapshot-id"): EITHER,
    ("snapshot-log",): EITHER,
    ("snapshot-log", -1): EITHER,
    ("snapshot-log", -1, "timestamp-ms"): EITHER,
    ("snapshot-log", -1, "snapshot-id"): EITHER,
    ("metadata-log",): EITHER,
    ("metadata-log", -1): EITHER,
    ("metadata-log", -1, "timestamp-ms"): EITHER,
    ("metadata-log", -1, "metadata-file"): EITHER,
    ("refs",): EITHER,
    ("refs", "main"): EITHER,
    ("refs", "main", "snapshot-id"): EITHER,
    ("refs", "main", "type"): EITHER,
    ("refs", "main", "min-snapshots-to-keep"): EITHER,
    ("refs", "main", "max-snapshot-age-ms"): EITHER,
    ("statistics",): EITHER,
    ("statistics", 0): EITHER,
    ("statistics", 0, "statistics-path"): EITHER,
    ("statistics", 0, "blob-metadata"): EITHER,
    ("statistics", 0, "file-size-in-bytes"): EITHER,
}
_ODD: dict[str, Any] = {
    "null": None,
    "a text": "odd",
    "a list": [1],
    "an object": {"a": 1},
    "a huge number": HUGE,
    "a negative number": -5,
    "a fraction": 1.5,
    "a boolean": True,
    "a lone surrogate": "\ud800",
    "a NUL": "a\0b",
}


def _odd(place: tuple[Any, ...], name: str) -> Mutation:
    verdict = _KEYS[place]
    value = _ODD[name]
    if isinstance(value, str) and place[-1] in ("name", "location", "table-uuid"):
        verdict = ANY if place[-1] == "name" else EITHER
    if place == ("current-snapshot-id",) or place[0] in ("refs", "snapshots", "schemas"):
        verdict = ANY if verdict is EITHER else verdict
    text = "/".join(map(str, place))
    return made(f"{text} is {name}", verdict, put(place, value), history_lies=True)


ODD = [_odd(place, name) for place in _KEYS for name in _ODD]


# --- what does not fit together


def _cycle(metadata: Metadata) -> None:
    first, *_, last = metadata["snapshots"]
    first["parent-snapshot-id"] = last["snapshot-id"]


def _own_parent(metadata: Metadata) -> None:
    for one in metadata["snapshots"]:
        one["parent-snapshot-id"] = one["snapshot-id"]


def _two_with_one_id(metadata: Metadata) -> None:
    metadata["snapshots"][0]["snapshot-id"] = metadata["snapshots"][-1]["snapshot-id"]


def _many_snapshots(metadata: Metadata) -> None:
    last = metadata["snapshots"][-1]
    metadata["snapshots"] += [{**last, "snapshot-id": n} for n in range(1, 5000)]


def _reversed_log(metadata: Metadata) -> None:
    metadata["snapshot-log"].reverse()


def _field(index: int = 0) -> tuple[Any, ...]:
    return ("schemas", 0, "fields", index)


def _deep_column(scene: Scene) -> None:
    """Add a column whose type is nested too deep; written by hand, since `json` would refuse."""
    text = scene.metadata_text()
    depth = scene.random.choice([60, 200, 900, 5000])
    scene.notes.append(f"{depth} deep")
    begin = '{"type": "list", "element-id": 900, "element-required": false, "element": '
    column = (
        '{"id": 99, "name": "deep", "required": false, "type": '
        + nested(begin, "}", depth, '"long"')
        + "}, "
    )
    found = text.replace('"fields":[', '"fields": [', 1).replace('"fields": [', "HERE", 1)
    scene.write_metadata(found.replace("HERE", f'"fields": [{column}', 1))


TYPES = {
    "unknown": "frobnicate",
    "a wide decimal": "decimal(99, 2)",
    "a negative decimal": "decimal(-1, -2)",
    "no fixed": "fixed[-1]",
    "a huge fixed": "fixed[1099511627776]",
    "an odd struct": {"type": "struct"},
    "an odd list": {"type": "list", "element": "long"},
    "a struct in itself": {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long"}]},
    "a long text": "x" * 100_000,
    "another one": "date",
}
TRANSFORMS = ("frobnicate", "bucket[0]", "bucket[-1]", "bucket[1099511627776]", "truncate[0]", "")


def _spec_field(**values: Any) -> Callable[[Metadata], None]:
    def edit(metadata: Metadata) -> None:
        fields = metadata["partition-specs"][0]["fields"]
        made_up = {"source-id": 1, "field-id": 1000, "transform": "identity", "name": "p"}
        fields[:] = [{**(fields[0] if fields else made_up), **values}]

    return edit


def _add_spec(metadata: Metadata) -> None:
    metadata["partition-specs"].append({**metadata["partition-specs"][0]})


def _v3_row_ids(value: Any) -> Callable[[Metadata], None]:
    def edit(metadata: Metadata) -> None:
        metadata["next-row-id"] = value
        metadata["snapshots"][-1]["first-row-id"] = value

    return edit


def _is_v3(layout: Any) -> bool:
    return layout.version == 3


FITTING = [
    made("snapshots are each other's parents", EITHER, _cycle),
    made("snapshots are their own parents", EITHER, _own_parent),
    made("a parent is unknown", SAME, put(("snapshots", 0, "parent-snapshot-id"), 5)),
    made("two snapshots have one id", ANY, _two_with_one_id, history_lies=True),
    made("there are 5,000 snapshots", EITHER, _many_snapshots),
    made("the snapshot log is reversed", EITHER, _reversed_log),
    made("snapshots are reversed", EITHER, lambda m: m["snapshots"].reverse(), history_lies=True),
    made("the current snapshot is unknown", REFUSED, put(("current-snapshot-id",), 5)),
    made("the main branch is unknown", EITHER, put(("refs", "main", "snapshot-id"), 5)),
    made("a tag is unknown", EITHER, put(("refs", "x"), {"snapshot-id": 5, "type": "tag"})),
    made("main is a tag", EITHER, put(("refs", "main", "type"), "tag")),
    made("times are of another age", EITHER, put(("snapshots", -1, "timestamp-ms"), 2**62)),
    made("times are before all", EITHER, put(("snapshots", -1, "timestamp-ms"), -(2**62))),
    made("the log's times are huge", EITHER, put(("snapshot-log", -1, "timestamp-ms"), 2**62)),
    made("updated in the far future", EITHER, put(("last-updated-ms",), 2**62)),
    made("sequence numbers run out", EITHER, put(("last-sequence-number",), 2**63 - 1)),
    made("sequence numbers went back", EITHER, put(("last-sequence-number",), 0)),
    made(
        "a sequence number of the future", EITHER, put(("snapshots", -1, "sequence-number"), 2**62)
    ),
    made("the current schema is unknown", REFUSED, put(("current-schema-id",), 77)),
    made("a snapshot's schema is unknown", EITHER, put(("snapshots", -1, "schema-id"), 77)),
    made("no columns", EITHER, put(("schemas", 0, "fields"), [])),
    made("two columns of one id", REFUSED, put((*_field(1), "id"), 1)),
    made("two columns of one name", REFUSED, put((*_field(4), "name"), "id")),
    made("ids of columns are huge", REFUSED, put((*_field(0), "id"), 2**31)),
    made(
        "ids of columns are reserved", ANY, put((*_field(4), "id"), 2147483546), history_lies=True
    ),
    made("the last column id is less", EITHER, put(("last-column-id",), 0)),
    made("the last column id is huge", EITHER, put(("last-column-id",), 2**31 - 1)),
    made(
        "identifier fields are unknown", EITHER, put(("schemas", 0, "identifier-field-ids"), [77])
    ),
    *(
        made(f"a type is {name}", REFUSED, put((*_field(0), "type"), of), history_lies=True)
        for name, of in TYPES.items()
    ),
    Mutation("metadata: a type is nested too deep", "metadata", REFUSED, _deep_column),
    made(
        "a default is of another type",
        REFUSED,
        put((*_field(4), "initial-default"), {"a": [1]}),
        suits=_is_v3,
        history_lies=True,
    ),
    made("the default spec is unknown", EITHER, put(("default-spec-id",), 77)),
    made("two specs of one id", EITHER, _add_spec),
    made("a partition field of no column", EITHER, _spec_field(**{"source-id": 77})),
    made("a partition field of a list", EITHER, _spec_field(**{"source-id": 6})),
    made("a partition field's id is huge", EITHER, _spec_field(**{"field-id": 2**40})),
    made("a partition field with a path for a name", EITHER, _spec_field(name="../../../victim")),
    made("a partition field with a NUL in its name", EITHER, _spec_field(name="a\0b")),
    *(made(f"a transform is {of!r}", EITHER, _spec_field(transform=of)) for of in TRANSFORMS),
    made(
        "a sort order of no column",
        EITHER,
        put(
            ("sort-orders",),
            [
                {
                    "order-id": 0,
                    "fields": [
                        {
                            "source-id": 77,
                            "transform": "identity",
                            "direction": "asc",
                            "null-order": "nulls-first",
                        }
                    ],
                }
            ],
        ),
    ),
    made("the default sort order is unknown", EITHER, put(("default-sort-order-id",), 77)),
    made("row ids are negative", EITHER, _v3_row_ids(-5), suits=_is_v3),
    made("row ids run out", EITHER, _v3_row_ids(2**63 - 1), suits=_is_v3),
    made("summaries are empty", SAME, put(("snapshots", -1, "summary"), {"operation": "append"})),
    made(
        "summaries are odd",
        SAME,
        put(
            ("snapshots", -1, "summary"),
            {
                "operation": "append",
                "total-records": "-5",
                "total-data-files": "x",
                "total-files-size": "9" * 400,
                "total-delete-files": "",
            },
        ),
    ),
    made("an unknown operation", EITHER, put(("snapshots", -1, "summary", "operation"), "odd")),
    made(
        "the format version is the one before", ANY, put(("format-version",), 1), history_lies=True
    ),
    made("no snapshot log", SAME, drop(("snapshot-log",))),
    made("no metadata log", SAME, drop(("metadata-log",))),
]


# --- locations


def _manifest_list_at(name: str, scene: Scene) -> None:
    location, _ = LOCATIONS[name]
    text = location(scene, scene.path("manifest list"))
    scene.edit_metadata(put(("snapshots", -1, "manifest-list"), text))


PLACES: dict[str, Callable[[Scene], str]] = {
    "the victim": lambda scene: str(scene.victim),
    "the arena": lambda scene: str(scene.arena),
    "the lake": lambda scene: str(scene.lake),
    "the other table": lambda scene: str(scene.lake / "db" / "other"),
    "above": lambda scene: f"{scene.table}/..",
    "a way to the victim": lambda scene: f"{scene.table}/../../../victim",
    "nothing": lambda scene: "",
    "an unknown scheme": lambda scene: f"xyz:/{scene.table}",
    "a NUL": lambda scene: f"{scene.table}\0",
    "a lone surrogate": lambda scene: f"{scene.table}\ud800",
    "too long": lambda scene: f"{scene.table}/{'x' * 5000}",
    "/dev/zero": lambda scene: "/dev/zero",
    "a link to the victim": lambda scene: _link_to_victim(scene),
}


def _link_to_victim(scene: Scene) -> str:
    link = scene.table / "linked"
    link.symlink_to(scene.victim)
    return str(link)


def _location_is(name: str, scene: Scene) -> None:
    scene.edit_metadata(put(("location",), PLACES[name](scene)))


def _foreign_file(kind: str, scene: Scene) -> None:
    """Let metadata name files that belong to somebody else, where maintenance deletes files."""
    victim = scene.victim
    edits: dict[str, Callable[[Metadata], None]] = {
        "metadata log": _logged(str(victim / "metadata/v1.metadata.json")),
        "statistics": put(
            ("statistics", 0, "statistics-path"), str(victim / "metadata/stats.puffin")
        ),
        "old manifest list": put(
            ("snapshots", 0, "manifest-list"), str(victim / "metadata/snap-1.avro")
        ),
    }
    scene.edit_metadata(edits[kind])


def _logged(path: str) -> Callable[[Metadata], None]:
    def edit(metadata: Metadata) -> None:
        metadata["properties"] |= {
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": "1",
        }
        metadata["metadata-log"] = [
            {"timestamp-ms": metadata["last-updated-ms"] - 1, "metadata-file": path}
        ] * 3

    return edit


AT = [
    *(
        Mutation(
            f"metadata: the manifest list is {name}",
            "metadata",
            verdict,
            partial(_manifest_list_at, name),
            history_lies=True,
        )
        for name, (_, verdict) in LOCATIONS.items()
    ),
    *(
        Mutation(
            f"metadata: the location is {name}", "metadata", EITHER, partial(_location_is, name)
        )
        for name in PLACES
    ),
    *(
        Mutation(
            f"metadata: {kind} of somebody else",
            "metadata",
            SAME,
            partial(_foreign_file, kind),
            history_lies=True,
        )
        for kind in ("metadata log", "statistics", "old manifest list")
    ),
]

MUTATIONS = [*WHOLE, *ODD, *FITTING, *AT]
