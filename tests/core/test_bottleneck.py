"""objective="bottleneck": its prior term is KL(q(z|x) || p(z|y)) by torch.distributions, and bounds KL(q(z|y) || p(z|y))."""

import math

import pytest
import torch
from torch.distributions import Independent, Normal, kl_divergence

from varclass import VariationalHead
from varclass.core.objectives import Bottleneck
from varclass.core.priors import PRIORS

B, C, D, FEATURES = 9, 4, 3, 5
GEOMETRIES = [
    *({"covariance": covariance, "means": "learned", "latent_dim": D} for covariance in PRIORS["gaussian"].covariances),
    {"means": "simplex", "latent_dim": D},
    {"covariance": "isotropic", "means": "simplex", "separation": 2.0},
    {},
]
every_geometry = pytest.mark.parametrize("options", GEOMETRIES, ids=str)


def make(**options) -> VariationalHead:
    """A float64 head whose every parameter has moved."""
    torch.manual_seed(0)
    head = VariationalHead(FEATURES, C, objective="bottleneck", **{"beta": 0.7} | options).double()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return head


def batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(B, FEATURES, dtype=torch.float64, generator=generator)
    soft = torch.rand(B, C, dtype=torch.float64, generator=generator)
    return features, torch.randint(C, (B,), generator=generator), soft / soft.sum(1, keepdim=True)


def table(head: VariationalHead, features: torch.Tensor) -> torch.Tensor:
    """KL(q(z|x_i) || p(z|y)) of every sample and class by torch.distributions, (B, C)."""
    prior = head.class_prior
    unit = prior.support(torch.ones(1, head.latent_dim, dtype=torch.float64))  # an axis' length, 1 elsewhere
    q = Independent(Normal(head.projection(features) * unit, head.posterior.scale(features) * unit), 1)
    sigma = prior.log_sigma().exp().expand(C, head.latent_dim)
    return torch.stack([kl_divergence(q, Independent(Normal(prior.mean[k], sigma[k]), 1)) for k in range(C)], dim=1)


@every_geometry
@pytest.mark.parametrize("factor", [1.0, 1.6])
def test_the_prior_term_is_the_mean_kl_divergence_for_hard_labels_and_for_soft_ones(options, factor):
    head = make(**options)
    head.class_prior.scale_factor = factor
    features, hard, soft = batch()
    expected = table(head, features)
    torch.testing.assert_close(head.terms(features, hard).prior, expected.gather(1, hard[:, None]).mean(), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(head.terms(features, soft).prior, (soft * expected).sum(1).mean(), rtol=1e-9, atol=1e-9)
    weight = torch.linspace(0, 2, B, dtype=torch.float64)
    weighted = head.terms(features, hard, sample_weight=weight).prior
    torch.testing.assert_close(weighted, (weight * expected.gather(1, hard[:, None])[:, 0]).sum() / weight.sum())


@every_geometry
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_its_gradient_is_that_of_the_kl_divergence_and_reaches_phi_and_theta(options, soft):
    head = make(**options)
    features, y, probs = batch()
    moved = [*head.projection.parameters(), *head.posterior.parameters(), *head.class_prior.parameters()]
    expected = table(head, features)
    value = (probs * expected).sum(1).mean() if soft else expected.gather(1, y[:, None]).mean()
    got = torch.autograd.grad(head.terms(features, probs if soft else y).prior, moved)
    for one, other in zip(got, torch.autograd.grad(value, moved), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)
        assert bool((one != 0).any())


def test_chunks_of_classes_give_the_same_terms():
    options = {"covariance": "diagonal", "means": "learned", "latent_dim": D}
    whole, chunked = make(**options), make(**options, class_chunk=3)
    features, hard, soft = batch()
    for y in (hard, soft):
        torch.testing.assert_close(chunked.terms(features, y).prior, whole.terms(features, y).prior, rtol=1e-9, atol=1e-9)


def test_it_bounds_the_kl_divergence_of_the_mixture_that_the_classes_latents_are():
    """KL(q(z|y) || p(z|y)) of a mixture of a few q(z|x) on a line, by quadrature, is below the mean of theirs by I(x; z|y)."""
    head = VariationalHead(1, 2, objective="bottleneck", latent_dim=1, covariance="isotropic", separation=1.5).double()
    with torch.no_grad():
        head.projection.weight.fill_(1.0)
        head.projection.bias.zero_()
        head.posterior.log_scale.weight.fill_(0.2)
        head.class_prior.log_scale.add_(torch.tensor([[0.3], [-0.2]]))
    features = torch.tensor([[-1.0], [0.2], [1.4]], dtype=torch.float64)
    z = torch.linspace(-12, 12, 24_001, dtype=torch.float64)
    scale = head.posterior.scale(features).detach()
    parts = torch.exp(-0.5 * ((z - features) / scale) ** 2) / (scale * math.sqrt(2 * math.pi))  # written out: (3, grid)
    mixture = parts.mean(0)
    for y in range(2):
        mean, sigma = head.class_prior.mean[y].item(), head.class_prior.log_sigma()[y].exp().item()
        log_prior = -0.5 * ((z - mean) / sigma) ** 2 - math.log(sigma * math.sqrt(2 * math.pi))
        bound = head.terms(features, torch.full((3,), y)).prior.item()
        kl = torch.trapezoid(torch.special.xlogy(mixture, mixture) - mixture * log_prior, z).item()
        between = torch.trapezoid(torch.special.xlogy(parts, parts) - torch.special.xlogy(parts, mixture), z).mean().item()
        assert 0 < kl < bound - 0.1
        assert bound - kl == pytest.approx(between, rel=1e-6)  # I(x; z|y), the whole of the difference


def test_the_width_of_the_posterior_goes_to_that_of_the_prior_where_nothing_else_holds_it():
    """KL( N(m, s^2) || N(m, 1) ) is least at s = 1, sigma of the class."""
    torch.manual_seed(0)
    head = make(beta=1.0)
    optimizer = torch.optim.Adam(head.posterior.parameters(), lr=0.05)
    features, y, _ = batch()
    for _ in range(400):
        optimizer.zero_grad()
        head.terms(features, y).prior.backward()
        optimizer.step()
    scale = head.class_prior.support(head.posterior.scale(features)).detach()
    torch.testing.assert_close(scale, torch.ones_like(scale), rtol=0.01, atol=0)


@pytest.mark.parametrize(
    ("options", "got"),
    [
        ({"posterior": "delta"}, "DeltaPosterior and AxesPrior"),
        ({"posterior": "delta", "latent_dim": 3}, "DeltaPosterior and GaussianPrior"),
        ({"prior": "vmf"}, "VonMisesFisherPrior"),
        ({"prior": "vmf", "posterior": "gaussian"}, "GaussianPosterior and VonMisesFisherPrior"),
        ({"objective": Bottleneck(0.1), "posterior": "delta"}, "DeltaPosterior"),
    ],
)
def test_a_point_has_no_kl_divergence_and_a_sphere_no_closed_form(options, got):
    with pytest.raises(
        ValueError, match=rf"Bottleneck\(.*needs posterior='gaussian' and prior='gaussian'; got .*{got}"
    ) as caught:
        VariationalHead(FEATURES, C, **{"objective": "bottleneck"} | options)
    assert "\n" not in str(caught.value)
