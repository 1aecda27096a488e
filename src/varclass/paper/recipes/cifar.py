"""Models of photographs that several recipes measure: the same settings are the same run, trained once for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from varclass.paper.recipe import Experiment

ARMS = ("ce", "gm", "vc", "authors")
SMALL = "lenet"  # the encoder of the quick forms, half as wide as it usually is
SHORT = {"data.limit": 2000, "training.epochs": 8, "encoder.options": {"widths": [16, 32]}}
THREE = ("ce", "gm", "vc")
NOTHING: Mapping[str, Any] = {}


def wide(data: str, suites: tuple[str, ...], options: Mapping[str, Any] = NOTHING) -> Experiment:
    """The models of a full form, with WRN-28-10."""
    return Experiment(data, "wrn-28-10", ARMS, 5, suites, options)


def quick(
    data: str,
    suites: tuple[str, ...],
    options: Mapping[str, Any] = NOTHING,
    arms: tuple[str, ...] = THREE,
    stands_for: str = "wrn-28-10",
) -> Experiment:
    """The models of a quick form: a small encoder, few samples."""
    return Experiment(data, SMALL, arms, 2, suites, options, SHORT, stands_for)
