"""Temperature and vector scaling: the usual repairs of p(y|x) after training, fitted on validation predictions.

Both act on log p(y|x) and leave log p(z) as it was: log joint' = scaled log p(y|x) + log p(z). On the data it was fitted on
neither has a higher NLL than no scaling at all: where the fit finds nothing better, it is the identity.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from varclass.metrics.predictions import Predictions
from varclass.metrics.scores import nll

LOG_RANGE = 8.0  # log T from -8 to 8: where hardly anything is right, there is no finite optimum
RIDGE = 1e-4  # on each squared distance from the identity, beside a mean NLL: unseen classes stay as they are


class Scaling(ABC):
    """A map of log p(y|x) that `apply` normalizes again."""

    @abstractmethod
    def scores(self, log_posterior: np.ndarray) -> np.ndarray:
        """log p'(y|x) up to a constant per row, (N, C)."""

    @property
    @abstractmethod
    def is_identity(self) -> bool:
        """Whether it changes nothing."""

    def apply(self, predictions: Predictions) -> Predictions:
        """The same samples, p(y|x) scaled and log p(z) kept; float64."""
        if self.is_identity:
            return predictions
        scaled = Predictions(self.scores(predictions.log_posterior), predictions.labels, predictions.index)
        return Predictions(scaled.log_posterior + predictions.log_evidence[:, None], predictions.labels, predictions.index)


S = TypeVar("S", bound=Scaling)


@dataclass(frozen=True)
class TemperatureScaling(Scaling):
    """p'(y|x) proportional to p(y|x)^(1/T) (Guo et al. 2017): the predicted classes stay, their confidence moves."""

    temperature: float

    @classmethod
    def fit(cls, predictions: Predictions) -> TemperatureScaling:
        """The T that minimizes the NLL, between exp(-8) and exp(8); 1 if there is no error to learn confidence from.

        Without an error every colder T has a lower NLL, down to T = 0: one error among new samples would then cost an
        unbounded number of nats. Such data cannot say what T is, so p(y|x) stays as it was trained.

        The NLL is convex in 1/T, so its derivative, E[sum_c p'(c|x) log p(c|x) - log p(y|x)], has one root in log T.

        >>> held = Predictions.of(np.log([[0.9, 0.1]] * 4), [0, 0, 0, 1])  # says 90%, is right in 75%
        >>> scaling = TemperatureScaling.fit(held)
        >>> scaling.apply(held).confidence.round(6).tolist()
        [0.75, 0.75, 0.75, 0.75]
        """
        from scipy.optimize import brentq  # noqa: PLC0415

        log_posterior, labels = _fitting_data("temperature scaling", predictions)
        possible = np.where(np.isfinite(log_posterior), log_posterior, 0)
        own = log_posterior[np.arange(len(labels)), labels]

        def slope(log_temperature: float) -> float:
            probs = Predictions.of(log_posterior * math.exp(-log_temperature)).probabilities
            return float(((probs * possible).sum(1) - own).mean())

        if slope(-LOG_RANGE) <= 0:  # colder is better to the end
            return cls(1.0)
        if slope(LOG_RANGE) >= 0:
            return _if_better(cls(math.exp(LOG_RANGE)), cls(1.0), predictions)
        root = brentq(slope, -LOG_RANGE, LOG_RANGE, xtol=1e-13)
        return _if_better(cls(math.exp(root)), cls(1.0), predictions)

    def scores(self, log_posterior: np.ndarray) -> np.ndarray:
        """log p(y|x) / T."""
        return log_posterior / self.temperature

    @property
    def is_identity(self) -> bool:
        """T = 1."""
        return self.temperature == 1


@dataclass(frozen=True, eq=False)
class VectorScaling(Scaling):
    """p'(y|x) proportional to exp(scale_y log p(y|x) + bias_y) (Guo et al. 2017, there on logits): scale, bias (C,)."""

    scale: np.ndarray
    bias: np.ndarray

    @classmethod
    def fit(cls, predictions: Predictions, ridge: float = RIDGE) -> VectorScaling:
        """The minimizer of NLL + ridge (|scale - 1|^2 + |bias|^2), a convex problem, by L-BFGS with its exact gradient.

        It needs finite log p(y|x): a scale on a class that is ruled out has no meaning.
        """
        from scipy.optimize import minimize  # noqa: PLC0415

        log_posterior, labels = _fitting_data("vector scaling", predictions)
        if not np.isfinite(log_posterior).all():
            raise ValueError("vector scaling needs finite log p(y|x); got a class ruled out by -inf")
        if not ridge > 0:
            raise ValueError(f"ridge must be above 0; got {ridge!r}")
        count = predictions.num_classes
        identity = cls(np.ones(count), np.zeros(count))
        # In units in which scale and bias move the scores alike, and from the best temperature: many fewer steps.
        unit = np.concatenate([1 / np.sqrt(1 + (log_posterior**2).mean(0)), np.ones(count)])
        inverse = min(max(1 / TemperatureScaling.fit(predictions).temperature, 0.1), 10.0)  # the ridge keeps near 1
        start = np.repeat([inverse, 0.0], count)

        def objective(moved: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = vector_objective(start + unit * moved, log_posterior, labels, ridge)
            return value, gradient * unit

        options = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-13, "gtol": 1e-8}
        found = start + unit * minimize(objective, np.zeros(2 * count), jac=True, method="L-BFGS-B", options=options).x
        return _if_better(cls(found[:count], found[count:]), identity, predictions)

    def scores(self, log_posterior: np.ndarray) -> np.ndarray:
        """scale_y log p(y|x) + bias_y."""
        if log_posterior.shape[1] != len(self.scale):
            raise ValueError(f"predictions must have {len(self.scale)} classes; got {log_posterior.shape[1]}")
        return log_posterior * self.scale + self.bias

    @property
    def is_identity(self) -> bool:
        """Scales of 1 and biases of 0."""
        return bool((self.scale == 1).all() and (self.bias == 0).all())


def vector_objective(
    parameters: np.ndarray, log_posterior: np.ndarray, labels: np.ndarray, ridge: float
) -> tuple[float, np.ndarray]:
    """Vector scaling's objective and its gradient in (scale, bias), (2C,)."""
    scale, bias = np.split(parameters, 2)
    rows = np.arange(len(labels))
    scores = log_posterior * scale + bias
    scores -= scores.max(1, keepdims=True)
    error = np.exp(scores)
    total = error.sum(1, keepdims=True)
    loss = float((np.log(total[:, 0]) - scores[rows, labels]).mean())
    error /= total
    error[rows, labels] -= 1
    away = parameters - np.repeat([1.0, 0.0], len(scale))
    gradient = np.concatenate([(error * log_posterior).mean(0), error.mean(0)]) + 2 * ridge * away
    return loss + ridge * float(away @ away), gradient


def _fitting_data(what: str, predictions: Predictions) -> tuple[np.ndarray, np.ndarray]:
    held = predictions.in_scope()
    if not np.isfinite(nll(held)):
        got = "a label of probability 0" if len(held) else "no row with a label"
        raise ValueError(f"{what} needs labels with finite log p(y|x); got {got}")
    return held.log_posterior, held.labels


def _if_better(fitted: S, identity: S, predictions: Predictions) -> S:
    return fitted if nll(fitted.apply(predictions)) < nll(predictions) else identity
