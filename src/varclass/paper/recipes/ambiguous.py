"""fig:latent_ambi: an ambiguous digit lies between the classes it may be, and the model is in two minds about it.

The paper looks at Ambiguous-MNIST in the latent space of a trained model and has no numbers. That set is not in the
catalogue: the ambiguous digits here are made, a pixel-wise mix of two real test digits of different classes.

between: "digits"    (1 - t) x_1 + t x_2 of pairs of test images, the same pairs for every model
between: "means"     (1 - t) mu_1 + t mu_2 of every pair of class means, in latent space
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import torch

from varclass.core.priors import GaussianPrior
from varclass.data.split import Split
from varclass.evaluation.scorebook import Row
from varclass.evaluation.subject import Subject
from varclass.metrics.detection import auroc, detection_scores
from varclass.metrics.draws import uniform
from varclass.metrics.intervals import Interval, over_seeds
from varclass.metrics.predictions import Predictions
from varclass.paper.findings import HIGHER, Cell, Check, Finding
from varclass.paper.measured import Measured
from varclass.paper.reading import checks_of, label_of, place_of
from varclass.paper.recipe import Experiment, Recipe
from varclass.report.axes import linear
from varclass.report.curves import lines_figure
from varclass.report.figure import section
from varclass.report.markup import Markup
from varclass.report.measures import MEASURES, Measure

CLAIM = "An ambiguous digit lies between the classes it may be: the model is less certain of it than of a clear one"
NOTE = "ambiguous digits made by mixing two test digits of different classes pixel by pixel, not those of Ambiguous-MNIST"
MIXINGS = tuple(step / 8 for step in range(9))
EVEN = 0.5
SUITE = "ambiguous"
DETECTORS = {"max_probability": "max p(y|x)", "log_evidence": "log p(z)"}
DRAWN = (
    Measure("first", "p(y) of the first class", 0, True),
    MEASURES["on_two"],
    MEASURES["entropy"],
    Measure("log_evidence", "log p(z), change from t = 0"),
)


def ambiguous(subject: Subject) -> Iterator[Row]:
    """Between digits and between class means: p of both classes, entropy and log p(z); how well mixes are told from digits."""
    first, second = pairs(subject.test, subject.options.samples or 1000)
    found = {t: subject.predictor.predict(mixed(subject.test, first, second, t)) for t in MIXINGS}
    labels = subject.test.labels[first], subject.test.labels[second]
    for t, predictions in found.items():
        yield _row(subject, "digits", t, predictions, *labels)
    clear, even = detection_scores(found[0.0]), detection_scores(found[EVEN])
    for score in DETECTORS:
        condition = {"between": "digits", "mixing": EVEN, "score": score, "seed": subject.seed}
        yield Row(SUITE, "raw", condition, 2 * len(first), {"auroc": auroc(clear[score], even[score])})
    yield from between_means(subject)


def pairs(split: Split, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of up to `count` pairs of samples of different classes, the same for every run."""
    drawn = (uniform(8 * count, seed=0) * len(split)).astype(np.int64).reshape(-1, 2)
    apart = drawn[split.labels[drawn[:, 0]] != split.labels[drawn[:, 1]]][:count]
    return apart[:, 0], apart[:, 1]


def mixed(split: Split, first: np.ndarray, second: np.ndarray, t: float) -> Split:
    """The images (1 - t) x_1 + t x_2, labeled by the first of the two."""
    pixels = (1 - t) * split.read(first) + t * split.read(second)
    return replace(split, inputs=pixels.round().astype(np.uint8), labels=split.labels[first])


@torch.no_grad()
def between_means(subject: Subject) -> Iterator[Row]:
    """The same along the lines between class means, where the prior has means."""
    head = subject.model.head
    if not isinstance(head.class_prior, GaussianPrior):
        return
    mean = head.class_prior.mean
    first, second = np.array(list(combinations(range(len(mean)), 2))).T
    for t in MIXINGS:
        z = (1 - t) * mean[first] + t * mean[second]
        yield _row(subject, "means", t, Predictions.of(head.log_joint(z.to(mean)).cpu().numpy()), first, second)


def _row(subject: Subject, between: str, t: float, found: Predictions, first: np.ndarray, second: np.ndarray) -> Row:
    each = np.arange(len(found))
    one, two = found.probabilities[each, first], found.probabilities[each, second]
    scores = {
        "first": one.mean(),
        "second": two.mean(),
        "on_two": (one + two).mean(),
        "entropy": found.entropy.mean(),
        "log_evidence": found.log_evidence.mean(),
    }
    return Row(SUITE, "raw", {"between": between, "mixing": t, "seed": subject.seed}, len(found), scores)


def cells(measured: Measured) -> list[Cell]:
    asked = [("entropy", {"between": "digits", "mixing": t}, f"t = {t:g}") for t in (0.0, 0.25, EVEN)]
    asked.append(("on_two", {"between": "digits", "mixing": EVEN}, f"t = {EVEN:g}"))
    asked.append(("on_two", {"between": "means", "mixing": EVEN}, "half-way between class means"))
    asked += [
        ("auroc", {"mixing": EVEN, "score": score}, f"t = 0 against {EVEN:g}, {name}") for score, name in DETECTORS.items()
    ]
    return [
        Cell(
            f"{place_of(measured, experiment)}, {where}",
            label_of(arm),
            score,
            measured.values(experiment, arm, score, SUITE, **match),
            n=measured.n(experiment, arm, SUITE, **match),
        )
        for experiment in measured.experiments
        for score, match, where in asked
        for arm in measured.of(experiment).arms
    ]


CE = "ce-means"  # with means to go between


def findings(measured: Measured) -> list[Finding]:
    def less_certain(between: str) -> list[Check]:
        held = []
        for experiment in measured.experiments:
            for arm in measured.of(experiment).arms:
                even, clear = (
                    measured.values(experiment, arm, "entropy", SUITE, between=between, mixing=t) for t in (EVEN, 0.0)
                )
                where, label = f"{place_of(measured, experiment)}, {label_of(arm)}", f"{between} at t ="
                held.append(Check(where, "entropy", f"{label} {EVEN:g}", f"{label} 0", HIGHER, even, clear))
        return held

    detected = [
        check
        for experiment in measured.experiments
        for score, name in DETECTORS.items()
        for check in checks_of(measured, experiment, "auroc", HIGHER, SUITE, against=CE, where=name, mixing=EVEN, score=score)
    ]
    apart = [
        check
        for experiment in measured.experiments
        for check in checks_of(
            measured,
            experiment,
            "on_two",
            HIGHER,
            SUITE,
            against=CE,
            where="half-way between class means",
            between="means",
            mixing=EVEN,
        )
    ]
    return [
        Finding("A model is less certain of an even mix of two digits than of a clear one", less_certain("digits")),
        Finding("A model is less certain half-way between two class means than at one", less_certain("means")),
        Finding("Half-way between two class means VC has more of p(y|z) on these two classes than CE", apart),
        Finding("VC tells mixes from clear digits better than CE, which the paper does not claim", detected),
    ]


def figures(measured: Measured) -> Sequence[Markup | None]:
    titles = {"digits": "Between two digits", "means": "Between two class means"}
    return [
        section(f"{title}: {place_of(measured, experiment)}", _curves(measured.of(experiment), experiment, between, title))
        for experiment in measured.experiments
        for between, title in titles.items()
    ]


def _curves(measured: Measured, experiment: str, between: str, title: str) -> Markup:
    panels = [
        (
            measure.name,
            measure,
            {i: _points(measured, experiment, arm, measure.key, between) for i, arm in enumerate(measured.arms)},
        )
        for measure in DRAWN
    ]
    n = measured.n(experiment, measured.arms[0], SUITE, between=between)
    how = (
        f"{NOTE}; n = {n} pairs" if between == "digits" else f"z on the line between two class means; n = {n} pairs of classes"
    )
    caption = f"Against t: {how}. Mean over pairs and seeds; bars: 95% t-intervals over seeds, where there are several."
    return lines_figure(
        title, linear("mixing t", MIXINGS), panels, {i: label_of(arm) for i, arm in enumerate(measured.arms)}, caption
    )


def _points(measured: Measured, experiment: str, arm: str, score: str, between: str) -> Sequence[tuple[float, Interval]]:
    def at(t: float) -> dict[int, float]:
        return measured.values(experiment, arm, score, SUITE, between=between, mixing=t)

    start = at(0.0) if score == "log_evidence" else {}  # densities of different models have different scales
    return [(t, over_seeds([value - start.get(seed, 0.0) for seed, value in at(t).items()])) for t in MIXINGS]


RECIPE = Recipe(
    name="ambiguous",
    label="fig:latent_ambi",
    title="Ambiguous digits",
    claim=CLAIM,
    quick=(
        Experiment(
            "mnist",
            "lenet",
            ("ce-means", "vc"),
            2,
            ("clean", SUITE),
            {"samples": 500},
            {"data.limit": 2000, "training.epochs": 15},
        ),
    ),
    full=(Experiment("mnist", "lenet", ("ce-means", "gm", "vc", "authors"), 5, ("clean", SUITE), {"samples": 2000}),),
    cells=cells,
    findings=findings,
    figures=figures,
    suites={SUITE: ambiguous},
)
