"""Ensembles: averages of probabilities, of the same samples only."""

import numpy as np
import pytest

from varclass.metrics.ensemble import ensemble
from varclass.metrics.predictions import Predictions
from varclass.metrics.scores import brier, nll


def members(count: int, n: int = 50, classes: int = 4) -> list[Predictions]:
    rng = np.random.default_rng(0)
    labels = rng.integers(classes, size=n)
    return [Predictions.of(rng.normal(scale=3, size=(n, classes)), labels) for _ in range(count)]


def test_probabilities_and_densities_are_averaged():
    held = members(3)
    found = ensemble(held)
    np.testing.assert_allclose(found.probabilities, np.mean([m.probabilities for m in held], axis=0), rtol=1e-12)
    np.testing.assert_allclose(np.exp(found.log_evidence), np.mean([np.exp(m.log_evidence) for m in held], axis=0), rtol=1e-12)
    assert np.array_equal(found.labels, held[0].labels)


def test_nll_and_brier_are_at_most_the_members_average():  # both are convex in the probabilities
    held = members(4)
    assert nll(ensemble(held)) <= np.mean([nll(m) for m in held])
    assert brier(ensemble(held)) <= np.mean([brier(m) for m in held])


def test_copies_of_one_member_are_that_member():
    (held,) = members(1)
    np.testing.assert_allclose(ensemble([held] * 5).log_joint, held.log_joint, rtol=1e-12, atol=1e-12)


def test_one_member_or_other_samples_are_refused():
    held = members(2)
    with pytest.raises(ValueError, match="at least two members; got 1"):
        ensemble(held[:1])
    with pytest.raises(ValueError, match="the same samples"):
        ensemble([held[0], held[1].take(np.arange(49))])
    with pytest.raises(ValueError, match="the same samples"):
        ensemble([held[0], Predictions.of(held[1].log_joint, (held[1].labels + 1) % 4)])
