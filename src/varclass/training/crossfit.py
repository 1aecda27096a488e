"""Cross-fitting: how sure a model should be, from others of its kind that have each left a part of the samples out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from varclass.classifier import Classifier
from varclass.core.consistency import FEWEST, GRID, STEP, STEPS, HeldOut, best_temperature
from varclass.training.spec import RunSpec
from varclass.training.task import TrainingData


@dataclass(frozen=True)
class CrossFit:
    """What the folds say, each sample predicted by a model that has not seen it."""

    held: HeldOut
    folds: int
    seconds: float  # that it took

    @property
    def record(self) -> dict[str, Any]:
        """How well they did, at the temperature that suits them."""
        losses = self.held.losses
        temperature = best_temperature(losses)
        own, (mistakes, count) = losses[:GRID].tolist(), losses[-2:].tolist()
        nll = own[round(math.log(temperature) / STEP) + STEPS] / count
        numbers = {"accuracy": 1 - mistakes / count, "nll": nll, "temperature": temperature}
        return {"folds": self.folds, "n": int(count), **numbers, "seconds": self.seconds}


def wants_folds(spec: RunSpec, data: TrainingData, model: Classifier) -> bool:
    """Whether there is something to settle, and enough that folds hold out: they leave a class's only sample where it is."""
    folds = 0 if spec.data.fold is not None else spec.data.cross_fit or 0
    totals = np.bincount(data.train.labels)
    return folds > 0 and int(totals[totals > 1].sum()) >= FEWEST and model.head.settles


def spec_of_fold(spec: RunSpec, fold: int) -> RunSpec:
    """The same run, with one fold held out."""
    return replace(spec, data=replace(spec.data, fold=fold))
