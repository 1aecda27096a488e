"""estimate_label_prior and calibrate against a direct numerical optimisation of the same likelihoods."""

import math

import numpy as np
import pytest
import torch
from scipy import optimize
from torch.distributions import Normal

from varclass import VariationalHead, estimate_label_prior

TRAINED, SHIFTED = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64), torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)


def head_with(label_prior=TRAINED, seed=0, **options):
    torch.manual_seed(seed)
    head = VariationalHead(2, 3, objective="ce", separation=1.5, label_prior="learned", **options).double()
    with torch.no_grad():
        head.label_prior.logits.copy_(label_prior.log())
        if isinstance(head.class_prior.log_scale, torch.nn.Parameter):
            head.class_prior.log_scale.add_(0.3 * torch.randn_like(head.class_prior.log_scale))
    return head


@torch.no_grad()
def shifted_likelihoods(n=3000):
    """log p(y|z) of a head trained with one p(y) on latents that come from another, and p(z|y) as an array (N, C)."""
    head = head_with()
    z = head.sample(torch.multinomial(SHIFTED, n, replacement=True))
    prior = head.class_prior
    likelihood = Normal(prior.mean, prior.log_sigma().exp()).log_prob(z[:, None]).sum(-1).exp().numpy()
    return head.log_posterior(z), likelihood


def maximum_likelihood(likelihood):
    """argmax over p(y) of sum_i log sum_y p(z_i|y) p(y), by BFGS in the log odds."""

    def loss_and_slope(free):
        logits = np.append(free, 0.0)
        probs = np.exp(logits - np.logaddexp.reduce(logits))
        evidence = likelihood @ probs
        slope = -(likelihood / evidence[:, None]).mean(0) * probs + probs
        return -np.log(evidence).mean(), slope[:-1]

    free = optimize.minimize(loss_and_slope, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-12, "xrtol": 1e-14}).x
    logits = np.append(free, 0.0)
    return np.exp(logits - np.logaddexp.reduce(logits))


def test_estimate_label_prior_is_the_maximum_of_the_likelihood():
    log_posterior, likelihood = shifted_likelihoods()
    found = estimate_label_prior(log_posterior, TRAINED, tolerance=1e-14, max_steps=20_000).numpy()
    np.testing.assert_allclose(found, maximum_likelihood(likelihood), rtol=1e-7)  # half the digits of a flat maximum
    # The condition of Kuhn and Tucker: the slope of the mean log-likelihood is one in every class that is present.
    np.testing.assert_allclose((likelihood / (likelihood @ found)[:, None]).mean(0), 1, rtol=1e-9)


def test_estimate_label_prior_recovers_a_shifted_prior():
    # Within 5 standard errors, from the information in p(z|y) about p(y); the trained p(y) is farther away.
    log_posterior, likelihood = shifted_likelihoods()
    found = estimate_label_prior(log_posterior, TRAINED).numpy()
    score = (likelihood[:, :2] - likelihood[:, 2:]) / (likelihood @ SHIFTED.numpy())[:, None]
    covariance = np.linalg.inv(score.T @ score)
    step = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])  # the third probability follows from the first two
    error = np.sqrt(np.diag(step @ covariance @ step.T))
    assert np.all(np.abs(found - SHIFTED.numpy()) < 5 * error)
    assert np.any(np.abs(TRAINED.numpy() - SHIFTED.numpy()) > 5 * error)


def test_estimate_label_prior_takes_a_log_joint_as_well():
    # What is common to all classes drops out.
    log_posterior, _ = shifted_likelihoods(500)
    shifted = log_posterior + torch.linspace(-5, 5, 500, dtype=torch.float64)[:, None]
    found, expected = estimate_label_prior(shifted, TRAINED), estimate_label_prior(log_posterior, TRAINED)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=0)


@torch.no_grad()
def test_with_label_prior_is_bayes_rule_with_the_other_prior():
    # log p(y|z) shifts by log of the ratio of the priors, up to a constant per latent; p(y) is kept in float32.
    head = head_with()
    z = torch.randn(50, 2, dtype=torch.float64)
    expected = torch.log_softmax(head.log_posterior(z) + (SHIFTED / TRAINED).log(), dim=1)
    torch.testing.assert_close(head.with_label_prior(SHIFTED).log_posterior(z), expected, rtol=1e-5, atol=1e-5)


# ---------------------------------------------------------------------------------------------------------------- calibrate


@torch.no_grad()
def held_out(head, width, n=1500):
    """Latents whose sigma is `width` times what the head anticipates, with their labels."""
    y = torch.multinomial(head.label_prior.probs(), n, replacement=True)
    prior = head.class_prior
    return prior.mean[y] + width * prior.log_sigma().exp().expand(3, 2)[y] * torch.randn(n, 2, dtype=torch.float64), y


def best_factor(head, z, y):
    """The common factor on sigma that minimises -E log p(y|z), by scipy, with densities of torch.distributions."""
    mean, sigma = head.class_prior.mean.detach(), head.class_prior.log_sigma().detach().exp().expand(3, 2)
    log_label = head.label_prior.log_probs().detach()

    def loss(log_factor):
        joint = Normal(mean, sigma * math.exp(log_factor)).log_prob(z[:, None]).sum(-1) + log_label
        return float(torch.nn.functional.cross_entropy(joint, y))

    return math.exp(optimize.minimize_scalar(loss, bounds=(-4, 4), method="bounded", options={"xatol": 1e-9}).x)


@pytest.mark.parametrize("width", [0.6, 1.7])
@pytest.mark.parametrize("covariance", ["diagonal", "isotropic", "shared", "unit"])
def test_calibrate_finds_scipys_minimum(covariance, width):
    # Golden section stops at an interval of 1e-5 in log s; calling it again fits anew and finds the same.
    head = head_with(covariance=covariance)
    z, y = held_out(head, width)
    expected = best_factor(head, z, y)
    assert abs(math.log(expected)) > 0.1  # there is something to find
    assert head.calibrate(z, y) == pytest.approx(expected, rel=1e-5)
    assert head.calibrate(z, y) == pytest.approx(expected, rel=1e-5)


@torch.no_grad()
def test_calibrate_is_temperature_scaling_where_the_covariance_is_shared_and_the_prior_uniform():
    # The log joint at s sigma is the log joint over s^2, up to a constant: T = s^2.
    head = head_with(torch.full((3,), 1 / 3, dtype=torch.float64), covariance="shared")
    z, y = held_out(head, 1.7)
    before = head(z)
    factor = head.calibrate(z, y)
    assert factor > 1.1
    torch.testing.assert_close(head.log_posterior(z), torch.log_softmax(before / factor**2, dim=1), rtol=1e-9, atol=1e-12)


@torch.no_grad()
def test_calibrate_is_not_temperature_scaling_where_the_prior_is_not_uniform():
    # The control: a temperature would flatten p(y) too, which calibrate leaves alone.
    head = head_with(covariance="shared")
    z, y = held_out(head, 1.7)
    before = head(z)
    factor = head.calibrate(z, y)
    assert float((head.log_posterior(z) - torch.log_softmax(before / factor**2, dim=1)).abs().max()) > 0.1
    torch.testing.assert_close(head.label_prior.probs(), TRAINED, rtol=1e-9, atol=0)
