"""fig:splodges: on MNIST with z in R^2, CE's latents ignore the anticipated Gaussians, GM's concentrate, VC's fill them.

The figure carries no numbers in the source. Beside it stand the moments of each class's test latents, standardized by its
prior: mean 0, variance 1 and KL 0 where the latents are as anticipated.
"""

from __future__ import annotations

from collections.abc import Sequence

from varclass.paper.findings import LOWER, Cell, Check, Finding
from varclass.paper.measured import Measured
from varclass.paper.reading import checks_of, label_of, place_of, sections
from varclass.paper.recipe import Experiment, Recipe
from varclass.report.latent_space import FIT, latents
from varclass.report.markup import Markup

CLAIM = "In R^2, VC's latents fill the anticipated Gaussians; CE's ignore them, GM's concentrate at other points"
ARMS = ("ce-means", "gm", "vc")
SUITES = ("clean", "latents")
PLANE = {"head.latent_dim": 2}
EVERY = {"class": "all"}  # the mean over classes


def cells(measured: Measured) -> list[Cell]:
    return [
        Cell(
            place_of(measured, experiment),
            label_of(arm),
            score,
            measured.values(experiment, arm, score, suite, **match),
            n=measured.n(experiment, arm, suite, **match),
        )
        for experiment in measured.experiments
        for suite, scores, match in (("clean", ("accuracy",), {}), ("latents", FIT, EVERY))
        for score in scores
        for arm in measured.of(experiment).arms
    ]


def findings(measured: Measured) -> list[Finding]:
    def lower(score: str, arm: str, against: str) -> list[Check]:
        return [
            check
            for experiment in measured.experiments
            for check in checks_of(measured, experiment, score, LOWER, "latents", arm=arm, against=against, **EVERY)
        ]

    return [
        Finding("VC's latents are nearer to the anticipated Gaussians than CE's", lower("kl", "vc", "ce-means")),
        Finding("VC's latents are nearer to the anticipated Gaussians than GM's", lower("kl", "vc", "gm")),
        Finding("GM's latents are more concentrated than VC's", lower("variance", "gm", "vc")),
    ]


def figures(measured: Measured) -> Sequence[Markup | None]:
    return sections(measured, latents)


RECIPE = Recipe(
    name="latents-2d",
    label="fig:splodges",
    title="Latents in two dimensions",
    claim=CLAIM,
    quick=(Experiment("mnist", "lenet", ARMS, 2, SUITES, changes=PLANE | {"data.limit": 2000, "training.epochs": 15}),),
    full=(Experiment("mnist", "lenet", (*ARMS, "authors"), 5, SUITES, changes=PLANE),),
    cells=cells,
    findings=findings,
    figures=figures,
)
