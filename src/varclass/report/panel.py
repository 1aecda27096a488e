"""Panel: one plot as SVG, drawn in classes and CSS variables so that it follows the page's theme."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from varclass.report.axes import Axis
from varclass.report.markup import Markup, number, tag
from varclass.report.palette import color, dash, marker

LEFT, RIGHT, TOP, BOTTOM = 50, 18, 8, 40
Point = tuple[float, float]


class Panel:
    """Marks inside two axes. What is not finite is not drawn; what lies beyond an axis is cut off at it."""

    def __init__(self, x: Axis, y: Axis, width: int = 340, height: int = 240) -> None:
        self.x, self.y, self.width, self.height = x, y, width, height
        self.marks: list[Markup] = []

    def at(self, x: float, y: float) -> Point:
        """A place in the drawing."""
        across = LEFT + min(max(self.x.share(x), 0), 1) * (self.width - LEFT - RIGHT)
        return across, self.height - BOTTOM - min(max(self.y.share(y), 0), 1) * (self.height - TOP - BOTTOM)

    def line(self, points: Iterable[Point], series: int, markers: bool = True, aside: float = 0.0) -> None:
        """A line through points, with markers; `aside` moves it by so much, from under another."""
        places = [self.at(*point) for point in points if all(map(math.isfinite, point))]
        places = [(x + aside, y) for x, y in places]
        if not places:
            return
        path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in places)
        self.marks.append(tag("path", d=path, class_=f"line {color(series)}", stroke_dasharray=dash(series)))
        if markers:
            self._markers(places, series)

    def dots(self, points: Iterable[Point], series: int) -> None:
        """Points alone."""
        self._markers([self.at(*point) for point in points if all(map(math.isfinite, point))], series)

    def whisker(self, x: float, low: float, high: float, series: int, aside: float = 0.0) -> None:
        """An interval around a point."""
        if all(map(math.isfinite, (x, low, high))):
            (left, bottom), (_, top) = self.at(x, low), self.at(x, high)
            caps = f"M{number(left + aside - 3)} {number(bottom)}h6m-3 0V{number(top)}m-3 0h6"
            self.marks.append(tag("path", d=caps, class_=f"whisker {color(series)}"))

    def bar(self, left: float, right: float, height: float, class_: str) -> None:
        """A bar from the bottom of the panel."""
        if math.isfinite(height) and height > self.y.low:
            (x0, y1), (x1, y0) = self.at(left, height), self.at(right, self.y.low)
            self.marks.append(tag("rect", x=x0, y=y1, width=max(x1 - x0, 0.5), height=y0 - y1, class_=class_))

    def outline(self, points: Iterable[Point]) -> None:
        """A line in the color of text, for what is drawn over bars."""
        places = [self.at(*point) for point in points if all(map(math.isfinite, point))]
        path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in places)
        self.marks.append(tag("path", d=path, class_="outline"))

    def box(self, x: float, width: float, values: Sequence[float], series: int) -> None:
        """Quartiles as a box, the median across it, whiskers to the least and the most."""
        held = [value for value in values if math.isfinite(value)]
        if not held:
            return
        low, first, middle, third, high = (self.at(x, float(v))[1] for v in np.percentile(held, [0, 25, 50, 75, 100]))
        center = self.at(x, held[0])[0]
        half = width / 2 / (self.x.high - self.x.low) * (self.width - LEFT - RIGHT)
        stems = f"M{number(center)} {number(low)}V{number(first)}M{number(center)} {number(third)}V{number(high)}"
        across = f"M{number(center - half)} {number(middle)}h{number(2 * half)}"
        size = {"x": center - half, "y": third, "width": 2 * half, "height": max(first - third, 0.5)}
        self.marks += [
            tag("path", d=stems, class_=f"whisker {color(series)}"),
            tag("rect", **size, class_=f"box {color(series)}", stroke_dasharray=dash(series)),
            tag("path", d=across, class_=f"median {color(series)}"),
            tag("path", d=f"M{number(center)} {number(middle)}{marker(series)}", class_=f"mark {color(series)}"),
        ]

    def rule(self, start: Point, end: Point) -> None:
        """A thin line for the eye, such as the diagonal."""
        (x0, y0), (x1, y1) = self.at(*start), self.at(*end)
        self.marks.append(tag("path", d=f"M{number(x0)} {number(y0)}L{number(x1)} {number(y1)}", class_="guide"))

    def svg(self, title: str, alt: str) -> Markup:
        """The drawing; `alt` says in words what it shows."""
        view = f"0 0 {self.width} {self.height}"
        text = tag("title", title), tag("desc", alt)
        return tag(
            "svg", text, self._frame(), self.marks, viewBox=view, role="img", aria_label=f"{title}. {alt}", class_="plot"
        )

    def _markers(self, places: Sequence[Point], series: int) -> None:
        if places:
            path = "".join(f"M{number(x)} {number(y)}{marker(series)}" for x, y in places)
            self.marks.append(tag("path", d=path, class_=f"mark {color(series)}"))

    def _frame(self) -> list[Markup]:
        bottom, right = self.height - BOTTOM, self.width - RIGHT
        drawn = []
        for value, text in self.y.ticks:
            y = self.at(self.x.low, value)[1]
            drawn.append(tag("path", d=f"M{LEFT} {number(y)}H{right}", class_="grid"))
            drawn.append(tag("text", text, x=LEFT - 6, y=y + 3.5, text_anchor="end", class_="tick"))
        for value, text in self.x.ticks:
            x = self.at(value, self.y.low)[0]
            drawn.append(tag("path", d=f"M{number(x)} {bottom}v4", class_="axis"))
            drawn.append(tag("text", text, x=x, y=bottom + 16, text_anchor="middle", class_="tick"))
        middle, height = (LEFT + right) / 2, (TOP + bottom) / 2
        drawn.append(tag("path", d=f"M{LEFT} {bottom}H{right}", class_="axis"))
        drawn.append(tag("text", self.x.label, x=middle, y=self.height - 6, text_anchor="middle", class_="label"))
        turned = f"rotate(-90 11 {number(height)})"
        drawn.append(tag("text", self.y.label, x=11, y=height, transform=turned, text_anchor="middle", class_="label"))
        return drawn
