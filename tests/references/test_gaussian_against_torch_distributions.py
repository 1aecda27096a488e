"""GaussianPrior against torch.distributions.Normal, every covariance."""

import math

import pytest
import torch
from torch.distributions import Normal

from varclass.core.priors import GaussianPrior

COVARIANCES = GaussianPrior.covariances
CLASSES, DIM = 4, 3


def random_prior(covariance, means="learned", factor=1.0):
    torch.manual_seed(0)
    prior = GaussianPrior(CLASSES, DIM, covariance, means, 2.0).double()
    with torch.no_grad():
        for parameter in prior.parameters():
            parameter.add_(0.7 * torch.randn_like(parameter))
        prior.scale_factor = factor
    return prior


def reference(prior):
    """N(mu_y, sigma_y), (C, D), with log sigma = L sin(parameter * units / L) + log factor written out."""
    limit = math.log(30)
    units = 1 / math.sqrt(DIM) if prior.covariance in ("isotropic", "unit") else 1.0
    sigma = torch.exp(limit * torch.sin(prior.log_scale.detach() * units / limit)) * prior.scale_factor
    mean = prior.origin + sigma / prior.scale_factor * prior.offset.detach()
    return Normal(mean, sigma.expand(CLASSES, DIM))


@pytest.mark.parametrize("factor", [1.0, 1.7])
@pytest.mark.parametrize("means", ["learned", "simplex"])
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_log_prob_is_that_of_independent_normals(covariance, means, factor):
    prior = random_prior(covariance, means, factor)
    z, y = 3 * torch.randn(50, DIM, dtype=torch.float64), torch.randint(CLASSES, (50,))
    expected = reference(prior).log_prob(z[:, None]).sum(-1)
    torch.testing.assert_close(prior.log_prob(z), expected, rtol=1e-9, atol=0)
    torch.testing.assert_close(prior.log_prob(z, slice(1, 3)), expected[:, 1:3], rtol=1e-9, atol=0)
    torch.testing.assert_close(prior.log_prob_of(z, y), expected[torch.arange(50), y], rtol=1e-9, atol=0)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_log_prob_has_the_gradients_of_independent_normals(covariance):
    # For z and for the offset of the mean in sigma, of a weighted sum over all classes, and of the chosen class alone.
    prior = random_prior(covariance)
    y, weight = torch.randint(CLASSES, (50,)), torch.randn(50, CLASSES, dtype=torch.float64)
    rows = torch.arange(50)
    z = (3 * torch.randn(50, DIM, dtype=torch.float64)).requires_grad_()
    offset, sigma = prior.offset.detach().clone().requires_grad_(), reference(prior).stddev
    log_prob = Normal(sigma * offset, sigma).log_prob(z[:, None]).sum(-1)
    for ours, theirs in (
        ((prior.log_prob(z) * weight).sum(), (log_prob * weight).sum()),
        (prior.log_prob_of(z, y).sum(), log_prob[rows, y].sum()),
    ):
        found = torch.autograd.grad(ours, [z, prior.offset])
        expected = torch.autograd.grad(theirs, [z, offset], retain_graph=True)
        for f, e in zip(found, expected, strict=True):
            torch.testing.assert_close(f, e, rtol=1e-9, atol=1e-9 * float(e.abs().max()))


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_log_prob_in_float32_is_right_far_from_the_origin(covariance):
    # Means 100 sigma away, where the naive expanded square is off by nats: relative to the densities' size, 1e-5.
    prior = random_prior(covariance)
    prior.origin.add_(100.0)
    z = prior.sample(torch.arange(CLASSES).repeat(20)).float()
    single = random_prior(covariance).float()
    with torch.no_grad():
        single.load_state_dict(prior.state_dict())
    prior.load_state_dict(single.state_dict())  # the rounded parameters
    expected = reference(prior).log_prob(z.double()[:, None]).sum(-1)
    torch.testing.assert_close(single.log_prob(z).double(), expected, rtol=1e-5, atol=1e-5 * float(expected.abs().max()))


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_sample_has_the_mean_and_variance_of_the_normal(covariance):
    # Every class and coordinate, within 5 standard errors of the mean and of the variance.
    prior, n = random_prior(covariance, factor=1.3), 4000
    expected = reference(prior)
    z = prior.sample(torch.arange(CLASSES).repeat_interleave(n)).reshape(CLASSES, n, DIM)
    mean_error = (z.mean(1) - expected.mean) / (expected.stddev / math.sqrt(n))
    variance_error = (z.var(1) / expected.variance - 1) / math.sqrt(2 / (n - 1))
    assert float(mean_error.abs().max()) < 5
    assert float(variance_error.abs().max()) < 5
    centred = (z - expected.mean[:, None]) / expected.stddev[:, None]
    correlation = torch.einsum("cni,cnj->cij", centred, centred) / n
    off_diagonal = correlation[:, ~torch.eye(DIM, dtype=torch.bool)] * math.sqrt(n)
    assert float(off_diagonal.abs().max()) < 5


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_standardize_is_the_inverse_of_the_normals_location_and_scale(covariance):
    prior = random_prior(covariance, factor=1.3)
    y = torch.randint(CLASSES, (50,))
    u = torch.randn(50, DIM, dtype=torch.float64)
    expected = reference(prior)
    torch.testing.assert_close(prior.standardize(expected.mean[y] + expected.stddev[y] * u, y), u, rtol=1e-9, atol=1e-9)
