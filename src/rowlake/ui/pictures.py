"""Pictures as SVG: bars beside labels, commits over time, ranges of files.

Shapes stretch with the page; all text is HTML beside them, so that it stays readable on a narrow
screen and to a screen reader.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowlake.ui.markup import Element, Node, el

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    Numbers = np.ndarray[Any, Any]

WIDTH, HEIGHT = 1000, 100
FEW_RANGES = 20


@dataclass(frozen=True)
class Bar:
    """One bar: its label, how long it is, what is said beside it, and its colour (`kind`)."""

    label: Node
    value: float
    said: Node
    kind: str = "plain"


def bars(caption: str, heads: tuple[str, str, str], rows: Sequence[Bar]) -> Element:
    """Return bars as a table: label, bar, number."""
    most = max((row.value for row in rows), default=0) or 1
    lines = [
        el(
            "tr",
            el("th", row.label, scope="row"),
            el("td", _bar(row.value / most, row.kind), class_="bar"),
            el("td", row.said, class_="number"),
        )
        for row in rows
    ]
    named = (
        el("th", heads[0], scope="col"),
        el("th", heads[1], scope="col", class_="bar"),
        el("th", heads[2], scope="col", class_="number"),
    )
    return el(
        "table",
        el("caption", caption, class_="unseen"),
        el("thead", el("tr", *named)),
        el("tbody", *lines),
        class_="bars",
    )


def _bar(share: float, kind: str) -> Element:
    width = max(share * WIDTH, 4.0) if share > 0 else 0.0
    return _canvas(
        10, el("rect", x=0, y=0, width=width, height=10, class_=f"fill-{kind}"), class_="track"
    )


def _canvas(height: int, *shapes: Element, class_: str, label: str | None = None) -> Element:
    return el(
        "svg",
        *shapes,
        viewBox=f"0 0 {WIDTH} {height}",
        preserveAspectRatio="none",
        class_=class_,
        role="img" if label else None,
        aria_label=label,
        aria_hidden=None if label else "true",
        focusable="false",
    )


def stacked(label: str, columns: Sequence[Sequence[int]], kinds: Sequence[str]) -> Element:
    """Return columns over time, each a stack of counts, one per kind."""
    most = max((sum(column) for column in columns), default=0) or 1
    step = WIDTH / max(len(columns), 1)
    shapes = []
    for place, column in enumerate(columns):
        top = float(HEIGHT)
        for count, kind in zip(column, kinds, strict=True):
            height = count / most * HEIGHT
            top -= height
            if count:
                shapes.append(_block(place * step + 1, top, step - 2, height, kind))
    return _canvas(HEIGHT, *shapes, class_="stacked", label=label)


def _block(x: float, y: float, width: float, height: float, kind: str) -> Element:
    return el("rect", x=x, y=y, width=max(width, 1), height=height, class_=f"fill-{kind}")


def coverage(label: str, counts: Numbers) -> Element:
    """Return how many files hold the values from left to right, as an area."""
    most = max(float(counts.max()) if len(counts) else 0.0, 1.0)
    step = WIDTH / max(len(counts), 1)
    points = [f"0,{HEIGHT}"]
    for place, count in enumerate(counts.tolist()):
        y = HEIGHT - count / most * (HEIGHT - 4)
        points += [f"{place * step:.1f},{y:.1f}", f"{(place + 1) * step:.1f},{y:.1f}"]
    points.append(f"{WIDTH},{HEIGHT}")
    area = el("polygon", points=" ".join(points), class_="fill-depth")
    return _canvas(HEIGHT, area, class_="coverage", label=label)


def ranges(label: str, starts: Numbers, ends: Numbers) -> Element:
    """Return ranges between 0 and 1 as lines below each other."""
    shapes = [
        el(
            "rect",
            x=start * WIDTH,
            y=place * 4,
            width=max((end - start) * WIDTH, 3.0),
            height=3,
            class_="fill-range" if place % 2 == 0 else "fill-other",
        )
        for place, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True))
    ]
    tall = "ranges tall" if len(starts) > FEW_RANGES else "ranges"
    return _canvas(max(len(starts) * 4, 4), *shapes, class_=tall, label=label)
