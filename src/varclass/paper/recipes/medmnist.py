"""fig:medmnist, H4: the fewer the training samples, the more VC gains in accuracy over CE, on ten sets of MedMNIST.

The figure carries no numbers in the source, and the text names no encoder. Here the trend is measured over the sets that are
at hand, whole, and over nested subsets of each: gain = a + b log10(samples) by least squares, for each seed; the claim is
b < 0. PneumoniaMNIST is there with LeNet too, which a CPU can train. Every run has the publisher's validation images held out,
however few it trains on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from varclass.data.catalogue.medmnist import MEDMNIST
from varclass.metrics.intervals import Interval, over_seeds
from varclass.paper.findings import LOWER, Cell, Check, Finding, Values
from varclass.paper.measured import Measured
from varclass.paper.reading import label_of, name_of, place_of
from varclass.paper.recipe import Experiment, Recipe
from varclass.paper.schedules import MEDICAL
from varclass.report.axes import Axis, linear, logarithmic
from varclass.report.figure import Sheet, figure, section
from varclass.report.markup import Markup
from varclass.report.measures import MEASURES
from varclass.report.panel import Panel
from varclass.report.pooling import span

CLAIM = "The fewer the training samples, the more accurate is VC than CE: the gain falls with log10 of their number"
EPOCHS = {100: 100, 300: 100, 1000: 60, 3000: 30}  # by the size of a subset
QUICK = {100: 40, 1000: 10}
SMALL = {100: 100, 300: 100, 1000: 40}  # with LeNet
GAIN, SLOPE = MEASURES["gain"], MEASURES["slope"]
OVER = "VC over CE"
BESIDE = ("ce", "vc", "pull", "smoothing")


@dataclass(frozen=True)
class Trend:
    """Gains against training samples along one line: over the subsets of a set, or over whole sets."""

    where: str
    gains: dict[float, Values]  # by training samples, then by seed
    n: int  # test samples, the fewest of a point

    @property
    def fits(self) -> dict[int, tuple[float, float]]:
        """Slope and intercept on log10(samples), for each seed that has every point."""
        seeds = set.intersection(*(set(values) for values in self.gains.values()))
        x = np.log10(list(self.gains))
        found = {seed: np.polyfit(x, [values[seed] for values in self.gains.values()], 1) for seed in sorted(seeds)}
        return {seed: (float(slope), float(intercept)) for seed, (slope, intercept) in found.items()}

    @property
    def slopes(self) -> Values:
        return {seed: slope for seed, (slope, _) in self.fits.items()}


def gain(measured: Measured, experiment: str) -> Values:
    """VC's accuracy less CE's, seed by seed."""
    vc, ce = (measured.values(experiment, arm, "accuracy") for arm in ("vc", "ce"))
    return {seed: vc[seed] - ce[seed] for seed in sorted(vc.keys() & ce.keys())}


def samples(measured: Measured, experiment: str) -> float:
    """Training samples."""
    return float(np.mean([run.record["samples"]["train"] for run in measured.of(experiment)]))


def trends(measured: Measured) -> list[Trend]:
    """A line for each set of which there are several sizes, and one over the whole sets where there are three or more."""
    lines: dict[str, dict[float, Values]] = {}
    tested: dict[str, list[int]] = {}
    for experiment in measured.experiments:
        data, encoder, *size = experiment.split("/")
        found = gain(measured, experiment)
        if found:
            for where in (f"subsets of {name_of(data)}, {encoder}", *([] if size else [f"whole sets, {encoder}"])):
                lines.setdefault(where, {})[samples(measured, experiment)] = found
                tested.setdefault(where, []).append(measured.n(experiment, "vc"))
    return [
        Trend(where, dict(sorted(gains.items())), min(tested[where]))
        for where, gains in lines.items()
        if len(gains) > (2 if where.startswith("whole") else 1)
    ]


def cells(measured: Measured) -> list[Cell]:
    held = []
    for experiment in measured.experiments:
        where = place_of(measured, experiment)
        n = measured.n(experiment, "vc")
        for arm in measured.of(experiment).arms:
            held.append(Cell(where, label_of(arm), "accuracy", measured.values(experiment, arm, "accuracy"), n=n))
        held.append(Cell(where, OVER, GAIN.key, gain(measured, experiment), n=n))
    return held + [Cell(trend.where, OVER, SLOPE.key, trend.slopes, n=trend.n) for trend in trends(measured)]


def findings(measured: Measured) -> list[Finding]:
    checks = [
        Check(trend.where, SLOPE.key, OVER, "a level line", LOWER, trend.slopes, dict.fromkeys(trend.slopes, 0.0))
        for trend in trends(measured)
    ]
    return [Finding("VC's gain in accuracy over CE falls with log10 of the number of training samples", checks, "H4")]


def figures(measured: Measured) -> Sequence[Markup | None]:
    """A panel for each line: gains with their intervals, and the trend."""
    held = trends(measured)
    if not held:
        return []
    rows = [[trend.where, n, i.mean, i.low, i.high, i.n] for trend in held for n, i in _intervals(trend)]
    caption = (
        "Accuracy of VC less that of CE: mean over seeds, bars: 95% t-intervals over seeds, cut off at the panel's edge. "
        "Line: the least-squares trend on log10(samples), the mean of the seeds' own fits; above each panel its slope. "
        "Smaller subsets lie inside larger ones of the same seed. "
        f"n = {span(measured.n(experiment, 'vc') for experiment in measured.experiments)} test samples."
    )
    sheet = Sheet(("line", "training samples", "mean", "low", "high", "seeds"), rows)
    drawn = figure(
        "Accuracy gain against training samples", [(_heading(trend), _panel(trend)) for trend in held], sheet, caption
    )
    return [section("Gain of VC over CE", drawn)]


def _intervals(trend: Trend) -> list[tuple[float, Interval]]:
    return [(n, over_seeds(list(values.values()))) for n, values in trend.gains.items()]


def _heading(trend: Trend) -> str:
    found = over_seeds(list(trend.slopes.values()))
    ends = "" if math.isnan(found.low) else f" ({SLOPE.change(found.low)} to {SLOPE.change(found.high)})"
    return f"{trend.where}: {SLOPE.change(found.mean)} points per tenfold{ends}"


def _panel(trend: Trend) -> Markup:
    points = _intervals(trend)
    panel = Panel(logarithmic("training samples", list(trend.gains)), _scale([each for _, each in points]))
    panel.rule((panel.x.low, 0.0), (panel.x.high, 0.0))
    for n, each in points:
        panel.whisker(n, each.low, each.high, 0)
        panel.line([(n, each.mean)], 0)
    if trend.fits:
        slope, intercept = np.mean(list(trend.fits.values()), axis=0)
        ends = [(n, intercept + slope * math.log10(n)) for n in (min(trend.gains), max(trend.gains))]
        panel.line(ends, 2, markers=False)
    said = "; ".join(f"{GAIN.change(each.mean)} points at {n:g}" for n, each in points)
    return panel.svg(f"Accuracy gain, {trend.where}", f"{said}.")


def _scale(found: Sequence[Interval]) -> Axis:
    """An axis around 0 and the means; of two seeds the intervals may leave it by far, and it follows them only so far."""
    reach = 2 * max(0.01, *(abs(each.mean) for each in found))
    ends = [min(max(end, -reach), reach) for each in found for end in (each.mean, each.low, each.high) if math.isfinite(end)]
    return linear("accuracy gain, points", [0.0, *ends], True)


def subset(data: str, encoder: str, size: int, epochs: int, seeds: int, arms: tuple[str, ...] = ("ce", "vc")) -> Experiment:
    """So many samples of a set."""
    changes = MEDICAL | {"data.limit": size, "training.epochs": epochs, "training.batch_size": 32}
    return Experiment(data, encoder, arms, seeds, changes=changes)


RECIPE = Recipe(
    name="medmnist",
    label="fig:medmnist",
    title="Accuracy gain against training samples, MedMNIST",
    claim=CLAIM,
    quick=(
        *(subset("pneumoniamnist", "lenet", size, epochs, 2) for size, epochs in QUICK.items()),
        Experiment("pneumoniamnist", "lenet", ("ce", "vc"), 2),
    ),
    full=(
        *(
            experiment
            for entry in MEDMNIST
            for experiment in (
                *(subset(entry.name, "resnet-18", n, epochs, 3) for n, epochs in EPOCHS.items() if n < entry.samples["train"]),
                Experiment(entry.name, "resnet-18", ("ce", "vc"), 3),
            )
        ),
        *(subset("pneumoniamnist", "lenet", n, epochs, 5, BESIDE) for n, epochs in SMALL.items()),
        Experiment("pneumoniamnist", "lenet", BESIDE, 5, changes=MEDICAL | {"training.epochs": 10}),
    ),
    cells=cells,
    findings=findings,
    figures=figures,
)
