"""The clean test split: scores with the usual repairs beside them, reliability diagrams, conformal sets, label shift."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from varclass.report.axes import linear
from varclass.report.ensembles import ensembles
from varclass.report.figure import Sheet, columns_for, figure, section
from varclass.report.groups import Group, holding
from varclass.report.markup import Markup
from varclass.report.measures import MEASURES
from varclass.report.panel import Panel
from varclass.report.pooling import pooled, rows_of, shared_keys, span
from varclass.report.score_table import Line, score_table

METHODS = {
    "raw": "as trained",
    "temperature": "temperature scaling",
    "vector": "vector scaling",
    "mc-dropout": "Monte-Carlo dropout",
}
SCORES = ("accuracy", "nll", "ece", "ece_15", "adaptive_ece", "classwise_ece", "brier", "aurc")
BINS = ("lower", "upper", "count", "confidence", "accuracy", "low", "high")


def clean(groups: Sequence[Group]) -> Markup | None:
    """The section, or None if nothing was measured."""
    held = holding(groups, "clean")
    if not held:
        return None
    lines = [Line((group.label, name), group, "clean", method) for _, group in held for method, name in METHODS.items()]
    caption = (
        "Scaling is fitted on the validation split. NLL stands beside ECE, which an uninformative forecast can also bring to 0."
    )
    return section(
        "Clean test split",
        score_table("Scores", ("model", "method"), lines, SCORES, caption),
        ensembles([group for _, group in held]),
        reliability(held),
        conformal([group for _, group in held]),
        label_shift([group for _, group in held]),
    )


def reliability(held: Sequence[tuple[int, Group]]) -> Markup | None:
    """Accuracy against confidence, a column per group and a line per method, at the lowest seed."""
    panels, rows, ece = [], [], MEASURES["ece"]
    for method, name in METHODS.items():
        for position, group in held:
            for row in rows_of(group.first, "clean", method):
                found = row.curves.get("reliability", {column: [] for column in BINS})
                bins = [dict(zip(BINS, each, strict=True)) for each in zip(*(found[column] for column in BINS), strict=True)]
                rows += [[group.label, method, group.first.seed, row.n, *each.values()] for each in bins]
                heading = f"{group.label}, {name}: ECE {ece.cut(pooled(group, 'ece', 'clean', method))}%"
                alt = f"ECE {ece.text(row.scores['ece'])} over n = {row.n} test samples"
                panels.append((heading, diagram(bins, position, f"{group.label}, {name}", row.n, alt)))
    if not rows:
        return None
    return figure(
        "Reliability",
        panels,
        Sheet(("model", "method", "seed", "n", *BINS), rows),
        "Accuracy against confidence in bins of equal width, with Wilson's 95% intervals; on the dashed diagonal confidence is "
        "honest. Bars: the samples' share in each bin. "
        f"Drawn for seed {span(group.first.seed for _, group in held)}; the ECE above a panel is the mean over all seeds. "
        f"n = {span(row[3] for row in rows)}, {len(rows) // len(panels) - 1} bins and one for confidence 1, test split.",
        columns=columns_for(len(held)),
    )


def diagram(bins: Sequence[dict[str, Any]], series: int, label: str, n: int, alt: str) -> Markup:
    """One reliability diagram."""
    panel = Panel(linear("confidence", [0, 1], True), linear("accuracy", [0, 1], True), height=260)
    for each in bins:
        right = each["upper"] if each["upper"] > each["lower"] else 1.0
        panel.bar(each["lower"] if right > each["lower"] else 0.985, right, each["count"] / max(n, 1), "count")
    panel.rule((0, 0), (1, 1))
    points = [each for each in bins if each["count"]]
    for each in points:
        panel.whisker(each["confidence"], _number(each["low"]), _number(each["high"]), series)
    panel.line([(each["confidence"], _number(each["accuracy"])) for each in points], series)
    most = max(points, key=lambda each: each["count"], default=None)
    if most is not None:
        means = f"confidence {most['confidence']:.3f}, accuracy {_number(most['accuracy']):.3f}"
        alt += f", {len(points)} bins filled. The fullest holds {most['count']}: {means}."
    return panel.svg(f"Reliability diagram of {label}", alt)


def conformal(groups: Sequence[Group]) -> Markup | None:
    """Coverage and size of conformal sets."""
    lines = []
    for group in groups:
        for key in shared_keys([group], "clean", "conformal"):
            given = dict(key)
            cells = (
                group.label,
                {"threshold": "threshold", "aps": "APS"}.get(given["sets"], str(given["sets"])),
                "by class" if given["by_class"] else "all classes",
                f"{100 * (1 - given['alpha']):g}%",
                str(given["calibrated_on"]),
            )
            lines.append(Line(cells, group, "clean", "conformal", (key,)))
    leads = ("model", "sets", "calibrated", "target", "on validation n")
    caption = "Split-conformal sets: coverage should be at least the target, and then the smaller set is the better one."
    return score_table("Conformal sets", leads, lines, ("coverage", "size", "singleton", "empty"), caption)


def label_shift(groups: Sequence[Group]) -> Markup | None:
    """Accuracy and NLL on test samples with other class frequencies, by p(y)."""
    lines = [Line((group.label,), group, "clean", "label-prior") for group in groups]
    rows = [row for line in lines for row in line.rows]
    ratio = {row.condition.get("label_shift") for row in rows}
    caption = (
        f"Test samples drawn so that the most frequent class is {', '.join(f'{each:g}' for each in ratio if each)} times the "
        "rarest; p(y) as trained, as it truly is, and as estimated from the unlabeled samples."
    )
    if any(row.scores.get("nll_estimated") == math.inf for row in rows):
        caption += " An infinite NLL: the estimate has probability 0 for a class that occurs."
    names = ("trained", "true", "estimated")
    scores = [f"{score}_{name}" for score in ("accuracy", "nll") for name in names]
    return score_table("Label shift", ("model",), lines, scores, caption)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
