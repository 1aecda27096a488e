"""tab:ece, H1: VC's predictions are better calibrated than CE's on every data set and encoder, at comparable accuracy.

The table has accuracy and ECE in 20 bins. Beside them stand NLL, since ECE alone can be brought to 0 by a forecast that says
nothing, and every number after temperature scaling, which the paper mentions and does not apply here. Temperature scaling
leaves accuracy as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from varclass.paper.arms import ARMS
from varclass.paper.findings import COMPARABLE, LOWER, Cell, Check, Finding, Published
from varclass.paper.measured import Measured
from varclass.paper.reading import checks_of, label_of, place_of, sections
from varclass.paper.recipe import Experiment, Recipe
from varclass.paper.recipes.cifar import FORMS, SMALL, THREE, quick
from varclass.report.clean import reliability
from varclass.report.groups import Group, holding
from varclass.report.markup import Markup

CLAIM = "VC's ECE is below CE's on every data set and encoder"
ALL = ("ce", "gm", "vc", "vmf", "mc-dropout", "authors", "pull")
RESNET = "resnet-50"
Numbers = tuple[float, float | None, float, float | None]
PAPER: dict[
    str, dict[str, Numbers]
] = {  # percent: accuracy and its standard deviation over 5 runs, ECE and its; MC-dropout has none
    "cifar10/wrn-28-10": {"ce": (96.2, 0.1, 3.1, 0.2), "gm": (95.0, 0.2, 3.5, 0.3), "vc": (96.3, 0.2, 2.1, 0.2)},
    "cifar100/wrn-28-10": {"ce": (80.3, 0.1, 11.1, 0.7), "gm": (79.8, 0.2, 19.6, 0.4), "vc": (80.3, 0.1, 4.8, 0.3)},
    "cifar10/resnet-50": {
        "ce": (93.7, 0.1, 3.8, 0.3),
        "gm": (93.0, 0.1, 4.1, 0.2),
        "vc": (93.2, 0.1, 3.2, 0.2),
        "vmf": (94.0, 0.1, 5.9, 0.2),
        "mc-dropout": (92.7, None, 3.3, None),
    },
    "cifar100/resnet-50": {
        "ce": (73.2, 0.1, 8.7, 0.2),
        "gm": (74.2, 0.1, 10.5, 0.2),
        "vc": (73.4, 0.1, 5.1, 0.2),
        "vmf": (69.94, 0.2, 7.9, 0.3),
        "mc-dropout": (70.1, None, 1.4, None),
    },
    "tiny_imagenet/resnet-50": {
        "ce": (59.7, 0.2, 12.3, 0.4),
        "gm": (59.3, 0.1, 8.75, 0.2),
        "vc": (59.3, 0.1, 7.4, 0.5),
    },
}


def published(experiment: str, arm: str, score: str) -> Published | None:
    """The paper's number, as a share; a small encoder stands for ResNet-50."""
    data, encoder, *_ = experiment.split("/")
    name = encoder.partition(",")[0]  # without other epochs than the schedule's
    found = PAPER.get(f"{data}/{RESNET if name == SMALL else name}", {}).get(arm)
    if found is None or score not in ("accuracy", "ece"):
        return None
    value, spread = found[:2] if score == "accuracy" else found[2:]
    share = round(value / 100, 6)
    return Published(share) if spread is None else Published(share, round(spread / 100, 6), "sd")


def cells(measured: Measured) -> list[Cell]:
    def found(experiment: str) -> Iterator[Cell]:
        where = place_of(measured, experiment)
        for arm in measured.of(experiment).arms:
            method = ARMS[arm].method
            for score in ("accuracy", "ece", "nll"):
                yield Cell(
                    where,
                    label_of(arm),
                    score,
                    measured.values(experiment, arm, score, "clean", method),
                    published(experiment, arm, score),
                    measured.n(experiment, arm, "clean", method),
                )
            for score in ("ece", "nll") if method == "raw" else ():
                values = measured.values(experiment, arm, score, "clean", "temperature")
                n = measured.n(experiment, arm, "clean", "temperature")
                yield Cell(where, f"{label_of(arm)} after temperature scaling", score, values, n=n)

    return [cell for experiment in measured.experiments for cell in found(experiment)]


def findings(measured: Measured) -> list[Finding]:
    def checks(score: str, says: str, arm: str = "vc", against: str = "ce", other_method: str | None = None) -> list[Check]:
        return [
            check
            for experiment in measured.experiments
            for check in checks_of(measured, experiment, score, says, arm=arm, against=against, other_method=other_method)
        ]

    return [
        Finding(CLAIM, checks("ece", LOWER), "H1"),
        Finding("VC's accuracy is comparable to CE's, within 1 point", checks("accuracy", COMPARABLE)),
        Finding("GM's accuracy is comparable to CE's, within 1 point", checks("accuracy", COMPARABLE, "gm")),
        Finding(
            "VC's ECE is the lowest of the table, below GM's and vMF's too",
            [check for against in ("gm", "vmf") for check in checks("ece", LOWER, against=against)],
        ),
        Finding("MC-dropout's ECE is below CE's", checks("ece", LOWER, "mc-dropout")),
        Finding("MC-dropout's accuracy is below CE's", checks("accuracy", LOWER, "mc-dropout")),
        Finding("By the authors' released code, VC's ECE is below CE's", checks("ece", LOWER, "authors")),
        Finding(
            "Beyond the paper: VC's ECE as trained is below CE's after temperature scaling",
            checks("ece", LOWER, other_method="temperature"),
        ),
        Finding("Beyond the paper: VC's NLL is below CE's", checks("nll", LOWER)),
        Finding("Beyond the paper: the default's ECE is below CE's", checks("ece", LOWER, "pull")),
        Finding("Beyond the paper: the default's NLL is below CE's", checks("nll", LOWER, "pull")),
        Finding(
            "Beyond the paper: the default's accuracy is comparable to CE's",
            checks("accuracy", COMPARABLE, "pull"),
        ),
    ]


def figures(measured: Measured) -> Sequence[Markup | None]:
    def draw(groups: Sequence[Group]) -> Markup | None:
        return reliability(holding(groups, "clean"))

    return sections(measured, draw)


RECIPE = Recipe(
    name="calibration",
    label="tab:ece",
    title="Accuracy and calibration",
    claim=CLAIM,
    quick=tuple(quick(data, ("clean",), arms=(*THREE, "vmf"), stands_for=RESNET) for data in ("cifar10", "cifar100")),
    full=(
        *(form(data, ("clean",)) for form in FORMS for data in ("cifar10", "cifar100")),
        *(Experiment(data, RESNET, ALL, 5) for data in ("cifar10", "cifar100")),
        Experiment("tiny_imagenet", RESNET, (*THREE, "pull"), 5),
    ),
    cells=cells,
    findings=findings,
    figures=figures,
)
