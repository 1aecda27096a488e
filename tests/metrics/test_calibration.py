import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torchmetrics.functional.classification import binary_calibration_error, multiclass_calibration_error
from torchmetrics.functional.classification.calibration_error import _ce_compute

from varclass.metrics import Predictions, accuracy, adaptive_ece, classwise_ece, ece, mce, reliability
from varclass.metrics.calibration import bin_edges
from varclass.metrics.intervals import wilson

BINS = [1, 2, 15, 20, 100]


def on_edges(bins):
    """Two-class predictions whose confidences lie exactly on the bins' edges, 1/2 and 1 among them, and next to them."""
    confidence = bin_edges(bins)
    confidence = np.concatenate([confidence, np.nextafter(confidence, 0), np.nextafter(confidence, 1)])
    confidence = confidence[confidence >= 0.5]
    with np.errstate(divide="ignore"):
        rows = np.log(np.stack([confidence, 1 - confidence], axis=1))
    return Predictions.of(rows, np.arange(len(rows)) % 2)


fused = pytest.mark.skipif(torch.backends.cpu.get_cpu_capability() == "DEFAULT", reason="torch.linspace rounds twice here")


@fused
def test_edges_are_those_of_torch():
    for bins in range(1, 300):
        np.testing.assert_array_equal(bin_edges(bins), torch.linspace(0, 1, bins + 1, dtype=torch.float64).numpy())


def test_edges_are_the_fractions_to_two_units_in_the_last_place():
    for bins in range(1, 300):
        np.testing.assert_array_max_ulp(bin_edges(bins), np.arange(bins + 1) / bins, 2)  # the step is rounded, then the edge
        assert (np.diff(bin_edges(bins)) > 0).all()


@fused
@pytest.mark.parametrize("bins", BINS)
@pytest.mark.parametrize("kind", ["random", "sure", "edges"])
def test_errors_are_those_of_torchmetrics_in_float64(simulate, bins, kind):
    held = on_edges(bins) if kind == "edges" else simulate(600, spread=2.0 if kind == "random" else 40.0)
    arguments = torch.tensor(held.confidence), torch.tensor(held.correct, dtype=torch.float64), bins
    assert ece(held, bins) == pytest.approx(float(_ce_compute(*arguments, norm="l1")), rel=1e-9, abs=1e-15)
    assert mce(held, bins) == pytest.approx(float(_ce_compute(*arguments, norm="max")), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("bins", [15, 20])
def test_errors_are_those_of_torchmetrics_public_function_in_float32(simulate, bins):
    held = simulate(600)
    arguments = torch.tensor(held.probabilities), torch.tensor(held.labels), held.num_classes, bins
    assert ece(held, bins) == pytest.approx(float(multiclass_calibration_error(*arguments, norm="l1")), rel=1e-5)
    assert mce(held, bins) == pytest.approx(float(multiclass_calibration_error(*arguments, norm="max")), rel=1e-5)


@pytest.mark.parametrize("bins", [15, 20])
def test_classwise_error_is_the_mean_of_torchmetrics_binary_errors(simulate, bins):
    held = simulate(600)
    each = [
        float(binary_calibration_error(torch.tensor(held.probabilities[:, c]), torch.tensor(held.labels == c).long(), bins))
        for c in range(held.num_classes)
    ]
    assert classwise_ece(held, bins) == pytest.approx(np.mean(each), rel=1e-9)


def test_a_class_nobody_has_still_counts_classwise():
    held = Predictions.of(np.log([[0.5, 0.25, 0.25]] * 2), [0, 1])
    assert classwise_ece(held, 4) == pytest.approx((0 + 0.25 + 0.25) / 3, rel=1e-9)


@pytest.mark.parametrize("n", [3, 20, 101, 600])
def test_adaptive_error_by_cutting_the_sorted_confidences(simulate, n):
    held = simulate(n)
    order = np.argsort(held.confidence)
    gap = (held.correct - held.confidence)[order]
    lengths = [len(part) for part in np.array_split(gap, 20) if len(part)]
    assert max(lengths) - min(lengths) <= 1
    starts = np.unique(np.arange(20) * n // 20)
    assert {len(part) for part in np.split(gap, starts[1:])} == set(lengths)
    expected = sum(abs(part.sum()) for part in np.split(gap, starts[1:])) / n
    assert adaptive_ece(held, 20) == pytest.approx(expected, rel=1e-9)


def test_adaptive_error_of_ties_is_that_of_their_common_accuracy():
    held = Predictions.of(np.log([[0.75, 0.25]] * 8), [0, 0, 0, 0, 1, 1, 1, 1])
    for bins in (1, 2, 3, 8, 50):
        assert adaptive_ece(held, bins) == pytest.approx(0.25, rel=1e-9)
    assert adaptive_ece(held.take(np.arange(8)[::-1]), 3) == pytest.approx(0.25, rel=1e-9)


def test_errors_by_hand():
    held = Predictions.of(np.log([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6]]), [0, 1, 1])
    assert ece(held, 10) == pytest.approx((abs(1 - 1.8) + abs(1 - 0.6)) / 3, rel=1e-9)
    assert mce(held, 10) == pytest.approx(0.4, rel=1e-9)
    assert ece(held, 1) == pytest.approx(abs(2 - 2.4) / 3, rel=1e-9)


samples = st.lists(st.tuples(st.floats(-40, 40), st.floats(-40, 40), st.integers(0, 1)), min_size=1, max_size=40)


@given(samples, st.sampled_from(BINS))
def test_bounds_and_the_order_of_the_rows(found, bins):
    held = Predictions.of([[a, b] for a, b, _ in found], [y for _, _, y in found])
    turned = held.take(np.random.default_rng(0).permutation(len(held)))
    for error in (ece, mce, adaptive_ece, classwise_ece):
        assert 0 <= error(held, bins) <= 1
        assert error(turned, bins) == pytest.approx(error(held, bins), rel=1e-9, abs=1e-12)
    assert ece(held, bins) <= mce(held, bins) + 1e-15
    assert abs(accuracy(held) - held.confidence.mean()) <= ece(held, bins) + 1e-15


def test_the_diagram_holds_what_the_error_is_made_of(simulate):
    held = simulate(400)
    diagram = reliability(held, 15)
    assert diagram.count.sum() == 400
    assert len(diagram.count) == len(diagram.lower) == len(diagram.upper) == 16
    full = diagram.count > 0
    assert np.isnan(diagram.accuracy[~full]).all()
    assert np.isnan(diagram.low[~full]).all()
    gaps = np.abs(diagram.accuracy - diagram.confidence)[full]
    assert (diagram.count[full] * gaps).sum() / 400 == pytest.approx(ece(held, 15), rel=1e-9)
    assert (diagram.lower[full] <= diagram.confidence[full]).all()
    assert (diagram.confidence[full] < diagram.upper[full]).all()
    low, high = wilson(diagram.accuracy[full] * diagram.count[full], diagram.count[full])
    np.testing.assert_allclose(diagram.low[full], low, rtol=1e-9)
    np.testing.assert_allclose(diagram.high[full], high, rtol=1e-9)


def test_a_calibrated_classifier_is_within_its_sampling_error(simulate):
    held = simulate(20000, seed=3)
    diagram = reliability(held, 20)
    full = diagram.count > 0
    confidence, count = diagram.confidence[full], diagram.count[full]
    # Within a bin the events are Bernoulli of their own confidences; the variance is at most that of the mean one.
    error = np.sqrt(confidence * (1 - confidence) / count)
    assert (np.abs(diagram.accuracy[full] - confidence) <= 5 * np.maximum(error, 1 / count)).all()
    assert ece(held) <= (count / 20000 * 5 * error).sum()
    assert ece(simulate(20000, seed=3, temperature=3.0)) > (count / 20000 * 5 * error).sum()


def test_bins_of_the_wrong_kind_are_refused():
    for bins in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="bins must be a whole number of at least 1; got"):
            ece(Predictions.of([[0.0, 1.0]], [0]), bins)
