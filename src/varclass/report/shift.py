"""Corrupted test images: scores against severity as box plots over the types of corruption."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from varclass.metrics.intervals import over_seeds
from varclass.report.axes import linear, slots
from varclass.report.figure import Sheet, figure, legend, section
from varclass.report.groups import Group, holding
from varclass.report.markup import Markup
from varclass.report.measures import MEASURES, Measure
from varclass.report.panel import Panel
from varclass.report.pooling import Key, by_seed, shared_keys, span
from varclass.report.score_table import Line, score_table

PANELS = (("accuracy", "raw"), ("nll", "raw"), ("ece", "raw"), ("ece", "temperature"))
Held = Sequence[tuple[int, Group]]
Boxes = dict[tuple[int, int], list[float]]  # by series and severity: a value for each type
NAMES = {"raw": "as trained", "temperature": "temperature scaling"}


def shift(groups: Sequence[Group]) -> Markup | None:
    """The section, or None if nothing was measured."""
    held = holding(groups, "shift")
    keys = shared_keys([group for _, group in held], "shift")
    if not keys:
        return None
    lines = [Line((group.label, NAMES[method]), group, "shift", method, tuple(keys)) for _, group in held for method in NAMES]
    types = len({dict(key)["type"] for key in keys})
    source = "published arrays" if any(dict(key).get("published") for key in keys) else "generated, in the manner of CIFAR-C"
    over = f"{types} types and severities {', '.join(map(str, severities_of(keys)))} ({source})"
    caption = f"Mean over {over}; scaling fitted on clean validation data."
    return section(
        "Corrupted images",
        score_table("Scores over all corruptions", ("model", "method"), lines, ("accuracy", "nll", "ece", "brier"), caption),
        boxes(held, keys),
    )


def severities_of(keys: Sequence[Key]) -> list[int]:
    """The severities there are, mildest first."""
    return sorted({dict(key)["severity"] for key in keys})


def boxes(held: Held, keys: Sequence[Key]) -> Markup:
    """A box per group and severity: its values are the types, each a mean over seeds."""
    severities, panels, rows = severities_of(keys), [], []
    for score, method in PANELS:
        found, lines = _by_severity(held, keys, score, method)
        rows += lines
        if found:
            heading = MEASURES[score].name + ("" if method == "raw" else f", {NAMES[method]}")
            alt = _alt(held, found, severities, MEASURES[score])
            panels.append((heading, _drawn(held, found, severities, MEASURES[score]).svg(f"{heading} against severity", alt)))
    measured = [row for _, group in held for row in Line((), group, "shift", "raw", tuple(keys)).rows]
    seeds = sorted({seed for _, group in held for seed in group.runs})
    return figure(
        "Severity",
        panels,
        Sheet(("model", "method", "score", "type", "severity", "mean", "sd", "seeds", "seed:value"), rows),
        "Boxes: quartiles over the types of corruption, each a mean over seeds; whiskers: the lowest and the highest type. "
        f"n = {span(row.n for row in measured)} test samples of each type and severity, "
        f"{span(row.scores['bins'] for row in measured if 'bins' in row.scores)} bins, seeds {', '.join(map(str, seeds))}.",
        legend((position, group.label) for position, group in held),
    )


def _by_severity(held: Held, keys: Sequence[Key], score: str, method: str) -> tuple[Boxes, list[list[Any]]]:
    found: Boxes = {}
    rows = []
    for position, group in held:
        for key in keys:
            each = by_seed(group, score, "shift", method, keys=[key])
            if each:
                given, mean = dict(key), over_seeds(list(each.values()))
                found.setdefault((position, given["severity"]), []).append(mean.mean)
                values = " ".join(f"{seed}:{value!r}" for seed, value in each.items())
                where = [given["type"], given["severity"]]
                rows.append([group.label, method, score, *where, mean.mean, mean.sd, mean.n, values])
    return found, rows


def _drawn(held: Held, found: Boxes, severities: Sequence[int], measure: Measure) -> Panel:
    values = [value for each in found.values() for value in each]
    limits = (0.0, 1.0 if measure.percent else math.inf)
    panel = Panel(slots("severity", severities), linear(measure.name, values, measure.percent, limits))
    width, order = 0.8 / len(held), [position for position, _ in held]
    for (position, severity), each in found.items():
        aside = (order.index(position) - (len(held) - 1) / 2) * width
        panel.box(severities.index(severity) + aside, width * 0.72, each, position)
    return panel


def _alt(held: Held, drawn: Boxes, severities: Sequence[int], measure: Measure) -> str:
    parts = []
    for position, group in held:
        ends = [drawn.get((position, severity), []) for severity in (severities[0], severities[-1])]
        if all(ends):
            first, last = (measure.text(sorted(each)[len(each) // 2]) for each in ends)
            parts.append(f"{group.label}: median {first} at severity {severities[0]}, {last} at severity {severities[-1]}")
    return "; ".join(parts) + "."
