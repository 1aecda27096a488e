"""fig:adv_robust, H3: under FGSM, VC's accuracy is above CE's at every attack magnitude, on MNIST and on CIFAR-10.

The figure carries no numbers in the source. PGD stands beside FGSM, for FGSM alone is not robustness.
"""

from __future__ import annotations

from collections.abc import Sequence

from varclass.paper.findings import HIGHER, Cell, Check, Finding
from varclass.paper.measured import Measured
from varclass.paper.reading import checks_of, label_of, place_of, sections
from varclass.paper.recipe import Experiment, Recipe
from varclass.paper.recipes.cifar import ARMS, FORMS, THREE, quick
from varclass.report.attacks import attacks
from varclass.report.markup import Markup

CLAIM = "VC's accuracy under FGSM is above CE's at every attack magnitude, on MNIST and CIFAR-10"
MNIST = {"epsilons": (0.05, 0.1, 0.15, 0.2, 0.3)}  # of pixels from 0 to 1
FEWER = {"epsilons": (1 / 255, 4 / 255, 16 / 255), "samples": 200, "pgd_steps": 10}
SUITES = ("clean", "adversarial")


def magnitudes(measured: Measured, experiment: str) -> list[float]:
    """The magnitudes that were tried."""
    found = {row.condition["epsilon"] for run in measured.of(experiment) for row in run.rows if row.suite == "adversarial"}
    return sorted(found)


def cells(measured: Measured) -> list[Cell]:
    return [
        Cell(
            f"{place_of(measured, experiment)}, {attack.upper()} {epsilon:.3g}",
            label_of(arm),
            "accuracy",
            measured.values(experiment, arm, "accuracy", "adversarial", attack=attack, epsilon=epsilon, loss="posterior"),
            n=measured.n(experiment, arm, "adversarial", attack=attack, epsilon=epsilon, loss="posterior"),
        )
        for experiment in measured.experiments
        for attack in ("fgsm", "pgd")
        for epsilon in magnitudes(measured, experiment)
        for arm in measured.of(experiment).arms
    ]


def findings(measured: Measured) -> list[Finding]:
    def checks(attack: str, arm: str = "vc", against: str = "ce") -> list[Check]:
        return [
            check
            for experiment in measured.experiments
            for epsilon in magnitudes(measured, experiment)
            for check in checks_of(
                measured, experiment, "accuracy", HIGHER, "adversarial", arm=arm, against=against,
                where=f"{attack.upper()} {epsilon:.3g}", attack=attack, epsilon=epsilon, loss="posterior",
            )
        ]  # fmt: skip

    return [
        Finding(CLAIM, checks("fgsm"), "H3"),
        Finding("The same under PGD, which the paper did not try", checks("pgd")),
        Finding(
            "Beyond the paper: the default's accuracy under FGSM is above CE's at every magnitude",
            checks("fgsm", "pull"),
        ),
    ]


def figures(measured: Measured) -> Sequence[Markup | None]:
    return sections(measured, attacks)


RECIPE = Recipe(
    name="adversarial",
    label="fig:adv_robust",
    title="Accuracy under adversarial attack",
    claim=CLAIM,
    quick=(
        Experiment("mnist", "lenet", THREE, 2, SUITES, MNIST | {"samples": 500}, {"data.limit": 2000}),
        quick("cifar10", SUITES, FEWER),
    ),
    full=(
        Experiment("mnist", "lenet", ARMS, 5, SUITES, MNIST | {"samples": 2000}),
        *(form(data, SUITES) for form in FORMS for data in ("cifar10", "cifar100")),
    ),
    cells=cells,
    findings=findings,
    figures=figures,
)
