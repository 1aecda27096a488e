"""The von Mises-Fisher family against scipy: Bessel functions, densities, and the distribution of its samples."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, special, stats

from varclass.core.vmf import VonMisesFisherPrior, log_bessel_scaled, log_density_at_mode

DIMS = (2, 3, 4, 10, 64, 512, 2048)
KAPPAS = np.logspace(-3, 5, 33)
FIVE_SIGMA = 2 * stats.norm.sf(5)


def reference_log_bessel(nu, x):
    """log I_nu(x) - x: scipy's where it does not underflow, else the power series, which is short there."""
    scaled = special.ive(nu, x)
    if scaled > 1e-280:
        return math.log(scaled)
    total = term = 1.0
    k = 0
    while term > 1e-18 * total:
        k += 1
        term *= x * x / 4 / (k * (k + nu))
        total += term
    return nu * math.log(x / 2) - math.lgamma(nu + 1) + math.log(total) - x


def mean_resultant(dim, kappa):
    """A_D(kappa) = I_{D/2}(kappa) / I_{D/2-1}(kappa) = |E z|."""
    return math.exp(reference_log_bessel(dim / 2, kappa) - reference_log_bessel(dim / 2 - 1, kappa))


@pytest.mark.parametrize("dim", DIMS)
def test_log_bessel_is_scipys_at_every_order_and_argument(dim):
    # An error of 1e-9 in the log is a relative error of 1e-9 in I_nu itself.
    expected = torch.tensor([reference_log_bessel(dim / 2 - 1, k) for k in KAPPAS], dtype=torch.float64)
    found = log_bessel_scaled(dim / 2 - 1, torch.as_tensor(KAPPAS))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)
    single = log_bessel_scaled(dim / 2 - 1, torch.as_tensor(KAPPAS).float()).double()
    torch.testing.assert_close(single, expected, rtol=1e-5, atol=1e-5 * float(expected.abs().max()))


@pytest.mark.parametrize("dim", DIMS)
def test_derivative_of_the_normaliser_is_the_mean_resultant_length(dim):
    # d/dkappa [ log C_D(kappa) + kappa ] = 1 - A_D(kappa), a number between 0 and 1.
    kappa = torch.as_tensor(KAPPAS).requires_grad_()
    (slope,) = torch.autograd.grad(log_density_at_mode(kappa, dim).sum(), kappa)
    expected = torch.tensor([1 - mean_resultant(dim, k) for k in KAPPAS], dtype=torch.float64)
    torch.testing.assert_close(slope, expected, rtol=0, atol=1e-9)


def prior_with(dim, kappa, dtype=torch.float64):
    """Two classes with random mean directions and this concentration."""
    torch.manual_seed(dim)
    prior = VonMisesFisherPrior(2, dim, "unit", "learned", None).to(dtype)
    prior.initial_kappa = kappa
    return prior


@pytest.mark.parametrize("kappa", [0.1, 3.0, 50.0, 400.0])
@pytest.mark.parametrize("dim", [2, 3, 10, 64])
def test_log_prob_is_scipys_von_mises_fisher(dim, kappa):
    prior = prior_with(dim, kappa)
    z = torch.nn.functional.normalize(torch.randn(30, dim, dtype=torch.float64), dim=1)
    y = torch.randint(2, (30,))
    modes = prior.direction.detach().numpy()
    expected = np.stack([stats.vonmises_fisher(m / np.linalg.norm(m), kappa).logpdf(z.numpy()) for m in modes], axis=1)
    tolerance = 1e-9 * max(1.0, float(np.abs(expected).max()))
    torch.testing.assert_close(prior.log_prob(z).detach(), torch.as_tensor(expected), rtol=0, atol=tolerance)
    torch.testing.assert_close(
        prior.log_prob_of(z, y).detach(), torch.as_tensor(expected)[torch.arange(30), y], rtol=0, atol=tolerance
    )


CONCENTRATIONS = [(dim, kappa) for dim in (2, 3, 16, 256) for kappa in (0.1, float(dim), 1e5)]


@torch.no_grad()
def angles(dim, kappa, dtype, n=20_000):
    """Samples of the first class, and their angle from its mode, by the chord, which is accurate near zero."""
    prior = prior_with(dim, kappa, dtype)
    z = prior.sample(torch.zeros(n, dtype=torch.long)).double()
    chord = (z - torch.nn.functional.normalize(prior.direction, dim=1)[0].double()).norm(dim=1)
    return z, 2 * torch.asin((chord / 2).clamp(max=1))


def angle_cdf(dim, kappa):
    """CDF of the angle, whose density is in proportion to sin(a)^(D-2) exp(kappa cos a), by integration on a fine grid."""
    with np.errstate(divide="ignore"):

        def log_density(a):
            return (
                (dim - 2) * np.log(np.sin(a)) - 2 * kappa * np.sin(a / 2) ** 2 if dim > 2 else -2 * kappa * np.sin(a / 2) ** 2
            )

        coarse = np.linspace(0, np.pi, 200_001)
        height = log_density(coarse)
        inside = coarse[height > height.max() - 50]
        grid = np.linspace(inside[0], inside[-1], 200_001)
        density = np.exp(log_density(grid) - height.max())
    cumulative = integrate.cumulative_trapezoid(density, grid, initial=0)
    return lambda a: np.interp(a, grid, cumulative / cumulative[-1])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("dim", "kappa"), CONCENTRATIONS)
def test_samples_have_the_marginal_along_their_mode(dim, kappa, dtype):
    # Kolmogorov and Smirnov's test against the integrated density, at the level of 5 standard deviations.
    z, angle = angles(dim, kappa, dtype)
    assert stats.kstest(angle.numpy(), angle_cdf(dim, kappa)).pvalue > FIVE_SIGMA
    assert stats.kstest(1.1 * angle.numpy(), angle_cdf(dim, kappa)).pvalue < FIVE_SIGMA  # ten percent wider is found out
    assert float((z.norm(dim=1) - 1).abs().max()) < 1e-6


@pytest.mark.parametrize(("dim", "kappa"), CONCENTRATIONS)
def test_samples_have_the_mean_resultant_length_and_no_other_mean(dim, kappa):
    # E z = A_D(kappa) m: along the mode, and in the D - 1 directions across it, where it is zero.
    z, angle = angles(dim, kappa, torch.float64)
    cosine, n = torch.cos(angle), len(angle)
    assert abs(float(cosine.mean()) - mean_resultant(dim, kappa)) < 5 * float(cosine.std()) / math.sqrt(n)
    mode = torch.nn.functional.normalize(prior_with(dim, kappa).direction.detach(), dim=1)[0]
    across = torch.linalg.svd(mode[None]).Vh[1:]
    sideways = z @ across.T
    assert float((sideways.mean(0) / (sideways.std(0) / math.sqrt(n))).abs().max()) < 5


@pytest.mark.parametrize("separation", [1.0, 4.0])
@pytest.mark.parametrize("dim", [16, 64, 512])
def test_separation_is_the_length_of_the_mean_in_units_of_sigma(dim, separation):
    # |E z| / sigma with sigma^2 = (1 - |E z|^2) / (D - 1). The start inverts A_D approximately, within the bounds that
    # Tanabe et al. (2007) give for the exact inverse: R (D - 2) / (1 - R^2) < kappa < R D / (1 - R^2).
    prior = VonMisesFisherPrior(2, dim, "isotropic", "learned", separation)

    def separation_at(kappa):
        length = mean_resultant(dim, kappa)
        return length / math.sqrt((1 - length**2) / (dim - 1))

    length = separation / math.sqrt(separation**2 + dim - 1)
    low, high = (separation_at(length * d / (1 - length**2)) for d in (dim - 2, dim))
    assert low < separation < high
    assert low < separation_at(float(prior.kappa().detach()[0])) < high
