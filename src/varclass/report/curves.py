"""Line figures: means over seeds with their intervals, a line per group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from varclass.metrics.intervals import Interval
from varclass.report.axes import Axis, linear
from varclass.report.figure import Sheet, figure, legend
from varclass.report.markup import Markup
from varclass.report.measures import Measure
from varclass.report.panel import Panel

Curves = Mapping[int, Sequence[tuple[float, Interval]]]  # by series: x and the interval there


def lines_figure(
    title: str, x: Axis, panels: Sequence[tuple[str, Measure, Curves]], labels: Mapping[int, str], caption: str
) -> Markup:
    """A panel for each heading: lines through the means, whiskers for the intervals."""
    drawn, rows = [], []
    for heading, measure, curves in panels:
        panel = Panel(x, _scale(measure, curves))
        parts = []
        for order, (position, points) in enumerate(curves.items()):
            aside = 3.5 * (order - (len(curves) - 1) / 2)  # or intervals at the same place would hide each other
            found = [(place, interval) for place, interval in points if interval.n]
            rows += [[labels[position], heading, place, i.mean, i.low, i.high, i.n] for place, i in found]
            for place, interval in found:
                panel.whisker(place, interval.low, interval.high, position, aside)
            panel.line([(place, interval.mean) for place, interval in found], position, aside=aside)
            if found:
                ends = [f"{measure.text(interval.mean)} at {place:g}" for place, interval in (found[0], found[-1])]
                parts.append(f"{labels[position]}: {' to '.join(dict.fromkeys(ends))}")
        drawn.append((heading, panel.svg(f"{heading} against {x.label}", "; ".join(parts) + ".")))
    columns = ("model", "panel", x.label, "mean", "low", "high", "seeds")
    return figure(title, drawn, Sheet(columns, rows), caption, legend(labels.items()))


def _scale(measure: Measure, curves: Curves) -> Axis:
    """Intervals may leave the means' range by far with two seeds; the axis follows them only so far."""
    means = [i.mean for points in curves.values() for _, i in points if math.isfinite(i.mean)] or [0.0, 1.0]
    reach = max(means) - min(means) or abs(means[0]) or 1.0
    ends = [end for points in curves.values() for _, i in points for end in (i.low, i.high) if math.isfinite(end)]
    ends = [min(max(end, min(means) - reach), max(means) + reach) for end in ends]
    limits = (0.0, 1.0) if measure.percent else (0.0, math.inf) if measure.better < 0 else None
    if limits is not None:
        ends = [min(max(end, limits[0]), limits[1]) for end in ends]
    return linear(measure.name, [*means, *ends], measure.percent, (0.0, 1.0) if measure.percent else None)
