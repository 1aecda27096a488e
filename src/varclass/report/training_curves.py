"""Training curves: the terms of the loss by step, and the validation scores by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from varclass.metrics.intervals import over_seeds
from varclass.report.axes import linear
from varclass.report.figure import Sheet, figure, legend, section
from varclass.report.groups import Group
from varclass.report.markup import Markup
from varclass.report.panel import Panel

TERMS = {
    "total": "whole loss",
    "posterior": "-log p(y|z)",
    "prior": "-log p(z|y)",
    "ratio": "log density ratio T",
    "discriminator": "discriminator loss",
    "discriminator_accuracy": "discriminator accuracy",
    "label": "-log p(y)",
}
VALIDATION = {
    "nll": "validation NLL",
    "accuracy": "validation accuracy",
    "latent_mean": "latent mean, RMS (0 fits)",
    "latent_variance": "latent variance (1 fits)",
}
Curve = dict[int, dict[int, float]]  # step: seed: value


def training(groups: Sequence[Group]) -> Markup | None:
    """The section, or None if nothing was logged."""
    held = [(position, group) for position, group in enumerate(groups) if any(run.history for run in group.runs.values())]
    panels, rows = [], []
    for names, part in ((VALIDATION, "validation"), (TERMS, "")):
        for name, heading in names.items():
            curves = {position: logged(group, name, part) for position, group in held}
            if not any(curves.values()):
                continue
            labels = {position: group.label for position, group in held}
            panels.append((heading, _drawn(heading, curves, labels, name.endswith("accuracy"))))
            rows += [
                [labels[position], part or "training", name, step, seed, value]
                for position, curve in curves.items()
                for step, each in sorted(curve.items())
                for seed, value in each.items()
            ]
    if not panels:
        return None
    drawn = figure(
        "Training curves",
        panels,
        Sheet(("model", "split", "quantity", "step", "seed", "value"), rows),
        f"Means over seeds ({', '.join(str(seed) for seed in sorted({seed for _, group in held for seed in group.runs}))}) by "
        "optimizer step; whole losses of different objectives are sums of different terms, and not to be compared. "
        f"Validation n = {_validated(groups)}.",
        legend((position, group.label) for position, group in held),
    )
    return section("Training", drawn)


def logged(group: Group, name: str, part: str) -> Curve:
    """A quantity of the history: by step and seed."""
    found: Curve = {}
    for seed, run in sorted(group.runs.items()):
        for row in run.history:
            values: Mapping[str, Any] = row.get(part) or {} if part else row
            if isinstance(values.get(name), (int, float)):
                found.setdefault(int(row["step"]), {})[seed] = float(values[name])
    return found


def _drawn(heading: str, curves: Mapping[int, Curve], labels: Mapping[int, str], percent: bool) -> Markup:
    lines = {
        position: [(float(step), over_seeds(list(each.values())).mean) for step, each in sorted(curve.items())]
        for position, curve in curves.items()
    }
    steps = [step for points in lines.values() for step, _ in points]
    values = [value for points in lines.values() for _, value in points]
    panel = Panel(linear("step", [0, *steps]), linear("", values, percent, (0.0, 1.0) if percent else None), height=210)
    parts = []
    for position, points in lines.items():
        panel.line(points, position, markers=len(points) <= 20)
        if points:
            parts.append(f"{labels[position]}: from {points[0][1]:.3g} to {points[-1][1]:.3g}")
    return panel.svg(f"{heading} by step", "; ".join(parts) + ".")


def _validated(groups: Sequence[Group]) -> str:
    found = {
        row["validation"].get("n") for g in groups for run in g.runs.values() for row in run.history if "validation" in row
    }
    return " or ".join(str(n) for n in sorted(n for n in found if n is not None)) or "0"
