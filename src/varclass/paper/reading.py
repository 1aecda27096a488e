"""What recipes share in reading results: places and models as a reader knows them, checks of one model against another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from varclass.paper.arms import ARMS
from varclass.paper.findings import Check
from varclass.paper.measured import Measured
from varclass.report.groups import Group, group_runs
from varclass.report.markup import Markup, tag

NAMES = {
    "ag_news": "AG News",
    "camelyon17": "Camelyon17",
    "celeba": "CelebA",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "clinc150": "CLINC150",
    "digits": "digits",
    "fashion_mnist": "Fashion-MNIST",
    "mnist": "MNIST",
    "nli": "NLI",
    "nli_dev": "NLI from SNLI dev",
    "pneumoniamnist": "PneumoniaMNIST",
    "svhn": "SVHN",
    "tiny_imagenet": "Tiny-ImageNet",
}


def name_of(data: str) -> str:
    """A data set as people write it."""
    return NAMES.get(data, data)


def label_of(arm: str) -> str:
    """A model as a reader knows it."""
    return ARMS[arm].label


def place_of(measured: Measured, experiment: str) -> str:
    """Data, encoder and number of training samples of an experiment."""
    data, encoder, *size = experiment.split("/")
    quick = ", quick" if any(not run.full for run in measured.of(experiment)) else ""
    return f"{name_of(data)}, {encoder}{f', {size[0]} samples' if size else ''}{quick}"


def checks_of(
    measured: Measured,
    experiment: str,
    score: str,
    says: str,
    /,
    suite: str = "clean",
    *,
    arm: str = "vc",
    against: str = "ce",
    method: str | None = None,
    other_method: str | None = None,
    where: str = "",
    **match: Any,
) -> list[Check]:
    """One check of `arm` against another in a score, if both were measured there; none otherwise.

    The method of each is its own unless given: "temperature" for what scaling makes of it.
    """
    methods = method or ARMS[arm].method, other_method or ARMS[against].method
    values, others = (
        measured.values(experiment, each, score, suite, how, **match) for each, how in zip((arm, against), methods, strict=True)
    )
    if not values or not others:
        return []
    place = f"{place_of(measured, experiment)}{f', {where}' if where else ''}"
    one, two = (_scaled(each, how) for each, how in zip((arm, against), methods, strict=True))
    return [Check(place, score, one, two, says, values, others)]


def sections(measured: Measured, draw: Callable[[Sequence[Group]], Markup | None]) -> list[Markup]:
    """A section of the report for each experiment, under its name."""
    found = []
    for experiment in measured.experiments:
        drawn = draw(grouped(measured.of(experiment)))
        if drawn:
            found.append(tag("div", tag("h2", place_of(measured, experiment)), drawn, class_="experiment"))
    return found


def grouped(measured: Measured) -> list[Group]:
    """The runs of an experiment in groups, each called what its arm is; by its settings where an arm has several."""
    arms = {run.id: label_of(run.arm) for run in measured}
    groups = group_runs([run.evaluated for run in measured])
    labels = [arms[next(iter(group.sizes[-1].values())).path.name] for group in groups]
    return [
        group if labels.count(label) > 1 else replace(group, label=label) for group, label in zip(groups, labels, strict=True)
    ]


def _scaled(arm: str, method: str) -> str:
    return label_of(arm) + (" after temperature scaling" if method == "temperature" else "")
