"""tab:ood, fig:ood_splodges: VC tells outliers from CIFAR-10's test images about as well as CE, and no better.

AUROC by max p(y|x), for which the paper has numbers without a spread, and by log p(z), which it calls comparable.
Comparable is within 0.02 here: the widest difference between CE and VC in the paper's table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from varclass.paper.findings import COMPARABLE, Cell, Check, Finding, Published
from varclass.paper.measured import Measured
from varclass.paper.reading import checks_of, label_of, name_of, place_of, sections
from varclass.paper.recipe import Recipe
from varclass.paper.recipes.cifar import FORMS, quick
from varclass.paper.tsne import draw_tsne, tsne
from varclass.report.comparing import SCORES
from varclass.report.groups import Group
from varclass.report.markup import Markup, join
from varclass.report.outliers import outliers

CLAIM = "VC's AUROC is comparable to CE's, within 0.02, by max p(y|x), against SVHN, CIFAR-100 and CelebA"
WITHIN = 0.02
DETECTORS = ("max_probability", "log_evidence")
SUITES = ("ood", "tsne")
PAPER = {"ce": {"svhn": 0.92, "cifar100": 0.88, "celeba": 0.90}, "vc": {"svhn": 0.93, "cifar100": 0.86, "celeba": 0.89}}


def sets(measured: Measured, experiment: str) -> list[str]:
    """The sets of outliers that were at hand."""
    found = [row.condition["set"] for run in measured.of(experiment) for row in run.rows if row.suite == "ood"]
    return list(dict.fromkeys(found))


def published(experiment: str, arm: str, name: str, detector: str) -> Published | None:
    """The paper's number: it has those by max p(y|x)."""
    value = PAPER.get(arm, {}).get(name) if experiment.startswith("cifar10/") else None
    return None if value is None or detector != "max_probability" else Published(value)


def cells(measured: Measured) -> list[Cell]:
    return [
        Cell(
            f"{place_of(measured, experiment)}, {name_of(name)}, {SCORES[detector]}",
            label_of(arm),
            "auroc",
            measured.values(experiment, arm, "auroc", "ood", set=name, score=detector),
            published(experiment, arm, name, detector),
            measured.n(experiment, arm, "ood", set=name, score=detector),
        )
        for experiment in measured.experiments
        for name in sets(measured, experiment)
        for detector in DETECTORS
        for arm in measured.of(experiment).arms
    ]


def findings(measured: Measured) -> list[Finding]:
    places = [(experiment, name) for experiment in measured.experiments for name in sets(measured, experiment)]
    against_ce = [
        replace(check, margin=WITHIN)
        for experiment, name in places
        for check in checks_of(
            measured, experiment, "auroc", COMPARABLE, "ood",
            where=f"{name_of(name)}, {SCORES['max_probability']}", set=name, score="max_probability",
        )
    ]  # fmt: skip
    return [
        Finding(CLAIM, against_ce),
        Finding(
            "VC's AUROC by log p(z) is comparable to that by max p(y|x), within 0.02",
            [check for experiment, name in places for check in by_evidence(measured, experiment, name)],
        ),
    ]


def by_evidence(measured: Measured, experiment: str, name: str) -> list[Check]:
    """One score of the same models against the other."""
    usual, evidence = (measured.values(experiment, "vc", "auroc", "ood", set=name, score=detector) for detector in DETECTORS)
    if not usual or not evidence:
        return []
    where, model = f"{place_of(measured, experiment)}, {name_of(name)}", f"{label_of('vc')} by {SCORES['log_evidence']}"
    return [Check(where, "auroc", model, SCORES["max_probability"], COMPARABLE, evidence, usual, WITHIN)]


def figures(measured: Measured) -> Sequence[Markup | None]:
    def draw(groups: Sequence[Group]) -> Markup | None:
        return join(draw_tsne(groups), outliers(groups)) or None

    return sections(measured, draw)


RECIPE = Recipe(
    name="ood",
    label="tab:ood, fig:ood_splodges",
    title="Outliers: AUROC and t-SNE",
    claim=CLAIM,
    quick=(quick("cifar10", SUITES, {"outliers": ("svhn", "cifar100"), "samples": 1000}),),
    full=tuple(form(data, SUITES) for form in FORMS for data in ("cifar10", "cifar100")),
    cells=cells,
    findings=findings,
    figures=figures,
    suites={"tsne": tsne},
)
