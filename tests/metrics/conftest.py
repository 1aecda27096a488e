"""Simulated predictions: a classifier whose labels are drawn from its own p(y|x), or from a tempered one."""

import numpy as np
import pytest

from varclass.metrics import Predictions


def draw_labels(probabilities, rng):
    return (probabilities.cumsum(1) < rng.random((len(probabilities), 1))).sum(1).clip(max=probabilities.shape[1] - 1)


@pytest.fixture
def simulate():
    """simulate(n, classes, seed, temperature): labels from p(y|x)^(1/T), so T = 1 is calibrated."""

    def make(n=400, classes=4, seed=0, temperature=1.0, spread=2.0):
        rng = np.random.default_rng(seed)
        log_joint = spread * rng.standard_normal((n, classes)) - 50 * rng.random((n, 1))
        return Predictions.of(log_joint, draw_labels(Predictions.of(log_joint / temperature).probabilities, rng))

    return make
