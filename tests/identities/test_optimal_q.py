"""eq:optimal_q: with theta fixed, latents free to move under VC settle at q(z|y) in proportion to p(z|y) p(y|z)^(1/beta)."""

import math

import pytest
import torch
from torch import nn

from varclass import VariationalHead

PER_CLASS = 1024


def moments_of_the_optimum(beta):
    """Mean and variance of q(z|y) for the class at -1 of two unit Gaussians at -1 and 1, by quadrature."""
    z = torch.linspace(-12, 12, 20001, dtype=torch.float64)
    log_prior = -0.5 * torch.stack([z + 1, z - 1]).square()
    density = torch.exp(log_prior[0] + torch.log_softmax(log_prior, dim=0)[0] / beta)
    density = density / density.sum()
    mean = (density * z).sum()
    return float(mean), float((density * (z - mean).square()).sum())


def train_free_latents(beta, ratio, steps=450):
    """Mean and variance of the latents, the class at 1 mirrored onto the one at -1, averaged over the last steps.

    Latents move by plain gradient steps of 0.02 (the loss is a mean, hence the factor), psi by a faster Adam; both rates
    fall to zero over the second half. Each step is one backward pass of the head's loss, as in Algorithm 1.
    """
    torch.manual_seed(0)
    head = VariationalHead(
        1,
        2,
        means="simplex",
        covariance="unit",
        separation=1.0,
        label_prior="uniform",
        ratio=ratio,
        objective="vc",
        beta=beta,
    )
    y = torch.arange(2).repeat_interleave(PER_CLASS)
    to_first = -head.class_prior.mean[y]  # +1 or -1
    z = nn.Parameter(head.sample(y))
    latents, psi = torch.optim.SGD([z], lr=0.02 * len(y)), torch.optim.Adam(head.ratio.parameters(), lr=0.01)
    schedules = [torch.optim.lr_scheduler.LambdaLR(o, lambda i: min(1.0, 2 - 2 * i / steps)) for o in (latents, psi)]
    found = []
    for step in range(steps):
        latents.zero_grad()
        psi.zero_grad()
        head.loss(z, y).backward()
        for each in (latents, psi, *schedules):
            each.step()
        if step >= 0.7 * steps:
            u = (z.detach() * to_first).reshape(2, PER_CLASS)
            found.append(torch.stack([u.mean(), u.var(dim=1).mean()]))
    return tuple(torch.stack(found).mean(0).tolist())


def test_eq_optimal_q_the_quadrature_gives_the_known_moments_at_beta_one():
    mean, variance = moments_of_the_optimum(1.0)
    assert mean == pytest.approx(-1.290, abs=5e-4)
    assert variance == pytest.approx(0.744, abs=5e-4)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_eq_optimal_q_free_latents_converge_to_the_tilted_prior(beta):
    # As close to the optimum's mean and variance as that many independent draws of it would be, within 5 standard errors.
    mean, variance = moments_of_the_optimum(beta)
    error_of_mean, error_of_variance = math.sqrt(variance / (2 * PER_CLASS)), variance * math.sqrt(2 / (2 * PER_CLASS))
    assert abs(mean + 1) > 5 * error_of_mean  # the prior, where they start, would not pass
    assert abs(variance - 1) > 5 * error_of_variance
    found_mean, found_variance = train_free_latents(beta, "mlp")
    assert abs(found_mean - mean) < 5 * error_of_mean
    assert abs(found_variance - variance) < 5 * error_of_variance


def test_eq_optimal_q_a_linear_ratio_lets_the_latents_collapse():
    # A linear T holds the class means near the priors' but cannot see the variance, which log p(y|z) drives to zero.
    _, variance = train_free_latents(1.0, "linear")
    assert variance < 0.05
