"""The default beside softmax at a glance: what the README shows, a row for each place of several seeds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from varclass.metrics.intervals import Interval, paired_difference
from varclass.paper import default
from varclass.paper.findings import Values
from varclass.paper.measured import Measured
from varclass.report.axes import Axis
from varclass.report.markup import Markup, number, tag
from varclass.report.palette import COLORS

PICTURE = "beside-softmax.svg"
ALT = "Accuracy, NLL and ECE of the default against softmax, place by place"
TOLD = (
    "The default against softmax in the same runs: differences of accuracy, ratios of NLL and ECE, with 95% t-intervals over "
    "seeds, paired. Rings are the same softmax after temperature scaling or, where all samples are trained on, settled by the "
    "same folds as the default."
)
DEFAULT, CALIBRATED = "default", ("CE after temperature scaling", "CE, settled")
GROUPS = ("From few samples", "From whole sets", "Corrupted, attacked or from elsewhere")
POINTS = tuple((float(points), f"{points:+d}" if points else "0") for points in (-4, -2, 0, 2, 4))


def _times(*factors: float) -> tuple[tuple[float, str], ...]:
    return tuple((math.log(factor), f"{factor:g}x") for factor in factors)


AXES = {  # a score, and how it is compared: shares in points, NLL and ECE as a multiple of softmax's
    "accuracy": Axis("accuracy, points more", -5.0, 5.0, POINTS),
    "nll": Axis("NLL, times softmax's", math.log(0.35), math.log(1.6), _times(0.4, 0.6, 0.8, 1, 1.3)),
    "ece": Axis("ECE, times softmax's", math.log(0.08), math.log(6), _times(0.1, 0.3, 1, 3)),
}
NAMES, WIDE, GAP, TALL, HEAD = 300, 190, 26, 19, 74  # pixels: the names, a column, between two, a row, above the rows
TEXT = "font-family:system-ui,sans-serif;font-size:12px"


@dataclass(frozen=True)
class Mark:
    """A model's score against softmax's, seed by seed, on the axis of its column: above 0 is more."""

    found: Interval
    better: int

    @property
    def color(self) -> str:
        """Of which side its interval lies on."""
        if self.found.low <= 0 <= self.found.high:
            return "quiet"
        return "good" if self.better * self.found.mean > 0 else "bad"


def against(score: str, values: Values, others: Values) -> Interval:
    """The difference to softmax seed by seed, in points or as the log of a ratio."""
    seeds = sorted(values.keys() & others.keys())
    one, two = ([held[seed] for seed in seeds] for held in (values, others))
    if score == "accuracy":
        return paired_difference(100 * np.array(one), 100 * np.array(two))
    return paired_difference(np.log(one), np.log(two))


def rows(measured: Mapping[str, Measured]) -> Iterator[tuple[str, str, int, dict[str, list[Mark]]]]:
    """Of each place of several seeds: group, name, seeds, and by score the marks of the default and of calibrated softmax."""
    for place in default.places(measured):
        held = place.scores
        if len(held["accuracy"][DEFAULT]) < 2:
            continue
        group = GROUPS[2] if place.view.said else GROUPS[0] if "samples" in place.where else GROUPS[1]
        marks = {}
        for score in AXES:
            softmax = held[score]["CE"]
            models = [held[score][DEFAULT], next((held[score][name] for name in CALIBRATED if held[score][name]), {})]
            better = 1 if score == "accuracy" else -1
            marks[score] = [Mark(against(score, values, softmax), better) for values in models if values]
        yield group, place.where, len(held["accuracy"][DEFAULT]), marks


def picture(measured: Mapping[str, Measured]) -> str:
    """All of it as SVG, that needs nothing else."""
    held = list(rows(measured))
    drawn, y = [*_legend()], HEAD
    for group in GROUPS:
        of_group = [row for row in held if row[0] == group]
        if not of_group:
            continue
        drawn.append(_text(0, y + 14, group, weight="bold"))
        y += TALL + 4
        for _, where, seeds, marks in of_group:
            drawn.append(_text(0, y + 13, where))
            drawn.append(_text(NAMES - 12, y + 13, f"{seeds}", anchor="end", color="quiet"))
            for column, (score, pair) in enumerate(marks.items()):
                for mark, hollow in reversed(list(zip(pair, (False, True), strict=False))):
                    drawn.append(_mark(AXES[score], column, y + TALL / 2, mark, hollow))
            y += TALL
        y += 8
    width, height = NAMES + len(AXES) * (WIDE + GAP), y + 8
    frame = [each for column, axis in enumerate(AXES.values()) for each in _frame(axis, column, y)]
    paper = tag("rect", width=width + 24, height=height, x=-12, y=0, fill=COLORS["paper"][0])
    own = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"-12 0 {width + 24} {height}", "style": TEXT}
    return tag("svg", tag("title", ALT), paper, frame, drawn, **own) + "\n"


def _at(axis: Axis, column: int, value: float) -> float:
    return NAMES + column * (WIDE + GAP) + WIDE * min(max(axis.share(value), 0.0), 1.0)


def _frame(axis: Axis, column: int, bottom: float) -> Iterator[Markup]:
    left = _at(axis, column, axis.low)
    yield _text(left + WIDE / 2, HEAD - 28, axis.label, anchor="middle", weight="bold")
    for value, text in axis.ticks:
        x = _at(axis, column, value)
        zero = value == 0
        yield tag("path", d=f"M{number(x)} {HEAD - 4}V{number(bottom)}", stroke=COLORS["ink" if zero else "rule"][0])
        yield _text(x, HEAD - 10, text, anchor="middle", color="quiet")


def _mark(axis: Axis, column: int, y: float, mark: Mark, hollow: bool) -> Markup:
    x, low, high = (_at(axis, column, value) for value in (mark.found.mean, mark.found.low, mark.found.high))
    ink = COLORS["quiet" if hollow else mark.color][0]
    if hollow:
        return tag("circle", cx=x, cy=y, r=4.5, fill="none", stroke=ink)
    bar = tag("path", d=f"M{number(low)} {number(y)}H{number(high)}", stroke=ink, stroke_width=2)
    return tag("g", bar, tag("circle", cx=x, cy=y, r=3.5, fill=ink))


def _legend() -> Iterator[Markup]:
    said = {
        "good": "better than softmax",
        "quiet": "no clear difference",
        "bad": "worse than softmax",
        "": "softmax, calibrated",
    }
    for place, (name, text) in enumerate(said.items()):
        x, quiet = 5 + 170.0 * place, COLORS["quiet"][0]
        dot = {"r": 3.5, "fill": COLORS[name][0]} if name else {"r": 4.5, "fill": "none", "stroke": quiet}
        yield tag("circle", cx=x, cy=20, **dot)
        yield _text(x + 10, 24, text)
    yield _text(NAMES - 12, HEAD - 28, "seeds", anchor="end", color="quiet")


def _text(x: float, y: float, text: str, anchor: str = "start", color: str = "ink", weight: str | None = None) -> Markup:
    return tag("text", text, x=float(x), y=float(y), text_anchor=anchor, fill=COLORS[color][0], font_weight=weight)
