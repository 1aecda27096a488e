"""fig:OOD_cal, fig:ood_accuracy, H2: VC's ECE under corruption is below CE's, scaled or not, at comparable accuracy.

The paper's box plots run over 16 types of corruption, which it does not name, and carry no numbers in the source. Here they
run over the 15 standard types of CIFAR-10-C, made anew from the test images at its five severities; Tiny-ImageNet-C, the
paper's third set, has no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from varclass.paper.findings import COMPARABLE, HIGHER, LOWER, Cell, Check, Finding
from varclass.paper.measured import Measured
from varclass.paper.reading import checks_of, label_of, name_of, place_of, sections
from varclass.paper.recipe import Experiment, Recipe
from varclass.paper.recipes.cifar import FORMS, MEASURED, THREE, quick
from varclass.report.markup import Markup
from varclass.report.shift import shift

CLAIM = "VC's ECE under corruption is below CE's, before and after temperature scaling of CE, at every severity"
SUITES = ("clean", "shift")
QUICK = {"samples": 300, "severities": (1, 3, 5)}
Values = dict[int, float]


def severities(measured: Measured, experiment: str) -> list[int]:
    """The severities that were tried."""
    return sorted({row.condition["severity"] for run in measured.of(experiment) for row in run.rows if row.suite == "shift"})


def cells(measured: Measured) -> list[Cell]:
    return [
        Cell(
            f"{place_of(measured, experiment)}, severity {severity}",
            label_of(arm) + ("" if method == "raw" else " after temperature scaling"),
            score,
            measured.values(experiment, arm, score, "shift", method, severity=severity),
            n=measured.n(experiment, arm, "shift", method, severity=severity),
        )
        for experiment in measured.experiments
        for severity in severities(measured, experiment)
        for arm in measured.of(experiment).arms
        for method, scores in {"raw": ("ece", "accuracy"), "temperature": ("ece",)}.items()
        for score in scores
    ]


def findings(measured: Measured) -> list[Finding]:
    def checks(score: str, says: str, arm: str = "vc", against: str = "ce", other_method: str | None = None) -> list[Check]:
        return [
            check
            for experiment in measured.experiments
            for severity in severities(measured, experiment)
            for check in checks_of(
                measured, experiment, score, says, "shift", arm=arm, against=against, other_method=other_method,
                where=f"severity {severity}", severity=severity,
            )
        ]  # fmt: skip

    return [
        Finding("VC's ECE under corruption is below CE's at every severity", checks("ece", LOWER), "H2"),
        Finding(
            "VC's ECE under corruption is below CE's after temperature scaling at every severity",
            checks("ece", LOWER, other_method="temperature"),
            "H2",
        ),
        Finding("VC's accuracy under corruption is comparable to CE's, within 1 point", checks("accuracy", COMPARABLE)),
        Finding("VC lowers CE's ECE by more the more complex the data set", growth(measured)),
        Finding("By the authors' released code, VC's ECE is below CE's at every severity", checks("ece", LOWER, "authors")),
        Finding("Beyond the paper: the default's ECE is below CE's at every severity", checks("ece", LOWER, "pull")),
    ]


def growth(measured: Measured) -> list[Check]:
    """Of each data set of the full form with the next, more complex one: whether CE's ECE less VC's grows."""
    by_encoder: dict[str, list[tuple[str, Values]]] = {}
    for each in RECIPE.full:
        if values := gap(measured, each.key):
            by_encoder.setdefault(each.encoder, []).append((name_of(each.data), values))
    return [
        Check(f"{encoder}, all severities", "ece", f"CE less VC on {larger}", smaller, HIGHER, more, less)
        for encoder, held in by_encoder.items()
        for (smaller, less), (larger, more) in pairwise(held)
    ]


def gap(measured: Measured, experiment: str) -> Values:
    """CE's ECE less VC's by seed, averaged over types and severities."""
    ce, vc = (measured.values(experiment, arm, "ece", "shift") for arm in ("ce", "vc"))
    return {seed: ce[seed] - vc[seed] for seed in sorted(ce.keys() & vc.keys())}


def figures(measured: Measured) -> Sequence[Markup | None]:
    return sections(measured, shift)


RECIPE = Recipe(
    name="corruptions",
    label="fig:OOD_cal, fig:ood_accuracy",
    title="Calibration and accuracy under corruption",
    claim=CLAIM,
    quick=(quick("cifar10", SUITES, QUICK),),
    full=(  # from the least to the most complex data
        *(form(data, SUITES) for form in FORMS for data in ("cifar10", "cifar100")),
        Experiment("tiny_imagenet", "resnet-50", THREE, 5, SUITES, MEASURED),
    ),
    cells=cells,
    findings=findings,
    figures=figures,
)
