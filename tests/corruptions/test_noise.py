"""Noise against the distributions it is named after; bounds are five standard errors, or a p-value of 1e-6."""

import numpy as np
import pytest
import torch
from scipy import stats

from varclass.data.corruptions import SEVERITIES, constants_for, corrupt
from varclass.data.corruptions.chance import Chance
from varclass.data.corruptions.noise import gaussian_noise, speckle_noise

SIDES = [32, 64]


def gray(level, side, count=48):
    return torch.full((count, 3, side, side), level, dtype=torch.uint8)


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("side", SIDES)
def test_gaussian_and_speckle_noise_are_normal_with_their_sigma(side, severity):
    index, x = torch.arange(8), torch.full((8, 3, side, side), 0.6, dtype=torch.float64)
    for function, size in ((gaussian_noise, 1.0), (speckle_noise, 0.6)):
        (sigma,) = constants = constants_for(function.__name__, severity, side)
        noise = (function(x, constants, Chance(0, function.__name__, severity, index)) - x).flatten().numpy()
        assert stats.kstest(noise / (sigma * size), stats.norm.cdf).pvalue > 1e-6


@pytest.mark.parametrize("severity", SEVERITIES)
def test_gaussian_noise_of_bytes_has_its_spread(severity):
    """At level 128 of 255 and sigma 0.1 clipping begins at five sigmas; cutting down to levels adds a variance of 1/12."""
    (sigma,) = constants_for("gaussian_noise", severity, 32)
    values = corrupt(gray(128, 32), "gaussian_noise", severity, seed=0).double()
    expected = ((255 * sigma) ** 2 + 1 / 12) ** 0.5
    n = values.numel()
    assert abs(float(values.std()) - expected) < 5 * expected / (2 * n) ** 0.5
    assert abs(float(values.mean()) - 127.5) < 5 * expected / n**0.5


@pytest.mark.parametrize("level", [0, 1, 64, 200, 255])
@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("side", SIDES)
def test_shot_noise_is_poisson_clipped_and_cut_down(side, severity, level):
    (photons,) = constants_for("shot_noise", severity, side)
    values = corrupt(gray(level, side, 12), "shot_noise", severity, seed=0).flatten().numpy()
    counts = np.arange(10 * photons)
    pmf = stats.poisson(level / 255 * photons).pmf(counts)
    levels = np.floor(np.minimum(counts / photons, 1) * 255 + 1e-6).astype(int)
    expected = np.bincount(levels, pmf, minlength=256)[:256] * len(values)
    seen = np.bincount(values, minlength=256)
    assert seen[expected < 1e-9].sum() == 0
    common = expected >= 10
    rest = [[], []] if common.all() or expected[~common].sum() < 1 else [[seen[~common].sum()], [expected[~common].sum()]]
    seen, expected = np.append(seen[common], rest[0]), np.append(expected[common], rest[1])
    if len(seen) > 1:
        statistic = ((seen - expected) ** 2 / expected).sum()
        assert stats.chi2.sf(statistic, len(seen) - 1) > 1e-6


@pytest.mark.parametrize("severity", SEVERITIES)
def test_shot_noise_has_the_variance_mean_over_photons(severity):
    """Cutting down takes off something between 0 and 1/255, whose spread is half of that at most."""
    (photons,) = constants_for("shot_noise", severity, 32)
    values = corrupt(gray(102, 32), "shot_noise", severity, seed=0).double() / 255
    expected = (0.4 / photons) ** 0.5
    kurtosis = 3 + 1 / (0.4 * photons)
    error = expected * ((kurtosis - 1) / 4 / values.numel()) ** 0.5
    assert abs(float(values.std()) - expected) < 5 * error + 0.5 / 255


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("side", SIDES)
def test_impulse_noise_replaces_its_share_half_by_black_half_by_white(side, severity):
    (share,) = constants_for("impulse_noise", severity, side)
    values = corrupt(gray(100, side), "impulse_noise", severity, seed=0)
    n = values.numel()
    assert set(values.unique().tolist()) == {0, 100, 255}
    for extreme in (0, 255):
        seen = float((values == extreme).double().mean())
        assert abs(seen - share / 2) < 5 * (share / 2 / n) ** 0.5
    reds, greens = (values[:, :2] != 100).double().flatten(2).mean(0)[:, :64]
    assert not torch.equal(reds, greens), "channels are hit one by one"


def test_speckle_noise_leaves_black_black():
    assert corrupt(gray(0, 32), "speckle_noise", 5, seed=0).max() == 0
