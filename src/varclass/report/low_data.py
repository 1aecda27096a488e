"""Few training samples: scores against the size of the training set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from varclass.report.axes import logarithmic
from varclass.report.curves import lines_figure
from varclass.report.figure import section
from varclass.report.groups import Group
from varclass.report.markup import Markup
from varclass.report.measures import MEASURES
from varclass.report.pooling import counts, pooled
from varclass.report.score_table import Line, score_table


def low_data(groups: Sequence[Group]) -> Markup | None:
    """The section, or None if no group has training sets of several sizes."""
    if not any(len(group.sizes) > 1 for group in groups):
        return None
    sized = {i: [replace(group, runs=runs) for runs in group.sizes] for i, group in enumerate(groups)}
    panels = []
    for score in ("accuracy", "nll", "ece"):
        curves = {i: [(trained_on(part), pooled(part, score, "clean")) for part in parts] for i, parts in sized.items()}
        panels.append((MEASURES[score].name, MEASURES[score], curves))
    sizes = [trained_on(part) for parts in sized.values() for part in parts]
    lines = [Line((part.label, f"{trained_on(part):g}"), part, "clean") for parts in sized.values() for part in parts]
    n = counts(groups[0] if groups[0].runs else next(group for group in groups if group.runs), "clean")
    caption = (
        "Clean test split, as trained; validation samples are not counted. Mean over seeds; bars: "
        f"95% t-intervals over seeds, where there are several. n = {n} test samples, {_bins(groups)} bins."
    )
    return section(
        "Few training samples",
        lines_figure(
            "Low-data curves",
            logarithmic("training samples", sizes),
            panels,
            {i: group.label for i, group in enumerate(groups)},
            caption,
        ),
        score_table("Scores by training samples", ("model", "training samples"), lines, ("accuracy", "nll", "ece", "brier")),
    )


def trained_on(group: Group) -> float:
    """Training samples, the mean over its runs: splits of different seeds may differ by a few."""
    return round(sum(run.samples for run in group.runs.values()) / len(group.runs), 1)


def _bins(groups: Sequence[Group]) -> str:
    found = {row.scores["bins"] for group in groups for row in Line((), group, "clean").rows if "bins" in row.scores}
    return ", ".join(f"{each:g}" for each in sorted(found)) or "no"
