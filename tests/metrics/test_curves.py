import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from varclass.metrics import auroc, histograms, roc_curve


def bound(points):
    """How much the area may change, as the docstring has it."""
    return 2 / (points - 2) ** 2 + 1 / (32 * (points - 2))


def staircase(stairs, shape=1.0):
    """Scores whose ROC curve is a stair of equal steps around tpr = fpr^shape, always to one side of its own chords."""
    t = np.linspace(0, 1, stairs + 1)[1:]
    return -np.repeat(t**shape, 3), -np.repeat(t + 1e-9, 2)


@pytest.mark.parametrize("decimals", [None, 1])
def test_the_whole_curve_has_the_exact_area(decimals):
    rng = np.random.default_rng(0)
    inside, outside = rng.normal(1, 1, 80), rng.normal(0, 1, 70)
    if decimals:
        inside, outside = inside.round(decimals), outside.round(decimals)
    curve = roc_curve(inside, outside)
    assert len(curve.fpr) <= 200
    assert curve.area == pytest.approx(auroc(inside, outside), rel=1e-9)


def test_thinning_keeps_the_area_even_of_stairs_in_step_with_the_points():
    assert bound(200) < 1e-3
    assert bound(66) < 1e-3
    worst = 0.0
    for stairs in (198, 396, *range(101, 800, 7)):  # 198 and 396: one or two corners to every step, on the same side
        inside, outside = staircase(stairs)
        curve = roc_curve(inside, outside)
        assert len(curve.fpr) == len(curve.tpr) == 200
        worst = max(worst, abs(curve.area - auroc(inside, outside)))
    assert 0 < worst <= bound(200)


@given(st.integers(0, 10**6), st.integers(70, 250), st.sampled_from([0.3, 1.0, 3.0]), st.booleans())
def test_thinned_curves_are_on_the_curve_and_rise(seed, points, shape, stairs):
    rng = np.random.default_rng(seed)
    inside, outside = (
        staircase(int(rng.integers(300, 900)), shape) if stairs else (rng.normal(shape, 1, 900), rng.normal(0, 1, 700))
    )
    thin, whole = roc_curve(inside, outside, points), roc_curve(inside, outside, 10**6)
    assert len(thin.fpr) <= points
    assert abs(thin.area - auroc(inside, outside)) <= bound(points)
    assert (thin.fpr[0], thin.tpr[0], thin.fpr[-1], thin.tpr[-1]) == (0, 0, 1, 1)
    assert (np.diff(thin.fpr) >= 0).all()
    assert (np.diff(thin.tpr) >= 0).all()
    on_curve = np.interp(thin.fpr + thin.tpr, whole.fpr + whole.tpr, whole.tpr)
    np.testing.assert_allclose(thin.tpr, on_curve, rtol=1e-9, atol=1e-12)


def test_curves_of_nothing_of_ties_and_of_infinite_scores():
    assert len(roc_curve([], [1.0]).fpr) == 0
    assert np.isnan(roc_curve([1.0], []).area)
    ties = roc_curve([1.0, 1.0], [1.0])
    assert ties.fpr.tolist() == ties.tpr.tolist() == [0, 1]
    apart = roc_curve([np.inf, 1.0], [-np.inf])
    assert list(zip(apart.fpr, apart.tpr, strict=True)) == [(0, 0), (0, 1), (1, 1)]
    with pytest.raises(ValueError, match="points must be a whole number of at least 4; got 3"):
        roc_curve([0.0], [1.0], 3)


def test_histograms_share_their_bins_and_count_everyone():
    rng = np.random.default_rng(0)
    inside, outside = rng.normal(0, 1, 500), np.append(rng.normal(-5, 2, 300), [-1e6, -np.inf, np.inf])
    whole, trimmed = histograms(inside, outside, 30), histograms(inside, outside, 30, trim=0.01)
    for found in (whole, trimmed):
        assert found.inside.sum() == 500
        assert found.outside.sum() == 303
        assert len(found.edges) == 31
    assert whole.edges[0] == -1e6
    assert trimmed.edges[0] > -100
    expected, _ = np.histogram(inside[inside < trimmed.edges[-2]], trimmed.edges)
    np.testing.assert_array_equal(trimmed.inside[1:-1], expected[1:-1])
    assert trimmed.inside[-1] == (inside >= trimmed.edges[-2]).sum()
    assert trimmed.outside[0] == (outside < trimmed.edges[1]).sum()


def test_histograms_of_nothing_and_of_one_value():
    for value in (3.0, -1e18):
        found = histograms([value] * 4, [value], bins=4)
        assert found.inside.sum() == 4
        assert found.outside.sum() == 1
        assert (np.diff(found.edges) > 0).all()
    empty = histograms([], [], bins=4)
    assert np.isnan(empty.edges).all()
    assert empty.inside.tolist() == [0] * 4
    assert histograms([], [1.0, 2.0], bins=2).outside.tolist() == [1, 1]
    assert histograms([np.inf], [], bins=2).inside.sum() == 0
    with pytest.raises(ValueError, match=r"trim must lie from 0 to below 0\.5; got 0\.5"):
        histograms([0.0], [1.0], trim=0.5)
