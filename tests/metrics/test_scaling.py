import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from varclass.metrics import Predictions, TemperatureScaling, VectorScaling, accuracy, nll
from varclass.metrics.scaling import LOG_RANGE, RIDGE, vector_objective

KINDS = [TemperatureScaling, VectorScaling]


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
def test_temperature_scaling_finds_the_temperature_the_labels_were_drawn_with(simulate, temperature):
    held = simulate(20000, 5, 1, temperature)
    found = TemperatureScaling.fit(held).temperature
    # The information in one sample about 1/T is the variance of log p(y|x) under the tempered posterior.
    tempered = Predictions.of(held.log_posterior / temperature).probabilities
    mean = (tempered * held.log_posterior).sum(1)
    information = (tempered * (held.log_posterior - mean[:, None]) ** 2).sum()
    assert abs(1 / found - 1 / temperature) <= 5 / math.sqrt(information)


@given(st.floats(0.51, 0.999), st.integers(1, 30), st.integers(1, 30))
def test_temperature_in_closed_form(confidence, right, wrong):
    """All rows alike: the best confidence is the accuracy, so T is a ratio of log odds."""
    held = Predictions.of(np.log([[confidence, 1 - confidence]] * (right + wrong)), np.repeat([0, 1], [right, wrong]))
    fitted = TemperatureScaling.fit(held)
    if right <= wrong:  # no T > 0 gives the predicted class less than a half
        assert fitted.temperature == math.exp(LOG_RANGE)
    else:
        expected = math.log(confidence / (1 - confidence)) / math.log(right / wrong)
        assert fitted.temperature == pytest.approx(expected, rel=1e-9)


def test_temperature_is_a_minimum_of_the_nll(simulate):
    held = simulate(500, 4, 2, 2.0)
    best = TemperatureScaling.fit(held)
    at_best = nll(best.apply(held))
    assert all(nll(TemperatureScaling(best.temperature * factor).apply(held)) > at_best for factor in (0.9, 0.999, 1.001, 1.1))


def test_data_without_an_error_cannot_say_what_the_temperature_is():
    """They would make it 0, and the first error on new data cost thousands of nats."""
    right = Predictions.of([[1.0, 0.0], [0.0, 1.0], [3.0, 0.5]], [0, 1, 0])
    scaling = TemperatureScaling.fit(right)
    assert scaling.is_identity
    new = Predictions.of([[1.0, 0.0]], [1])
    assert nll(scaling.apply(new)) == nll(new)


def test_data_with_nothing_but_errors_go_to_the_end_of_the_range():
    wrong = Predictions.of([[1.0, 0.0], [0.0, 1.0]], [1, 0])
    assert TemperatureScaling.fit(wrong).temperature == math.exp(LOG_RANGE)


def test_nothing_to_gain_is_the_identity():
    flat = Predictions.of(np.zeros((4, 3)), [0, 1, 2, 0])
    assert TemperatureScaling.fit(flat).temperature == 1
    assert TemperatureScaling(1.0).apply(flat) is flat
    single = Predictions.of(np.zeros((2, 1)), [0, 0])
    for kind in KINDS:
        assert kind.fit(single).is_identity
    even = Predictions.of(np.zeros((3, 3)), [0, 1, 2])
    assert VectorScaling.fit(even).is_identity


# ---------------------------------------------------------------------------------------------------------------- vectors


def test_the_gradient_is_that_of_autograd(simulate):
    held = simulate(80, 4)
    parameters = np.random.default_rng(0).standard_normal(8)
    value, gradient = vector_objective(parameters, held.log_posterior, held.labels, 0.01)
    p = torch.tensor(parameters, requires_grad=True)
    scaled = torch.tensor(held.log_posterior) * p[:4] + p[4:]
    away = p - torch.tensor([1.0] * 4 + [0.0] * 4, dtype=torch.float64)
    loss = torch.nn.functional.cross_entropy(scaled, torch.tensor(held.labels)) + 0.01 * away.square().sum()
    loss.backward()
    assert value == pytest.approx(loss.item(), rel=1e-9)
    np.testing.assert_allclose(gradient, p.grad.numpy(), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("classes", [2, 5])
def test_vector_scaling_is_the_one_minimum(simulate, classes):
    held = simulate(400, classes, 3, 2.0)
    fitted = VectorScaling.fit(held)
    found = np.concatenate([fitted.scale, fitted.bias])
    value, gradient = vector_objective(found, held.log_posterior, held.labels, RIDGE)
    # Convex beyond the ridge's 2 RIDGE: no point lies below value - |gradient|^2 / (4 RIDGE).
    assert gradient @ gradient / (4 * RIDGE) <= 1e-9 * value
    start = np.random.default_rng(1).standard_normal(2 * classes)
    other = minimize(vector_objective, start, (held.log_posterior, held.labels, RIDGE), jac=True, method="BFGS")
    apart = np.linalg.norm(found - other.x)
    assert apart <= (np.linalg.norm(gradient) + np.linalg.norm(other.jac)) / (2 * RIDGE)
    assert value <= other.fun * (1 + 1e-9)


def test_vector_scaling_undoes_a_wrong_bias_that_no_temperature_can(simulate):
    held = simulate(4000, 3, 4)
    tilted = Predictions.of(held.log_joint + np.array([2.0, 0.0, -1.0]), held.labels)
    vector, scalar = VectorScaling.fit(tilted), TemperatureScaling.fit(tilted)
    assert nll(vector.apply(tilted)) < nll(scalar.apply(tilted))
    # 2C free parameters fit the sample at least as well as the truth does, but for the ridge on the way there.
    assert nll(vector.apply(tilted)) <= nll(held) + RIDGE * (2.0**2 + 1.0**2) + 1e-9


# -------------------------------------------------------------------------------------------------------------------- both


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(2, 4), st.sampled_from([0.01, 1.0, 30.0, 1000.0]))
def test_neither_is_ever_worse_than_the_identity_and_both_keep_the_evidence(seed, n, classes, spread):
    rng = np.random.default_rng(seed)
    held = Predictions.of(spread * rng.standard_normal((n, classes)) - spread, rng.integers(0, classes, n))
    for kind in KINDS:
        after = kind.fit(held).apply(held)
        assert nll(after) <= nll(held)
        np.testing.assert_allclose(after.log_evidence, held.log_evidence, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(after.labels, held.labels)
        np.testing.assert_array_equal(after.index, held.index)


def test_a_temperature_keeps_the_predicted_classes_and_evens_out_the_rest(simulate):
    held = simulate(300)
    warm = TemperatureScaling(3.0).apply(held)
    np.testing.assert_array_equal(warm.predicted, held.predicted)
    assert accuracy(warm) == accuracy(held)
    assert (warm.entropy > held.entropy).all()


def test_rows_without_a_label_do_not_count_in_a_fit_and_are_scaled(simulate):
    held = simulate(100)
    labels = np.where(np.arange(100) < 60, held.labels, -1)
    mixed = Predictions.of(held.log_joint, labels)
    for kind in KINDS:
        part, whole = kind.fit(held.take(np.arange(60))), kind.fit(mixed)
        np.testing.assert_array_equal(part.scores(held.log_posterior), whole.scores(held.log_posterior))
        assert len(whole.apply(mixed)) == 100
        assert len(whole.apply(held.take(np.arange(0)))) == 0


def test_ruled_out_classes_are_kept_out_by_a_temperature_and_refused_by_a_vector():
    held = Predictions.of([[0.0, -1.0, -np.inf]] * 5, [0, 0, 0, 0, 1])
    after = TemperatureScaling.fit(held).apply(held)
    np.testing.assert_allclose(after.probabilities, [[0.8, 0.2, 0]] * 5, rtol=1e-9)
    with pytest.raises(ValueError, match="vector scaling needs finite"):
        VectorScaling.fit(held)


def test_what_cannot_be_fitted_is_refused(simulate):
    empty, lost = simulate(0), Predictions.of([[0.0, -np.inf]], [1])
    for kind, name in zip(KINDS, ("temperature", "vector"), strict=True):
        with pytest.raises(ValueError, match=f"{name} scaling needs labels with .*; got no row with a label"):
            kind.fit(empty)
        with pytest.raises(ValueError, match="got a label of probability 0"):
            kind.fit(lost)
    with pytest.raises(ValueError, match="predictions must have 4 classes; got 2"):
        VectorScaling.fit(simulate(50, 4)).apply(simulate(5, 2))
    with pytest.raises(ValueError, match="ridge must be above 0; got 0"):
        VectorScaling.fit(simulate(50, 4), ridge=0)
