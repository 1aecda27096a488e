import numpy as np
import pytest
import torch
from scipy.stats import norm

import varclass
from varclass.metrics import Predictions, accuracy, estimate_label_prior, label_shift, nll, replace_label_prior
from varclass.metrics.scores import negative_log_likelihoods

TRAINED = np.array([0.5, 0.3, 0.2])


def mixture(n, prior, seed=0, trained=(0.5, 0.5), gap=2.0):
    """Two classes, x ~ N(+-gap/2, 1), predicted by Bayes' rule under the trained prior."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < prior[1]).astype(int)
    x = rng.standard_normal(n) + gap * (labels - 0.5)
    log_density = norm.logpdf(x[:, None], loc=[-gap / 2, gap / 2])
    return Predictions.of(log_density + np.log(trained), labels), log_density


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("options", [{}, {"max_steps": 3}, {"tolerance": 1e-3}])
def test_em_is_that_of_the_core(simulate, seed, options):
    held = simulate(150, 3, seed)
    expected = varclass.estimate_label_prior(torch.tensor(held.log_joint), torch.tensor(TRAINED), **options)
    np.testing.assert_allclose(estimate_label_prior(held, TRAINED, **options), expected.numpy(), rtol=1e-9)


def test_em_finds_a_shifted_prior_to_its_sampling_error():
    held, log_density = mixture(20000, (0.85, 0.15))
    found = estimate_label_prior(held, [0.5, 0.5])
    density = np.exp(log_density)
    blend = density @ [0.85, 0.15]
    information = (((density[:, 1] - density[:, 0]) / blend) ** 2).sum()
    assert abs(found[1] - 0.15) <= 5 / np.sqrt(information)


def test_another_prior_by_hand_and_back_again():
    held = Predictions.of(np.log([[0.2, 0.3], [0.4, 0.1]]), [0, 1])
    after = replace_label_prior(held, [0.5, 0.5], [0.25, 0.75])
    np.testing.assert_allclose(np.exp(after.log_joint), [[0.1, 0.45], [0.2, 0.15]], rtol=1e-9)
    back = replace_label_prior(after, [0.25, 0.75], [0.5, 0.5])
    np.testing.assert_allclose(back.log_joint, held.log_joint, rtol=1e-9)
    assert after.labels.tolist() == [0, 1]
    gone = replace_label_prior(held, [0.5, 0.5], [1.0, 0.0])
    assert gone.probabilities.tolist() == [[1, 0], [1, 0]]
    assert nll(gone) == np.inf


def test_the_three_priors_side_by_side():
    held, _ = mixture(20000, (0.9, 0.1), seed=1)
    found = label_shift(held, [0.5, 0.5], [0.9, 0.1])
    assert found["n"] == 20000
    assert found["accuracy_trained"] == accuracy(held)
    assert found["nll_trained"] == pytest.approx(nll(held), rel=1e-9)
    true = replace_label_prior(held, [0.5, 0.5], [0.9, 0.1])
    assert found["nll_true"] == pytest.approx(nll(true), rel=1e-9)
    gain = negative_log_likelihoods(held) - negative_log_likelihoods(true)
    assert gain.mean() > 5 * gain.std() / np.sqrt(len(gain))
    estimated = np.array(found["estimated_prior"])
    assert found["nll_estimated"] == pytest.approx(nll(replace_label_prior(held, [0.5, 0.5], estimated)), rel=1e-9)
    assert found["estimate_distance"] == pytest.approx(abs(estimated[1] - 0.1), rel=1e-9)
    assert estimated.sum() == pytest.approx(1, rel=1e-9)


def test_rows_without_a_label_are_left_out_and_nothing_gives_nan(simulate):
    held = simulate(60, 3)
    mixed = Predictions.of(held.log_joint, np.where(np.arange(60) < 40, held.labels, -1))
    assert label_shift(mixed, TRAINED, TRAINED) == label_shift(held.take(np.arange(40)), TRAINED, TRAINED)
    found = label_shift(simulate(0, 3), TRAINED, TRAINED)
    assert found.pop("n") == 0
    assert np.isnan(np.hstack(list(found.values()))).all()
    one = label_shift(simulate(1, 3), TRAINED, TRAINED)
    assert one["n"] == 1
    assert np.isfinite(np.hstack(list(one.values()))).all()


@pytest.mark.parametrize(
    ("trained", "new", "message"),
    [
        ([0.5, 0.5], TRAINED, r"trained must hold 3 probabilities; got shape \(2,\)"),
        (TRAINED, [0.5, 0.6, 0.1], "new must be non-negative and sum to 1; got min 0.1, sum 1.2"),
        (TRAINED, [1.5, -0.5, 0.0], "new must be non-negative and sum to 1; got min -0.5"),
        ([0.5, 0.0, 0.5], TRAINED, "trained must give every class a probability above 0; got 0 for class 1"),
        ([np.nan, 0.5, 0.5], TRAINED, "trained must be non-negative"),
    ],
)
def test_priors_of_the_wrong_kind_are_refused(simulate, trained, new, message):
    with pytest.raises(ValueError, match=message):
        replace_label_prior(simulate(5, 3), trained, new)


def test_a_ruled_out_class_has_no_estimate():
    with pytest.raises(ValueError, match="log_joint must be finite to estimate"):
        estimate_label_prior(Predictions.of([[0.0, -np.inf]]), [0.5, 0.5])
