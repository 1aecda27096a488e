"""Samples of other data sets against the test split: how far each score tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from varclass.report.axes import linear
from varclass.report.comparing import MEASURED, SCORES, outlier_name
from varclass.report.figure import Sheet, columns_for, figure, legend, section
from varclass.report.groups import Group, holding
from varclass.report.markup import Markup, tag
from varclass.report.measures import MEASURES
from varclass.report.panel import Panel
from varclass.report.pooling import rows_of, shared_keys
from varclass.report.reading import Row
from varclass.report.score_table import Line, score_table

Held = Sequence[tuple[int, Group]]
COLUMNS = ("auroc", "aupr_in", "aupr_out", "fpr95")


def outliers(groups: Sequence[Group]) -> Markup | None:
    """The section, or None if nothing was measured."""
    held = holding(groups, "ood")
    keys = [key for _, group in held for key in shared_keys([group], "ood")]
    if not keys:
        return None
    pairs = dict.fromkeys((dict(key)["set"], dict(key)["score"]) for key in keys)
    lines = [
        Line(
            (group.label, outlier_name(name), SCORES.get(score, score)),
            group,
            "ood",
            "raw",
            None,
            {"set": name, "score": score},
        )
        for name, score in pairs
        for _, group in held
    ]
    caption = (
        "Inside (the test split) is the positive side; n counts both. FPR95: the share of outliers that 95% recall lets in. "
        "Every score is turned so that higher is more like the test split: "
        f"{'; '.join(dict.fromkeys(MEASURED.get(score, score) for _, score in pairs))}."
    )
    drawn = []
    for name in dict.fromkeys(name for name, _ in pairs):
        scores = [score for each, score in pairs if each == name]
        drawn += [roc(held, name, scores), histograms(held, name, scores)]
    return section("Outliers", score_table("Detection", ("model", "outliers", "score"), lines, COLUMNS, caption), *drawn)


def roc(held: Held, name: str, scores: Sequence[str]) -> Markup | None:
    """A panel per score, a curve per group, at its lowest seed."""
    panels, rows = [], []
    for score in scores:
        panel = Panel(linear("outliers let in", [0, 1], True), linear("test samples kept", [0, 1], True), height=260)
        panel.rule((0, 0), (1, 1))
        parts = []
        for position, group in held:
            for row in _with("roc", group, set=name, score=score):
                points = list(zip(row.curves["roc"]["fpr"], row.curves["roc"]["tpr"], strict=True))
                panel.line(points, position, markers=False)
                rows += [[group.label, score, group.first.seed, row.n, fpr, tpr] for fpr, tpr in points]
                parts.append(f"{group.label}: AUROC {MEASURES['auroc'].text(row.scores['auroc'])}")
        heading = SCORES.get(score, score)
        panels.append((heading, panel.svg(f"ROC curves by {heading}", "; ".join(parts) + ".")))
    if not rows:
        return None
    return figure(
        f"ROC curves, {outlier_name(name)}",
        panels,
        Sheet(("model", "score", "seed", "n", "fpr", "tpr"), rows),
        f"{_about(held, name)} The dashed diagonal is guessing.",
        legend((position, group.label) for position, group in held),
    )


def histograms(held: Held, name: str, scores: Sequence[str]) -> Markup | None:
    """A panel per score and group, at its lowest seed: shares of each side in the same bins."""
    panels, rows = [], []
    for score in scores:
        for position, group in held:
            for row in _with("histograms", group, set=name, score=score):
                found = row.curves["histograms"]
                bins = list(zip(found["edges"][:-1], found["edges"][1:], found["inside"], found["outside"], strict=True))
                rows += [[group.label, score, group.first.seed, *each] for each in bins]
                heading = f"{SCORES.get(score, score)}, {group.label}"
                if all(low is not None and high is not None for low, high, _, _ in bins):
                    panels.append((heading, _histogram(bins, position, heading, MEASURED.get(score, "score"))))
    if not panels:
        return None
    keys = [
        tag("li", tag("span", class_="key-inside", aria_hidden="true"), "test split (filled)"),
        tag("li", tag("span", class_="key-outside", aria_hidden="true"), f"{outlier_name(name)} (outline)"),
    ]
    return figure(
        f"Score histograms, {outlier_name(name)}",
        panels,
        Sheet(("model", "score", "seed", "low", "high", "inside", "outside"), rows),
        f"{_about(held, name)} The outermost 1% at each end is counted in the last bin.",
        tag("ul", keys, class_="legend"),
        columns=columns_for(len(held)),
    )


def _histogram(bins: Sequence[tuple[float, float, int, int]], series: int, heading: str, label: str) -> Markup:
    totals = [max(sum(each[side] for each in bins), 1) for side in (2, 3)]
    shares = [(low, high, inside / totals[0], outside / totals[1]) for low, high, inside, outside in bins]
    edges = [edge for low, high, _, _ in shares for edge in (low, high)]
    x = linear(label, edges)
    top = max(max(inside, outside) for _, _, inside, outside in shares)
    panel = Panel(x, linear("share", [0, top], True), height=190)
    for low, high, inside, _ in shares:
        panel.bar(low, high, inside, f"fill c{series % 8}")
    panel.outline([(edge, outside) for low, high, _, outside in shares for edge in (low, high)])
    middles = [max(shares, key=lambda each: each[side]) for side in (2, 3)]
    alt = " ".join(
        f"Most of {side} lie near {(low + high) / 2:.3g}."
        for side, (low, high, _, _) in zip(("the test samples", "the outliers"), middles, strict=True)
    )
    return panel.svg(f"Histograms of {heading}", alt)


def _with(curve: str, group: Group, **match: Any) -> list[Row]:
    return [row for row in rows_of(group.first, "ood", **match) if curve in row.curves]  # results may leave curves out


def _about(held: Held, name: str) -> str:
    rows: list[Any] = [row for _, group in held for row in rows_of(group.first, "ood", set=name)]
    seeds = sorted({group.first.seed for _, group in held})
    outside = sorted({int(row.scores.get("n_out", 0)) for row in rows})
    total = sorted({row.n for row in rows})
    inside = sorted({n - out for n in total for out in outside if n - out > 0})
    return (
        f"Seed {', '.join(map(str, seeds))}; {' or '.join(map(str, inside))} test samples and "
        f"{' or '.join(map(str, outside))} outliers."
    )
