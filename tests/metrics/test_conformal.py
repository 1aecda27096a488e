import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom

from varclass.metrics import Predictions, fit_conformal, set_summary
from varclass.metrics.conformal import conformity_scores, rank
from varclass.metrics.draws import uniform

FORMS = [("threshold", False), ("aps", False), ("aps", True)]
CONTINUOUS = [("threshold", False), ("aps", True)]


def coverage_law(m, n, alpha):
    """Of the number covered among m new samples, if no two scores are equal: beta-binomial (Vovk 2012)."""
    k = rank(n, alpha)
    return betabinom(m, k, n + 1 - k)


# -------------------------------------------------------------------------------------------------------------- coverage


@pytest.mark.parametrize(("method", "randomized"), FORMS)
@pytest.mark.parametrize("alpha", [0.05, 0.3])
@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_coverage_is_what_was_promised_calibrated_or_not(simulate, method, randomized, alpha, temperature):
    held, new = simulate(800, 6, 1, temperature), simulate(5000, 6, 2, temperature)
    sets = fit_conformal(held, alpha, method, randomized=randomized).apply(new)
    law = coverage_law(5000, 800, alpha)
    covered = sets[np.arange(5000), new.labels].sum()
    assert covered >= law.mean() - 5 * law.std()
    if (method, randomized) in CONTINUOUS:
        assert covered <= law.mean() + 5 * law.std()


@pytest.mark.parametrize(("method", "randomized"), FORMS)
def test_coverage_holds_within_every_class_by_class(simulate, method, randomized):
    held, new = simulate(3000, 3, 1, 2.0), simulate(6000, 3, 2, 2.0)
    # A rare class that the classifier hardly believes in: marginal sets would sacrifice it.
    tilt = np.array([0.0, 0.0, -4.0])
    held, new = (Predictions.of(part.log_joint + tilt, part.labels) for part in (held, new))
    fitted = fit_conformal(held, 0.1, method, randomized=randomized, by_class=True)
    sets = fitted.apply(new)
    assert fitted.n.tolist() == np.bincount(held.labels).tolist()
    for c in range(3):
        mine = new.labels == c
        law = coverage_law(int(mine.sum()), int(fitted.n[c]), 0.1)
        covered = sets[mine, c].sum()
        assert covered >= law.mean() - 5 * law.std()
        if (method, randomized) in CONTINUOUS:
            assert covered <= law.mean() + 5 * law.std()
    if (method, randomized) in CONTINUOUS:  # plain "aps" ties at the least probable class, and gives full sets here
        marginal = fit_conformal(held, 0.1, method, randomized=randomized).apply(new)
        assert set_summary(marginal, new.labels)["coverage_by_class"][2] < 0.8


@pytest.mark.parametrize(("method", "randomized"), CONTINUOUS)
@pytest.mark.parametrize(("n", "alpha"), [(9, 0.1), (19, 0.1), (12, 0.3)])
def test_coverage_of_few_calibration_samples_is_exact_on_average(simulate, method, randomized, n, alpha):
    repeats, m = 400, 20
    pool = simulate(repeats * (n + m), 4, 5, 1.5)
    covered = 0
    for r in range(repeats):
        rows = np.arange(r * (n + m), (r + 1) * (n + m))
        fitted = fit_conformal(pool.take(rows[:n]), alpha, method, randomized=randomized, seed=r)
        new = pool.take(rows[n:])
        covered += fitted.apply(new)[np.arange(m), new.labels].sum()
    law = coverage_law(m, n, alpha)
    assert abs(covered - repeats * law.mean()) <= 5 * law.std() * np.sqrt(repeats)


# ----------------------------------------------------------------------------------------------------------- by hand


def test_the_rank_is_exact():
    for hundredths in range(1, 100):
        for n in range(300):
            assert rank(n, hundredths / 100) == -(-(n + 1) * (100 - hundredths) // 100)


def test_thresholds_by_hand():
    held = Predictions.of(np.log([[p, 1 - p] for p in (0.9, 0.8, 0.7, 0.6)]), [0, 0, 0, 0])
    fitted = fit_conformal(held, 0.4)  # k = ceil(5 * .6) = 3
    np.testing.assert_allclose(fitted.thresholds, -np.log(0.7), rtol=1e-9)
    new = Predictions.of(np.log([[0.75, 0.25], [0.6, 0.4], [0.2, 0.8]]))
    assert fitted.apply(new).tolist() == [[True, False], [False, False], [False, True]]


def test_aps_scores_by_hand():
    held = Predictions.of(np.log([[0.2, 0.5, 0.3], [0.25, 0.25, 0.5]]))
    np.testing.assert_allclose(conformity_scores(held, "aps") + 1, [[1, 0.5, 0.8], [0.75, 1, 0.5]], rtol=1e-9)
    half = conformity_scores(held, "aps", np.array([0.5, 0.0])) + 1
    np.testing.assert_allclose(half, [[0.9, 0.25, 0.65], [0.5, 0.75, 0]], rtol=1e-9, atol=1e-15)


def test_aps_sets_are_the_most_probable_classes_without_a_gap(simulate):
    held = simulate(200, 6)
    sets = fit_conformal(held, 0.2, "aps").apply(held)
    ranks = np.argsort(np.argsort(-held.log_joint, axis=1), axis=1)
    assert (np.where(sets, ranks, -1).max(1) + 1 == sets.sum(1)).all()


def test_posteriors_that_round_to_one_do_not_fill_the_sets():
    rows = np.full((50, 10), -100.0)
    rows[:, 0] = 0.0
    held = Predictions.of(rows, np.zeros(50, int))
    assert (held.probabilities[:, 0] == 1).all()
    for method, randomized in FORMS:
        sets = fit_conformal(held, 0.1, method, randomized=randomized).apply(held)
        assert sets.sum() <= 50
        assert sets[:, 1:].sum() == 0


@pytest.mark.parametrize(("method", "randomized"), FORMS)
def test_too_few_rows_give_the_full_set_and_say_so(simulate, method, randomized):
    new = simulate(30, 4, 9)
    for n in (0, 1, 8):
        fitted = fit_conformal(simulate(n, 4), 0.1, method, randomized=randomized)
        assert fitted.full.all()
        assert fitted.apply(new).all()
    assert not fit_conformal(simulate(9, 4), 0.1, method, randomized=randomized).full.any()
    lopsided = Predictions.of(simulate(40, 2).log_joint, np.repeat([0, 1], [32, 8]))
    fitted = fit_conformal(lopsided, 0.1, method, randomized=randomized, by_class=True)
    assert fitted.full.tolist() == [False, True]
    assert fitted.apply(simulate(30, 2, 9))[:, 1].all()


def test_a_label_of_probability_zero_has_an_infinite_score_and_a_ruled_out_class_is_left_out():
    rows = np.array([[0.0, -np.inf]] * 9)
    held = Predictions.of(rows, [0] * 8 + [1])
    assert fit_conformal(held, 0.1).apply(held).all()  # k = 9 of 9: the infinite one
    assert fit_conformal(held, 0.2).apply(held).tolist() == [[True, False]] * 9


@given(st.integers(0, 1000), st.sampled_from(FORMS), st.booleans())
def test_sets_shrink_as_alpha_grows(seed, form, by_class):
    rng = np.random.default_rng(seed)
    held = Predictions.of(rng.standard_normal((60, 3)), rng.integers(-1, 3, 60))
    new = Predictions.of(rng.standard_normal((20, 3)))
    options = {"method": form[0], "randomized": form[1], "by_class": by_class}
    before = np.ones((20, 3), bool)
    for alpha in (0.02, 0.1, 0.5, 0.9):
        fitted = fit_conformal(held, alpha, **options)
        sets = fitted.apply(new)
        assert (sets <= before).all()
        assert (fitted.n if by_class else fitted.n[:1]).sum() == (held.labels >= 0).sum()
        before = sets


def test_the_draws_are_seeded_and_independent_of_those_of_calibration(simulate):
    held = simulate(500, 4)
    fitted = fit_conformal(held, 0.3, "aps", randomized=True, seed=7)
    sets = fitted.apply(held)
    np.testing.assert_array_equal(sets, fit_conformal(held, 0.3, "aps", randomized=True, seed=7).apply(held))
    again = conformity_scores(held, "aps", uniform(500, 7)) <= fitted.thresholds
    assert again[np.arange(500), held.labels].sum() == rank(500, 0.3)  # the draws of calibration, reused: k by construction
    other = conformity_scores(held, "aps", uniform(500, 7, stream=1)) <= fitted.thresholds
    np.testing.assert_array_equal(sets, other)
    assert (sets != again).any()


# ----------------------------------------------------------------------------------------------------- summary and errors


def test_the_summary_by_hand():
    sets = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 1, 1]], bool)
    found = set_summary(sets, [0, 2, 1, -1])
    assert (found["n"], found["n_labeled"]) == (4, 3)
    assert found["coverage"] == pytest.approx(1 / 3, rel=1e-9)
    assert found["coverage_by_class"] == [1, 0, 0]
    assert (found["size"], found["empty"], found["singleton"]) == (1.5, 0.25, 0.25)


def test_the_summary_of_nothing_is_nan():
    found = set_summary(np.empty((0, 2), bool), [])
    assert (found["n"], found["n_labeled"]) == (0, 0)
    assert all(np.isnan(found[name]) for name in ("coverage", "size", "empty", "singleton"))
    assert np.isnan(found["coverage_by_class"]).all()
    assert len(found["coverage_by_class"]) == 2


def test_what_is_wrong_is_refused(simulate):
    held = simulate(20, 3)
    with pytest.raises(ValueError, match="alpha must lie strictly between 0 and 1; got 0"):
        fit_conformal(held, 0)
    with pytest.raises(ValueError, match="method must be one of 'threshold', 'aps'; got 'raps'"):
        fit_conformal(held, 0.1, "raps")
    with pytest.raises(ValueError, match="randomized needs method 'aps'; got 'threshold'"):
        fit_conformal(held, 0.1, randomized=True)
    with pytest.raises(ValueError, match="predictions must have 3 classes; got 2"):
        fit_conformal(held, 0.1).apply(simulate(5, 2))
    with pytest.raises(ValueError, match="sets must be bool with shape"):
        set_summary(np.ones((2, 2)), [0, 1])
