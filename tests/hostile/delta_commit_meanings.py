"""Adds and removes of Delta commits that are sound JSON and say what no table may say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rowlake.codecs import z85
from tests.hostile.delta_commits import (
    ANY,
    EITHER,
    REFUSED,
    SAME,
    drop,
    made,
    put,
    values,
)
from tests.hostile.mutation import LOCATIONS, NUMBERS, nested

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.hostile.scene import Scene
    from tests.hostile.tables import AnyLayout

TYPES: tuple[Any, ...] = (5, 1.5, True, [], [1], {}, {"a": 1})
HUGE = 10**30
DEEP = 100_000


# --- paths

# VACUUM takes the target of a link for a file that nobody needs: the log names the link.
PLACES = {name: each for name, each in LOCATIONS.items() if name != "a link"}


def _located(name: str, *place: str) -> Callable[[Any, Scene], None]:
    """Return an edit that lets a path be one of `LOCATIONS`, made of a data file that exists."""
    location, _ = LOCATIONS[name]

    def edit(action: Any, scene: Scene) -> None:
        put(place or ("path",), location(scene, scene.table / action["path"]))(action, scene)

    return edit


def _spelled(spell: Callable[[str, Scene], str]) -> Callable[[Any, Scene], None]:
    def edit(action: Any, scene: Scene) -> None:
        action["path"] = spell(action["path"], scene)

    return edit


def _all_encoded(path: str, scene: Scene) -> str:
    return "".join(f"%{byte:02x}" for byte in path.encode())


NO_PATHS = ("%00", "%2Fdev%2Fzero", ".", "..", "/", "\ud800", "file:", "s3://", "x" * 1_000_000)
SPELLINGS: dict[str, Callable[[str, Scene], str]] = {
    "leads out and back": lambda path, scene: f"../{scene.table.name}/{path}",
    "leads out and back, encoded": lambda path, scene: f"%2E%2e/{scene.table.name}%2F{path}",
    "is all encoded": _all_encoded,
    "has a dot": lambda path, _: f"./{path}",
    "has many slashes": lambda path, _: f"////{path}".lstrip("/").replace("/", "//"),
    "is encoded twice": lambda path, _: quote(quote(path, safe=""), safe=""),
    "is absolute": lambda path, scene: f"{scene.table}/{path}",
    "is absolute and leads out": lambda path, scene: f"{scene.table}/../{scene.table.name}/{path}",
    "is a URI": lambda path, scene: f"file://{scene.table}/{path}",
}
PATHS = [
    *(
        made("add", f"path is {name}", verdict, _located(name))
        for name, (_, verdict) in PLACES.items()
    ),
    *values("add", ("path",), REFUSED, None, *TYPES, *NO_PATHS),
    *(made("add", f"path {name}", EITHER, _spelled(each)) for name, each in SPELLINGS.items()),
    made("add", "no path", REFUSED, drop("path")),
    *values("remove", ("path",), REFUSED, None, *TYPES),
    *values("remove", ("path",), ANY, "", "..", "%00", "x" * 1_000_000, "/dev/zero"),
    made("remove", "no path", REFUSED, drop("path")),
]


# --- fields


def _is_partitioned(layout: AnyLayout) -> bool:
    return bool(getattr(layout, "partition_by", ()))


def _partition(value: Any) -> Callable[[Any, Scene], None]:
    def edit(action: Any, scene: Scene) -> None:
        action["partitionValues"] = dict.fromkeys(action["partitionValues"], value)

    return edit


ODD_NUMBERS = (None, "x", 1.5, {}, HUGE, *NUMBERS)
FIELDS = [
    *(
        made(kind, f"is {value!r}", REFUSED, lambda action, scene, value=value: value)
        for kind in ("add", "remove")
        for value in (5, "x", [1], True)
    ),
    *values("add", ("size",), EITHER, 0, 1, *ODD_NUMBERS),
    *values("remove", ("size",), EITHER, *ODD_NUMBERS),
    *values("add", ("modificationTime",), EITHER, *ODD_NUMBERS),
    *values("remove", ("deletionTimestamp",), EITHER, *ODD_NUMBERS),
    *values("add", ("dataChange",), EITHER, None, "x", 5, []),
    *values("remove", ("dataChange",), EITHER, None, "x", 5, []),
    *values("add", ("partitionValues",), ANY, None, {}, {"x": "1"}),
    *values("add", ("partitionValues",), REFUSED, 5, "x", [["store", "1"]]),
    *(
        made(
            "add", f"partition is {value!r:.30}", REFUSED, _partition(value), suits=_is_partitioned
        )
        for value in ("x", "1.5", "9" * 400, "2147483648", "1 2", "\0", {"a": 1}, [1])
    ),
    *(
        made("add", f"partition is {value!r}", ANY, _partition(value), suits=_is_partitioned)
        for value in (None, "", "1", " 1", 1, True, "١")
    ),
    *values("add", ("tags",), EITHER, 5, "x", [], {"a": 5}, {"a": {"b": []}}, {"": None}),
    *values("add", ("baseRowId",), EITHER, "x", [], HUGE, *NUMBERS),
    *values("add", ("defaultRowCommitVersion",), EITHER, "x", [], HUGE, *NUMBERS),
    *values("add", ("clusteringProvider",), EITHER, 5, [], "x" * 1_000_000),
    made("add", "unknown fields", SAME, lambda action, _: action.update(odd={"a": [1, None]})),
]


# --- deletion vectors

_VECTOR = "deletionVector"


def _is_in_a_file(layout: AnyLayout) -> bool:
    return not getattr(layout, "inline", False)


def _is_inline(layout: AnyLayout) -> bool:
    return not _is_in_a_file(layout)


def _at_path(name: str) -> Callable[[Any, Scene], None]:
    def edit(action: Any, scene: Scene) -> None:
        _located(name, _VECTOR, "pathOrInlineDv")(action, scene)
        action[_VECTOR] |= {"storageType": "p", "offset": 1}

    return edit


def _longer(by: int) -> Callable[[Any, Scene], None]:
    def edit(action: Any, scene: Scene) -> None:
        action[_VECTOR]["sizeInBytes"] += by

    return edit


NO_UUIDS = ("", "x", "~" * 20, "x" * 21, "00000000000000000000", "a/../" + "0" * 20, "0" * 100_000)
NO_VECTORS = ("", "x", "~~~~~", "00000", "0" * 1_000_000, "\0" * 5)
VECTORS = [
    *values("add", (_VECTOR,), REFUSED, 5, "x", [1], {}, {"storageType": "u"}),
    *values("add", (_VECTOR,), ANY, None),
    *values("add", (_VECTOR, "storageType"), REFUSED, None, "", "x", "U", "uu", 5, []),
    *values("add", (_VECTOR, "pathOrInlineDv"), REFUSED, None, 5, [], suits=_is_in_a_file),
    *values("add", (_VECTOR, "pathOrInlineDv"), REFUSED, *NO_UUIDS, suits=_is_in_a_file),
    *(
        made(
            "add",
            f"inline vector is {text!r:.20}",
            REFUSED,
            put((_VECTOR, "pathOrInlineDv"), text),
            suits=_is_inline,
        )
        for text in NO_VECTORS
    ),
    *values("add", (_VECTOR, "offset"), REFUSED, 0, 2, *NUMBERS, "x", suits=_is_in_a_file),
    *values("add", (_VECTOR, "offset"), EITHER, None, 1.5, suits=_is_in_a_file),
    *(
        made(
            "add",
            f"inline vector has the offset {value!r}",
            EITHER,
            put((_VECTOR, "offset"), value),
            suits=_is_inline,
        )
        for value in (0, 1, -1, 2**40, "x")
    ),
    *values("add", (_VECTOR, "sizeInBytes"), REFUSED, 0, *NUMBERS, "x", None, HUGE),
    *(made("add", f"vector is {by} longer", REFUSED, _longer(by)) for by in (-8, -1, 1, 100)),
    *values("add", (_VECTOR, "cardinality"), REFUSED, 0, 2, *NUMBERS, "x", None, HUGE),
    *values("remove", (_VECTOR,), EITHER, 5, "x", {}, [1]),
    *values(
        "remove", (_VECTOR,), ANY, {"storageType": "u", "pathOrInlineDv": z85.encode(b"1234" * 4)}
    ),
    *(
        made(
            "add",
            f"vector is at {name}",
            verdict if name == "percent signs" else REFUSED,
            _at_path(name),
        )
        for name, (_, verdict) in LOCATIONS.items()
    ),
]


# --- statistics


def _stats(**changed: Any) -> Callable[[Any, Scene], None]:
    """Return an edit of the statistics of an add: values by name, or made of what is there."""

    def edit(action: Any, scene: Scene) -> None:
        held = json.loads(action["stats"])
        for name, value in changed.items():
            held[name] = value(held.get(name)) if callable(value) else value
        action["stats"] = json.dumps(held)

    return edit


def _of_all(value: Any) -> Callable[[Any], Any]:
    return lambda held: dict.fromkeys(held, value)


TEXTS: dict[str, Any] = {
    "nothing": "",
    "null": "null",
    "a number": "5",
    "a list": "[]",
    "an object": "{}",
    "no JSON": "{",
    "nested too deep": nested("[", "]", DEEP),
    "objects nested too deep": nested('{"minValues":', "}", DEEP),
    "a text of ten megabytes": '{"numRecords": 5, "x": "' + "x" * 10_000_000 + '"}',
    "a number of many digits": '{"numRecords": ' + "9" * 9999 + "}",
    "NaN": '{"numRecords": NaN, "minValues": {"id": Infinity}}',
    "keys twice": '{"numRecords": 1, "numRecords": 2}',
    "with a NUL": '{"numRecords": 5}\0',
}
STATISTICS = [
    *values("add", ("stats",), EITHER, 5, [], {}, {"numRecords": 1}, None),
    *(
        made("add", f"stats are {name}", EITHER, put(("stats",), text), filters_lie=True)
        for name, text in TEXTS.items()
    ),
    *(
        made("add", f"numRecords is {value!r:.30}", EITHER, _stats(numRecords=value))
        for value in (0, 1, 4, "x", None, 1.5, [], HUGE, *NUMBERS)
    ),
    *(
        made("add", f"{name} are {value!r:.30}", EITHER, _stats(**{name: value}), filters_lie=True)
        for name in ("minValues", "maxValues", "nullCount")
        for value in (None, 5, "x", [], {}, {"odd": 1})
    ),
    *(
        made(
            "add",
            f"each of {name} is {value!r:.30}",
            EITHER,
            _stats(**{name: _of_all(value)}),
            filters_lie=True,
        )
        for name in ("minValues", "maxValues", "nullCount")
        for value in (None, "x", -1, 2**70, 1e308, [], {"a": {}}, True, "9" * 5000)
    ),
    *(
        made(
            "add", f"tightBounds is {value!r}", EITHER, _stats(tightBounds=value), filters_lie=True
        )
        for value in (None, True, "x", 5, [])
    ),
]

MUTATIONS = [*PATHS, *FIELDS, *VECTORS, *STATISTICS]
