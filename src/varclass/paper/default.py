"""The library's default beside softmax in the same runs: its numbers, and the targets it reached or missed, with the margin.

The paper has no part in this. CE is `nn.Linear` and cross-entropy with the same encoder, data, schedule, epochs and seeds;
temperature scaling is fitted on the same held-out samples that settle the default's sigma.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from varclass.metrics.intervals import Interval, over_seeds, paired_difference
from varclass.paper.findings import Cell, Values
from varclass.paper.measured import DIGITS, Measured
from varclass.paper.reading import label_of, place_of
from varclass.paper.wording import ours
from varclass.report.measures import MEASURES
from varclass.report.pooling import span

DEFAULT, SOFTMAX = "pull", "ce"
COLUMNS = {
    "CE": ("ce", "raw"),
    "CE after temperature scaling": ("ce", "temperature"),
    "CE, settled": ("ce-settled", "raw"),
    "CE, label smoothing": ("smoothing", "raw"),
    "GM": ("gm", "raw"),
    "VC": ("vc", "raw"),
    "default": ("pull", "raw"),
}
SCORES = ("accuracy", "nll", "ece")
TEXTS = "minilm"  # no recipe: benchmarks/minilm.py
CLEAN = ("calibration", "low-data", "medmnist", "natural-shift", TEXTS)
READ = (*CLEAN, "corruptions", "adversarial", "ood")


@dataclass(frozen=True)
class View:
    """Where the models are compared: a suite of a recipe, the conditions whose rows are averaged, and what is said of it."""

    recipe: str
    suite: str = "clean"
    said: str = ""
    match: Mapping[str, Any] = field(default_factory=dict)


VIEWS = (
    *(View(name) for name in CLEAN),
    View("natural-shift", "natural", ", tested on MultiNLI", {"split": "mnli"}),
    View("corruptions", "shift", ", corrupted"),
    View(
        "adversarial",
        "adversarial",
        ", FGSM 2/255",
        {"attack": "fgsm", "epsilon": float(f"{2 / 255:.{DIGITS}g}"), "loss": "posterior"},
    ),
)
HALF = ("cifar100", "mnist", "fashion_mnist")  # where the ECE is to be at most half
GAINS = {"mnist": 0.025, "fashion_mnist": 0.02, "cifar10": 0.03}  # of accuracy from few samples
UNDER_CORRUPTION = 0.7
AIMS = {"cifar10": 0.007, "cifar100": 0.02}  # ECE, with WRN-28-10
FAR_OUT = 0.98  # AUROC against SVHN by log p(z)


@dataclass(frozen=True)
class Target:
    """The default's score is to be `wanted` or better, which CE's own score may decide: `factor` times it, plus `more`."""

    what: str
    where: str
    score: str
    values: Values
    others: Values
    factor: float = 1.0
    more: float = 0.0
    wanted: float | None = None  # a number of its own
    strict: bool = True  # the mean has to reach it; otherwise its interval

    @property
    def gap(self) -> Interval:
        """The default's score less what it has to reach, seed by seed."""
        seeds = sorted(self.values.keys() & self.others.keys())
        goal = [self.factor * self.others[seed] + self.more if self.wanted is None else self.wanted for seed in seeds]
        return paired_difference([self.values[seed] for seed in seeds], goal)

    @property
    def verdict(self) -> str:
        better, gap = MEASURES[self.score].better, self.gap
        reached = better * gap.mean >= 0 or (not self.strict and gap.low <= 0 <= gap.high)
        by = MEASURES[self.score].change(abs(gap.mean)) + MEASURES[self.score].unit
        if not reached and not self.strict and gap.n == 1:
            return f"behind by {by}: one seed has no interval"
        return "reached" if reached else f"**missed by {by}**"

    @property
    def row(self) -> list[str]:
        """As the table has it."""
        cells = [Cell(self.where, "", self.score, values) for values in (self.others, self.values)]
        return [self.what, self.where, *map(ours, cells), str(self.gap.n), self.verdict]


HEADINGS = ("target", "where", "CE", "default", "seeds", "")


def targets(measured: Mapping[str, Measured]) -> list[Target]:
    """Every target in every place where both were measured."""
    measured = {name: measured.get(name, Measured(name)) for name in READ}
    found = [each for part in (_clean, _corrupted, _attacked, _outlying) for each in part(measured)]
    return [each for each in found if each.values and each.others]


@dataclass(frozen=True)
class Place:
    """Where the default and softmax were both run: by score, each model of COLUMNS, empty where it was not."""

    where: str
    view: View
    scores: Mapping[str, Mapping[str, Values]]


def places(measured: Mapping[str, Measured]) -> Iterator[Place]:
    """Every place of every view, in their order."""
    for view in VIEWS:
        part = measured.get(view.recipe, Measured(view.recipe)).only(full=True)
        for experiment in _places(part):
            scores = {
                score: {
                    name: part.values(experiment, arm, score, view.suite, way, **view.match)
                    for name, (arm, way) in COLUMNS.items()
                }
                for score in SCORES
            }
            if any(any(held.values()) for held in scores.values()):
                yield Place(f"{place_of(part, experiment)}{view.said}", view, scores)


def comparison(measured: Mapping[str, Measured]) -> list[list[str]]:
    """Rows of place and score: each model of COLUMNS, and the number of seeds."""
    rows = []
    for place in places(measured):
        for score, models in place.scores.items():
            held = list(models.values())
            if not any(held):
                continue
            cells = [Cell("", "", score, values) for values in held]
            shown = [ours(cell) if cell.values else "-" for cell in cells]
            seeds = span(len(values) for values in held if values)
            rows.append([place.where, MEASURES[score].heading, *_best(shown, held, score), seeds])
    return rows


def _best(shown: list[str], held: list[Values], score: str) -> list[str]:
    """The best mean in bold."""
    means = [over_seeds(list(values.values())).mean * MEASURES[score].better if values else float("-inf") for values in held]
    return [f"**{text}**" if mean == max(means) else text for text, mean in zip(shown, means, strict=True)]


def _places(part: Measured) -> list[str]:
    return [each for each in part.experiments if {DEFAULT, SOFTMAX} <= set(part.of(each).arms)]


def _clean(measured: Mapping[str, Measured]) -> Iterator[Target]:
    for name in CLEAN:
        part = measured[name].only(full=True)
        for experiment in _places(part):
            where, data = place_of(part, experiment), experiment.partition("/")[0]

            def both(score: str, part: Measured = part, experiment: str = experiment) -> tuple[Values, Values]:
                return part.values(experiment, DEFAULT, score), part.values(experiment, SOFTMAX, score)

            for score in SCORES:
                measure = MEASURES[score].name
                yield Target(f"{measure} at least as good", where, score, *both(score), strict=False)
            if data in HALF:
                yield Target("ECE at most half", where, "ece", *both("ece"), factor=0.5)
            if name == "low-data" and data in GAINS:
                yield Target(f"accuracy {100 * GAINS[data]:+g} points", where, "accuracy", *both("accuracy"), more=GAINS[data])
            if name == "calibration" and data in AIMS:
                aim = AIMS[data]
                yield Target(f"aim: ECE {100 * aim:g}%", where, "ece", *both("ece"), wanted=aim)


def _corrupted(measured: Mapping[str, Measured]) -> Iterator[Target]:
    part = measured["corruptions"].only(full=True)
    for experiment in _places(part):
        values, others = (part.values(experiment, arm, "ece", "shift") for arm in (DEFAULT, SOFTMAX))
        what = f"ECE under corruption at most {UNDER_CORRUPTION:g} times"
        yield Target(what, place_of(part, experiment), "ece", values, others, factor=UNDER_CORRUPTION)


def _attacked(measured: Mapping[str, Measured]) -> Iterator[Target]:
    part = measured["adversarial"].only(full=True)
    for experiment in _places(part):
        rows = [row for run in part.of(experiment) for row in run.rows if row.suite == "adversarial"]
        for epsilon in sorted({row.condition["epsilon"] for row in rows}):
            match = {"attack": "fgsm", "epsilon": epsilon, "loss": "posterior"}
            values, others = (part.values(experiment, arm, "accuracy", "adversarial", **match) for arm in (DEFAULT, SOFTMAX))
            where = f"{place_of(part, experiment)}, FGSM {epsilon:.3g}"
            yield Target("accuracy under FGSM higher", where, "accuracy", values, others)


def _outlying(measured: Mapping[str, Measured]) -> Iterator[Target]:
    part = measured["ood"].only(full=True)
    for experiment in _places(part):
        match = {"set": "svhn", "score": "log_evidence"}
        values, others = (part.values(experiment, arm, "auroc", "ood", **match) for arm in (DEFAULT, SOFTMAX))
        where = f"{place_of(part, experiment)}, {label_of(DEFAULT)} against SVHN by log p(z)"
        if experiment.startswith("cifar10/"):
            yield Target(f"aim: AUROC {100 * FAR_OUT:g}", where, "auroc", values, others, wanted=FAR_OUT)
