"""Numbers behind the pictures of a table's files: sizes, deletes, partitions, overlapping ranges.

Comes in: a survey, arrays with one entry per data file. Goes out: a few dozen numbers and texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowlake.maintain.autopilot import depth as depths
from rowlake.maintain.autopilot.health_checks import LARGE_SHARE, SMALL_SHARE, small_files
from rowlake.model.human import human_text
from rowlake.model.plan import size_text

if TYPE_CHECKING:
    from rowlake.maintain.autopilot.survey import Survey

    Numbers = np.ndarray[Any, Any]

KB, MB, GB = 1_000, 1_000_000, 1_000_000_000
EDGES = (0, 64 * KB, 256 * KB, MB, 4 * MB, 16 * MB, 64 * MB, 256 * MB, GB)
DELETE_EDGES = (0, 1, 2, 3, 6, 11)
DELETE_LABELS = ("none", "1", "2", "3–5", "6–10", "more than 10")
RANGES_SHOWN = 120
COVERAGE_BINS = 160
COLUMNS_OFFERED = 24


@dataclass(frozen=True)
class SizeBin:
    """Data files between two sizes; `kind` is `small`, `good` or `large` by the target size."""

    label: str
    files: int
    size_in_bytes: int
    kind: str


@dataclass(frozen=True)
class Sizes:
    """The histogram of file sizes."""

    target: int
    bins: tuple[SizeBin, ...]
    small: int
    median: int


def sizes_of(survey: Survey) -> Sizes:
    """Return how large data files are; empty bins at both ends are left out."""
    found = small_files(survey)
    places = np.searchsorted(np.array(EDGES), survey.sizes, side="right") - 1
    places = np.maximum(places, 0)
    counts = np.bincount(places, minlength=len(EDGES))
    weights = np.bincount(places, survey.sizes, minlength=len(EDGES))
    filled = np.flatnonzero(counts)
    shown = range(filled[0], filled[-1] + 1) if len(filled) else range(0)
    bins = tuple(
        SizeBin(
            _bin_label(place),
            int(counts[place]),
            int(weights[place]),
            _kind(weights[place] / max(counts[place], 1), found.target),
        )
        for place in shown
    )
    middle = int(np.median(survey.sizes)) if survey.count else 0
    return Sizes(found.target, bins, found.count, middle)


def _bin_label(place: int) -> str:
    if place == len(EDGES) - 1:
        return f"{_short(EDGES[place])} and more"
    if place == 0:
        return f"up to {_short(EDGES[1])}"
    return f"{_short(EDGES[place])} – {_short(EDGES[place + 1])}"


def _short(size: int) -> str:
    return size_text(size).replace(".0 ", " ")


def _kind(size: float, target: int) -> str:
    if size < SMALL_SHARE * target:
        return "small"
    return "large" if size > LARGE_SHARE * target else "good"


@dataclass(frozen=True)
class DeletedFile:
    """A data file with rows that deletes hide."""

    location: str
    deletes: int
    rows: int
    deleted: int

    @property
    def share(self) -> float:
        """The share of its rows that is deleted."""
        return min(self.deleted / self.rows, 1.0) if self.rows else 0.0


@dataclass(frozen=True)
class Deletes:
    """How many delete files a read of a data file opens, and the data files that lost most rows."""

    bins: tuple[tuple[str, int], ...]
    touched: int
    worst: tuple[DeletedFile, ...]


def deletes_of(survey: Survey, most: int = 10) -> Deletes:
    """Return how deletes are spread over data files."""
    facts = survey.deletes
    opened = facts.positions + facts.equalities
    places = np.searchsorted(np.array(DELETE_EDGES), opened, side="right") - 1
    counts = np.bincount(places, minlength=len(DELETE_EDGES))
    share = facts.deleted / np.maximum(survey.rows, 1)
    order = np.lexsort((-opened, -share))[:most]
    worst = tuple(
        DeletedFile(
            _location(survey, int(place)),
            int(opened[place]),
            int(survey.rows[place]),
            round(float(facts.deleted[place])),
        )
        for place in order
        if opened[place]
    )
    labels = zip(DELETE_LABELS, counts.tolist(), strict=True)
    return Deletes(tuple(labels), int((opened > 0).sum()), worst)


def _location(survey: Survey, place: int) -> str:
    for table in survey.plan.data.values():
        if place < table.num_rows:
            return str(table.column("location")[place].as_py())
        place -= table.num_rows
    return ""


@dataclass(frozen=True)
class Partition:
    """One partition; `skew` is its size over that of the median partition."""

    name: str
    files: int
    rows: int
    size_in_bytes: int
    skew: float


@dataclass(frozen=True)
class Partitions:
    """Some partitions by size, the largest first, and how uneven all of them are."""

    count: int
    median: int
    largest_skew: float
    shown: tuple[Partition, ...]


def partitions_of(survey: Survey, first: int = 0, most: int = 25) -> Partitions:
    """Return partitions `first` to `first + most` by size."""
    count = survey.partition_count
    if not count:
        return Partitions(0, 0, 1.0, ())
    numbers = survey.partitions
    sizes = np.bincount(numbers, survey.sizes, minlength=count)
    rows = np.bincount(numbers, survey.rows, minlength=count)
    files = np.bincount(numbers, minlength=count)
    median = float(np.median(sizes)) or 1.0
    order = np.argsort(-sizes, kind="stable")[first : first + most]
    shown = tuple(
        Partition(
            survey.partition_name(int(place)) or "all files",
            int(files[place]),
            int(rows[place]),
            int(sizes[place]),
            float(sizes[place] / median),
        )
        for place in order
    )
    return Partitions(count, int(median), float(sizes.max() / median), shown)


@dataclass(frozen=True)
class Overlap:
    """The ranges of a column in the partition with the most files (`partition`, "" for all files).

    `counts` is how many of its `files` hold the values from left to right, between the two values
    `whole`. `starts` and `ends`, between 0 and 1 of the two values `zoomed`, are the ranges of at
    most `RANGES_SHOWN` files, those around the value that most files hold, sorted by start.
    """

    column: str
    partition: str
    files: int
    unknown: int
    depth: float | None
    whole: tuple[str, str]
    counts: Numbers
    zoomed: tuple[str, str]
    starts: Numbers
    ends: Numbers


def columns_with_order(survey: Survey) -> list[tuple[int, str]]:
    """Return the columns that a picture of ranges may be asked for: (id, name)."""
    paths = survey.view.schema.paths
    found = [(number, ".".join(paths[number])) for number in depths.plain_columns(survey)]
    return found[:COLUMNS_OFFERED]


def default_column(survey: Survey) -> int | None:
    """Return the column that the table is sorted by, or told apart by, or the first one."""
    key = depths.sort_key(survey)
    if key is not None:
        return key.source_id
    identifiers = survey.view.schema.identifier_field_ids
    partitioned = [part.source_id for part in survey.view.spec.fields]
    columns = [number for number, _ in columns_with_order(survey)]
    wanted = [*identifiers, *(number for number in columns if number not in partitioned), *columns]
    return next((number for number in wanted if depths.depth_of(survey, number)), None)


def overlap_of(survey: Survey, number: int) -> Overlap | None:
    """Return how the files' ranges of a column overlap; None where there are no bounds of it."""
    spans = depths.spans_of(survey, number)
    if spans is None or not spans.known.any():
        return None
    place, partition = _fullest(survey, spans.known)
    wanted = spans.known if place is None else spans.known & (survey.partitions == place)
    least, greatest = spans.as_numbers(wanted)
    order = np.lexsort((greatest, least))
    least, greatest = least[order], greatest[order]
    shape = _Shape(survey, number, spans.lower, spans.upper, np.flatnonzero(wanted)[order])
    starts, ends = _between(least, greatest)
    shown = _around(starts, ends)
    depth = depths.depth_of(survey, number)
    first, last = _between(least[shown], greatest[shown])
    return Overlap(
        column=spans.column,
        partition=partition,
        files=len(least),
        unknown=int((~spans.known).sum()),
        depth=None if depth is None else depth.average,
        whole=shape.ends(least, greatest, slice(None)),
        counts=_coverage(starts, ends),
        zoomed=shape.ends(least, greatest, shown),
        starts=first,
        ends=last,
    )


def _fullest(survey: Survey, known: Numbers) -> tuple[int | None, str]:
    """Return the partition with the most files; none where all have one, or there is one."""
    counts = np.bincount(survey.partitions[known], minlength=survey.partition_count)
    if (counts > 0).sum() < 2 or counts.max() < 2:
        return None, ""
    place = int(counts.argmax())
    return place, survey.partition_name(place)


def _between(least: Numbers, greatest: Numbers) -> tuple[Numbers, Numbers]:
    """Return ranges as shares of the stretch that all of them cover."""
    low, high = float(least.min()), float(greatest.max())
    width = (high - low) or 1.0
    return (least - low) / width, (greatest - low) / width


def _around(starts: Numbers, ends: Numbers) -> slice:
    """Return `RANGES_SHOWN` files in a row, in the middle those with the value that most hold."""
    if len(starts) <= RANGES_SHOWN:
        return slice(None)
    value = starts[int(_depths(starts, ends, starts).argmax())]
    middle = int(np.flatnonzero((starts <= value) & (ends >= value)).mean())
    first = min(max(middle - RANGES_SHOWN // 2, 0), len(starts) - RANGES_SHOWN)
    return slice(first, first + RANGES_SHOWN)


@dataclass(frozen=True)
class _Shape:
    """Where the texts of bounds are: `places` are the files that are looked at, in their order."""

    survey: Survey
    number: int
    lower: pa.Array
    upper: pa.Array
    places: Numbers

    def ends(self, least: Numbers, greatest: Numbers, shown: slice) -> tuple[str, str]:
        """Return the least and the greatest value of some files as text."""
        places = self.places[shown]
        low = int(places[int(least[shown].argmin())])
        high = int(places[int(greatest[shown].argmax())])
        return self._text(self.lower[low]), self._text(self.upper[high])

    def _text(self, value: pa.Scalar) -> str:
        kind = self.survey.view.schema.by_id[self.number].type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return bytes(value.as_py()).decode("utf-8", "replace")
        if pa.types.is_boolean(kind):
            return str(bool(value.as_py())).lower()
        return human_text("identity", pc.cast(value, kind) if value.type != kind else value)


def _depths(starts: Numbers, ends: Numbers, values: Numbers) -> Numbers:
    """Return how many ranges hold each value; starts are sorted."""
    begun = np.searchsorted(starts, values, side="right")
    return np.asarray(begun - np.searchsorted(np.sort(ends), values, side="left"))


def _coverage(starts: Numbers, ends: Numbers) -> Numbers:
    """Return how many ranges hold one value at most, in each of `COVERAGE_BINS` stretches."""
    middles = (np.arange(COVERAGE_BINS) + 0.5) / COVERAGE_BINS
    counts = _depths(starts, ends, middles)
    for values in (starts, ends):  # between two of these, the depth does not change
        places = np.minimum((values * COVERAGE_BINS).astype(np.int64), COVERAGE_BINS - 1)
        np.maximum.at(counts, places, _depths(starts, ends, values))
    return counts
