"""Settings that the paper leaves open: beta, where means start, and the learning rates of theta and psi, on validation data.

No test sample is looked at. ResNet-18 stands for the larger encoders on CIFAR, on a part of the training samples. For the
low-data tables as many samples are trained on as there, and others of the training split are held out to choose by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from varclass.evaluation.clean import RAW, scored
from varclass.evaluation.scorebook import Row
from varclass.evaluation.subject import Subject
from varclass.paper.arms import GRID
from varclass.paper.findings import Cell, Finding
from varclass.paper.measured import Measured
from varclass.paper.reading import label_of, place_of
from varclass.paper.recipe import Experiment, Recipe
from varclass.paper.schedules import DEEP, RESIDUAL, SPRINT

MNIST = {"data.limit": 1000, "data.validation": 0.5}
FEW_CIFAR = {"data.limit": 2000, "data.validation": 0.5}
NEWS = {"data.limit": 500, "data.validation": 0.9, "training.epochs": 100, "training.batch_size": 10}
SLOWER = {"training.epochs": 12, "training.batch_size": 128, "training.lr": 0.1}
PROXY = {"data.limit": 10_000} | RESIDUAL | SLOWER | {"data.validation": 0.2}
# Of the encoders whose rates are high or whose features are many: half of the samples, for as long as it takes to see.
HALF = {"data.limit": 25_000} | SPRINT | {"data.validation": 0.2, "training.epochs": 16}
HALF_DEEP = {"data.limit": 25_000} | DEEP | {"data.validation": 0.2, "training.epochs": 6}
FEWER_EPOCHS = FEW_CIFAR | {"training.epochs": 60}
# On CIFAR a part of the grid: with SGD, learned variances have to move slowly, or means start near.
PARTS = tuple(f"{arm}:{beta:g}:{rest}" for arm in ("gm", "vc") for beta in (0.001, 0.01, 0.1) for rest in ("1", "4:thetax0.1"))
SLOW = tuple(
    f"{arm}:{beta:g}:{rest}" for arm in ("gm", "vc") for beta in (0.001, 0.01, 0.1) for rest in ("1:thetax0.1", "4:thetax0.01")
)
RATES = tuple(name for name in GRID if name.startswith(("vmf:", "authors:")))
DEEPER = tuple(f"{arm}:0.001:{rest}" for arm in ("gm", "vc") for rest in ("1:thetax0.1", "4:thetax0.01"))
PULLS = tuple(name for name in GRID if name.startswith("pull:"))
WHOLE = tuple(name for name in GRID if name not in RATES)  # those are for SGD, whose steps are as large as the gradient


def validation(subject: Subject) -> Iterator[Row]:
    """Every clean metric on the samples that training held out."""
    if subject.validation_predictions is None:
        raise ValueError(f"{subject.run.path} held out no validation data")
    yield scored("validation", RAW, {"split": "validation", "seed": subject.seed}, subject.validation_predictions)


def best(measured: Measured, experiment: str, objective: str) -> str:
    """The point of the grid with the lowest mean validation NLL; of equal ones the first."""
    found = {arm: measured.values(experiment, arm, "nll", "validation") for arm in GRID if arm.startswith(f"{objective}:")}
    means = {arm: sum(values.values()) / len(values) for arm, values in found.items() if values}
    return min(means, key=lambda arm: means[arm])


def cells(measured: Measured) -> list[Cell]:
    return [
        Cell(
            place_of(measured, experiment),
            label_of(arm),
            score,
            measured.values(experiment, arm, score, "validation"),
            n=measured.n(experiment, arm, "validation"),
        )
        for experiment in measured.experiments
        for arm in measured.of(experiment).arms
        for score in ("nll", "accuracy", "ece")
    ]


def findings(measured: Measured) -> list[Finding]:
    """None: the paper claims nothing of its settings."""
    return []


def tried(data: str, encoder: str, seeds: int, changes: Mapping[str, Any], arms: tuple[str, ...] = WHOLE) -> Experiment:
    """The grid, or a part of it, on one data set."""
    return Experiment(data, encoder, arms, seeds, ("validation",), changes=changes)


RECIPE = Recipe(
    name="settings",
    label="not in the paper",
    title="Settings chosen on validation data",
    claim="The paper states neither beta nor the learning rates of theta and psi, nor where the means start",
    quick=(tried("mnist", "lenet", 1, MNIST),),
    full=(
        tried("mnist", "lenet", 3, MNIST),
        tried("ag_news", "text", 3, NEWS),
        tried("cifar10", "resnet-18", 1, FEWER_EPOCHS, (*PARTS, *PULLS)),
        tried("cifar10", "resnet-18", 1, PROXY, (*PARTS, *PULLS)),
        tried("cifar100", "resnet-18", 1, PROXY, (*PARTS, *PULLS)),
        tried("cifar10", "sprint-128", 1, HALF, (*SLOW, *RATES)),
        tried("cifar100", "sprint-128", 1, HALF, (*SLOW, *RATES)),
        tried("cifar100", "resnet-50", 1, HALF_DEEP, (*DEEPER, *RATES)),
    ),
    cells=cells,
    findings=findings,
    suites={"validation": validation},
)
