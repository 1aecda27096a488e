"""Models of photographs that several recipes measure: the same settings are the same run, trained once for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from varclass.paper.recipe import Experiment

ARMS = ("ce", "gm", "vc", "authors")
BESIDE = (
    "pull",
    "ce-settled",
    "smoothing",
    "gaussian-ce",
    "vmf",
    "mc-dropout",
)  # the library's default, and what else it is measured against
SMALL = "lenet"  # the encoder of the quick forms, half as wide as it usually is
SHORT = {"data.limit": 2000, "training.epochs": 8, "encoder.options": {"widths": [16, 32]}}
THREE = ("ce", "gm", "vc")
NOTHING: Mapping[str, Any] = {}
# one set of options for every recipe, so that a suite is measured once for all of them
MEASURED = {"samples": 2500, "epsilons": (1 / 255, 2 / 255, 4 / 255, 8 / 255, 16 / 255), "pgd_steps": 10}
OUTLIERS = {"cifar10": ("svhn", "cifar100", "celeba"), "cifar100": ("svhn", "cifar10")}


def options_of(data: str) -> dict[str, Any]:
    """How a model of photographs is measured."""
    return MEASURED | {"outliers": OUTLIERS[data]}


def wide(data: str, suites: tuple[str, ...]) -> Experiment:
    """The models of a full form, with WRN-28-10."""
    return Experiment(data, "wrn-28-10", (*ARMS, *BESIDE), 5, suites, options_of(data))


def narrow(data: str, suites: tuple[str, ...]) -> Experiment:
    """The same with ResNet-18, a tenth of the work: every arm on several seeds fits into half an hour on one GPU."""
    return Experiment(data, "resnet-18", (*ARMS, *BESIDE), 3, suites, options_of(data), stands_for="wrn-28-10")


def fast(data: str, suites: tuple[str, ...]) -> Experiment:
    """The same with an encoder made for short training, which half an hour takes to the accuracy that others need hours for."""
    return Experiment(data, "sprint-128", (*ARMS, *BESIDE), 3, suites, options_of(data), stands_for="wrn-28-10")


FORMS = (wide, narrow, fast)


def quick(
    data: str,
    suites: tuple[str, ...],
    options: Mapping[str, Any] = NOTHING,
    arms: tuple[str, ...] = THREE,
    stands_for: str = "wrn-28-10",
) -> Experiment:
    """The models of a quick form: a small encoder, few samples."""
    return Experiment(data, SMALL, arms, 2, suites, options, SHORT, stands_for)
