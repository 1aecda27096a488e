"""The head at scikit-learn's fitted parameters predicts what scikit-learn predicts: naive Bayes, LDA and QDA."""

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from varclass import VariationalHead

DIM, COUNTS = 3, (80, 50, 120)
Y = np.repeat(np.arange(len(COUNTS)), COUNTS)


def head_at(covariance, mean, sigma, label_prior):
    """A head at the parameters given."""
    head = VariationalHead(DIM, len(mean), objective="ce", covariance=covariance).double()
    prior = head.class_prior
    prior.place(torch.as_tensor(mean), torch.as_tensor(sigma).reshape(prior.log_scale.shape))
    with torch.no_grad():
        head.label_prior.logits.copy_(torch.as_tensor(np.log(label_prior)))
    return head


def overlapping_data(seed=0):
    """Three classes that overlap, correlated, of different sizes."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(3, DIM))
    mixing = rng.normal(size=(3, DIM, DIM)) / 2 + np.eye(DIM)
    return np.concatenate([centers[c] + rng.normal(size=(n, DIM)) @ mixing[c] for c, n in enumerate(COUNTS)])


@torch.no_grad()
def assert_same_predictions(head, model, x):
    z = torch.as_tensor(x)
    expected = model.predict_proba(x)
    assert (expected.max(1) < 0.9).mean() > 0.2  # not all of them certain
    np.testing.assert_allclose(head.log_posterior(z).exp().numpy(), expected, rtol=1e-9)
    # log p near 0 is known to the rounding of p, 1e-15
    np.testing.assert_allclose(head.log_posterior(z).numpy(), model.predict_log_proba(x), rtol=1e-9, atol=1e-14)


def test_a_diagonal_covariance_is_gaussian_naive_bayes():
    x = overlapping_data()
    model = GaussianNB().fit(x, Y)  # var_ holds the smoothed variances it predicts with
    head = head_at("diagonal", model.theta_, np.sqrt(model.var_), model.class_prior_)
    assert_same_predictions(head, model, overlapping_data(seed=1))


def test_log_evidence_of_a_diagonal_covariance_is_that_of_gaussian_naive_bayes():
    # predict_joint_log_proba is scikit-learn's log p(z, y), normalised.
    x = overlapping_data()
    model = GaussianNB().fit(x, Y)
    head = head_at("diagonal", model.theta_, np.sqrt(model.var_), model.class_prior_)
    joint = model.predict_joint_log_proba(x)
    np.testing.assert_allclose(head(torch.as_tensor(x)).detach().numpy(), joint, rtol=1e-9)
    evidence = np.logaddexp.reduce(joint, axis=1)
    np.testing.assert_allclose(head.log_evidence(torch.as_tensor(x)).detach().numpy(), evidence, rtol=1e-9)


def test_a_shared_covariance_is_linear_discriminant_analysis():
    # A rotation to the axes of LDA's covariance makes it diagonal, and changes nothing else.
    x = overlapping_data()
    first = LinearDiscriminantAnalysis(solver="lsqr").fit(x, Y)
    axes = np.linalg.eigh(first.covariance_)[1]
    model = LinearDiscriminantAnalysis(solver="lsqr").fit(x @ axes, Y)
    variance = np.diag(model.covariance_)
    np.testing.assert_allclose(model.covariance_, np.diag(variance), atol=1e-12 * variance.max())
    head = head_at("shared", model.means_, np.sqrt(variance), model.priors_)
    assert_same_predictions(head, model, overlapping_data(seed=1) @ axes)


def test_a_unit_covariance_is_linear_discriminant_analysis_of_whitened_data():
    x = overlapping_data()
    values, axes = np.linalg.eigh(LinearDiscriminantAnalysis(solver="lsqr").fit(x, Y).covariance_)
    whiten = axes / np.sqrt(values)
    model = LinearDiscriminantAnalysis(solver="lsqr").fit(x @ whiten, Y)
    np.testing.assert_allclose(model.covariance_, np.eye(DIM), atol=1e-12)
    head = head_at("unit", model.means_, np.ones((1, 1)), model.priors_)
    assert_same_predictions(head, model, overlapping_data(seed=1) @ whiten)


@pytest.mark.parametrize("covariance", ["diagonal", "isotropic"])
def test_a_covariance_per_class_is_quadratic_discriminant_analysis(covariance):
    # Each class's sample is made exactly uncorrelated (orthogonal columns), so that QDA's covariances are diagonal.
    rng = np.random.default_rng(2)
    x = overlapping_data()
    for c, n in enumerate(COUNTS):
        part = x[c == Y]
        orthonormal = np.linalg.qr(part - part.mean(0))[0]
        spread = rng.uniform(0.7, 1.5, size=DIM if covariance == "diagonal" else 1)
        x[c == Y] = part.mean(0) + orthonormal * spread * np.sqrt(n - 1)
    model = QuadraticDiscriminantAnalysis(store_covariance=True).fit(x, Y)
    variance = np.stack([np.diag(v) for v in model.covariance_])
    for found, diagonal in zip(model.covariance_, variance, strict=True):
        np.testing.assert_allclose(found, np.diag(diagonal), atol=1e-12 * diagonal.max())
    sigma = np.sqrt(variance if covariance == "diagonal" else variance.mean(1))
    head = head_at(covariance, model.means_, sigma, model.priors_)
    assert_same_predictions(head, model, overlapping_data(seed=1))
