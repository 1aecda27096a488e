"""log p(z) = logsumexp_y log p(z, y) is the log of a density: it integrates to one over the space the latents live in."""

import math

import numpy as np
import pytest
import torch

from varclass import VariationalHead

RTOL = 1e-6


def random_head(dim, scale_factor, **options):
    torch.manual_seed(dim)
    head = VariationalHead(dim, 3, objective="ce", separation=2.0, **options).double()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        head.class_prior.scale_factor = scale_factor
    return head


@torch.no_grad()
def integral(head, z, weight):
    return float((head.log_evidence(z).exp() * weight).sum())


@pytest.mark.parametrize("scale_factor", [1.0, 1.5])
@pytest.mark.parametrize("covariance", ["diagonal", "isotropic", "shared", "unit"])
@pytest.mark.parametrize("dim", [1, 2])
def test_log_evidence_of_gaussian_priors_integrates_to_one(dim, covariance, scale_factor):
    # The trapezoidal rule on a smooth density converges faster than any power of the step; the box is wider than 10 sigma.
    head = random_head(dim, scale_factor, covariance=covariance)
    sigma = head.class_prior.log_sigma().detach().exp()
    reach = float(head.class_prior.mean.detach().abs().max() + 10 * sigma.max())
    grid = torch.linspace(-reach, reach, 401, dtype=torch.float64)
    assert float(grid[1] - grid[0]) < float(sigma.min()) / 2
    z = torch.cartesian_prod(*[grid] * dim).reshape(-1, dim)
    assert integral(head, z, (grid[1] - grid[0]) ** dim) == pytest.approx(1, rel=RTOL)


def sphere(dim):
    """Points and weights of a quadrature over the circle (trapezoidal) or the sphere (times Gauss-Legendre in height)."""
    angle = torch.arange(400, dtype=torch.float64) * (2 * math.pi / 400)
    circle = torch.stack([angle.cos(), angle.sin()], dim=1)
    if dim == 2:
        return circle, torch.full((400,), 2 * math.pi / 400, dtype=torch.float64)
    height, weight = (torch.as_tensor(v) for v in np.polynomial.legendre.leggauss(200))
    flat = (1 - height.square()).sqrt()[:, None, None] * circle
    points = torch.cat([flat, height[:, None, None].expand(-1, 400, 1)], dim=-1)
    return points.reshape(-1, 3), (weight * (2 * math.pi / 400)).repeat_interleave(400)


@pytest.mark.parametrize("scale_factor", [0.5, 1.0, 1.5])
@pytest.mark.parametrize("covariance", ["isotropic", "shared", "unit"])
@pytest.mark.parametrize("dim", [2, 3])
def test_log_evidence_of_von_mises_fisher_priors_integrates_to_one_over_the_sphere(dim, covariance, scale_factor):
    head = random_head(dim, scale_factor, prior="vmf", covariance=covariance)
    assert integral(head, *sphere(dim)) == pytest.approx(1, rel=RTOL)


def test_the_quadratures_integrate_the_constant_to_the_surface_of_the_sphere():
    # The rules themselves: circumference 2 pi, area 4 pi.
    assert float(sphere(2)[1].sum()) == pytest.approx(2 * math.pi, rel=1e-9)
    assert float(sphere(3)[1].sum()) == pytest.approx(4 * math.pi, rel=1e-9)
