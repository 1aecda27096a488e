"""tab:few_shot, H4: trained on 500 MNIST, 1000 CIFAR-10 or 50 AG News samples, VC is more accurate than CE.

All of these samples are trained on: none is held out. The default cross-fits, with five more models, and so does "CE,
settled": softmax with all that settles the default. The paper names no encoder here. That of AG News is a small Transformer
from scratch ("text"): the order of the models can be compared with the paper's there, the numbers cannot.
"""

from __future__ import annotations

from collections.abc import Sequence

from varclass.metrics.intervals import Interval
from varclass.paper.findings import HIGHER, MARGIN, Cell, Check, Finding, Published
from varclass.paper.measured import Measured
from varclass.paper.reading import checks_of, label_of, place_of
from varclass.paper.recipe import Experiment, Recipe
from varclass.report.axes import linear, slots
from varclass.report.figure import Sheet, figure, legend, section
from varclass.report.markup import Markup
from varclass.report.panel import Panel
from varclass.report.pooling import span

CLAIM = (
    "Trained on few samples, VC is more accurate than CE on MNIST, CIFAR-10 and AG News; GM is too, and VC is no worse than GM"
)
ARMS = ("ce", "gm", "vc")
BESIDE = (*ARMS, "authors", "pull", "smoothing", "ce-settled")
PAPER = {  # accuracy and standard error over 5 runs
    "mnist": {"ce": (0.931, 0.002), "gm": (0.944, 0.001), "vc": (0.942, 0.002)},
    "cifar10": {"ce": (0.527, 0.005), "gm": (0.542, 0.006), "vc": (0.563, 0.006)},
    "ag_news": {"ce": (0.563, 0.053), "gm": (0.615, 0.029), "vc": (0.663, 0.046)},
}
NAMES = ("ours", "the paper's")
ALL = {"data.validation": 0.0}  # nothing is held out
MNIST = ALL | {"data.limit": 500}
CIFAR = ALL | {"data.limit": 1000}
NEWS = ALL | {"data.limit": 50, "training.epochs": 100, "training.batch_size": 10}


def published(experiment: str, arm: str) -> Published | None:
    """The paper's accuracy of a model on this data."""
    found = PAPER.get(experiment.partition("/")[0], {}).get(arm)
    return None if found is None else Published(*found, "se")


def cells(measured: Measured) -> list[Cell]:
    return [
        Cell(
            place_of(measured, experiment),
            label_of(arm),
            score,
            measured.values(experiment, arm, score),
            published(experiment, arm) if score == "accuracy" else None,
            measured.n(experiment, arm),
        )
        for experiment in measured.experiments
        for score in ("accuracy", "nll", "ece")
        for arm in measured.of(experiment).arms
    ]


def findings(measured: Measured) -> list[Finding]:
    def higher(arm: str, against: str) -> list[Check]:
        return [
            check
            for experiment in measured.experiments
            for check in checks_of(measured, experiment, "accuracy", HIGHER, arm=arm, against=against)
        ]

    return [
        Finding("VC is more accurate than CE", higher("vc", "ce"), "H4"),
        Finding("GM is more accurate than CE: the prior helps where data is scarce", higher("gm", "ce")),
        Finding("VC's accuracy is at least GM's, to one point", [no_worse(check) for check in higher("vc", "gm")]),
        Finding("Beyond the paper: the default is more accurate than CE", higher("pull", "ce")),
    ]


def no_worse(check: Check) -> Check:
    """Whether a model is better than another less the margin: at least as good, as far as so many seeds can tell."""
    others = {seed: value - MARGIN for seed, value in check.others.items()}
    return Check(check.where, check.score, check.arm, f"{check.against} less one point", check.says, check.values, others)


def figures(measured: Measured) -> Sequence[Markup | None]:
    """Accuracy of each model, the paper's beside ours; a panel for each data set."""
    held = [cell for cell in cells(measured) if cell.score == "accuracy"]
    panels = [(where, drawn([cell for cell in held if cell.where == where])) for where in dict.fromkeys(c.where for c in held)]
    rows = [[c.where, c.arm, who, i.mean, i.low, i.high] for c in held for who, i in zip(NAMES, points(c), strict=True) if i.n]
    caption = (
        "Ours: mean over seeds with the 95% t-interval. The paper's: mean and standard error over 5 runs. "
        "All of these samples are trained on; the paper names no encoder; that of AG News learns from scratch here. "
        f"n = {span(cell.n for cell in held)} test samples."
    )
    if not rows:
        return []
    sheet = Sheet(("data", "model", "whose", "mean", "low", "high"), rows)
    return [
        section("Accuracy", figure("Accuracy from few samples", panels, sheet, caption, legend(enumerate(NAMES), line=False)))
    ]


def points(cell: Cell) -> tuple[Interval, Interval]:
    """Our number and the paper's, each with its interval."""
    paper, nan = cell.paper, float("nan")
    if paper is None:
        return cell.ours, Interval(nan, nan, nan, nan, 0, nan)
    return cell.ours, Interval(paper.value, paper.value - paper.spread, paper.value + paper.spread, nan, 5, nan)


def drawn(held: Sequence[Cell]) -> Markup:
    """One panel: the models side by side."""
    ends = [end for cell in held for each in points(cell) for end in (each.mean, each.low, each.high)]
    panel = Panel(slots("", [cell.arm for cell in held]), linear("accuracy", ends, True, (0.0, 1.0)))
    for place, cell in enumerate(held):
        for series, each in enumerate(points(cell)):
            aside = 12 * series - 6
            panel.whisker(place, each.low, each.high, series, aside)
            panel.line([(place, each.mean)], series, aside=aside)
    said = [f"{cell.arm} {cell.measure.text(cell.ours.mean)}" for cell in held]
    return panel.svg(f"Accuracy, {held[0].where}", f"Ours: {', '.join(said)}.")


RECIPE = Recipe(
    name="low-data",
    label="tab:few_shot",
    title="Few training samples",
    claim=CLAIM,
    quick=(
        Experiment("mnist", "lenet", ARMS, 2, changes=MNIST | {"training.epochs": 30}),
        Experiment("cifar10", "lenet", ARMS, 2, changes=CIFAR | {"training.epochs": 15}),
        Experiment("ag_news", "text", ARMS, 2, changes=NEWS | {"training.epochs": 50}),
    ),
    full=(
        Experiment("mnist", "lenet", BESIDE, 5, changes=MNIST),
        Experiment("cifar10", "resnet-18", BESIDE, 5, changes=CIFAR),
        Experiment("ag_news", "text", BESIDE, 5, changes=NEWS),
        Experiment("fashion_mnist", "lenet", BESIDE, 5, changes=MNIST),  # not in the paper
    ),
    cells=cells,
    findings=findings,
    figures=figures,
)
