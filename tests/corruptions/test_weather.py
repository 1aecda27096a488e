"""Snow, frost and fog: what must hold whatever falls."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import norm

from varclass.data.corruptions import SEVERITIES, constants_for, corrupt
from varclass.data.corruptions.chance import Chance
from varclass.data.corruptions.ice import LOOKS, textures
from varclass.data.corruptions.weather import plasma

SHAPES = [(1, 28), (3, 32), (3, 64)]


def flat(level, channels, side, count=32):
    return torch.full((count, channels, side, side), level, dtype=torch.uint8)


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize(("channels", "side"), SHAPES)
def test_snow_only_brightens_and_is_its_own_turn_by_180_degrees(photographs, channels, side, severity):
    images = photographs(8, channels, side)
    assert (corrupt(images, "snow", severity, seed=0) >= images).all()
    on_black = corrupt(flat(0, channels, side), "snow", severity, seed=0)
    assert torch.equal(on_black, on_black.flip(2, 3))
    kept = constants_for("snow", severity, side)[6]
    assert int(on_black.min()) == math.floor((1 - kept) * 0.5 * 255 + 1e-6)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_as_much_snow_falls_as_the_normal_distribution_says(severity):
    """Before zoom, flakes are the pixels above a threshold; motion blur keeps their sum, but for what crosses the border.

    Light per pixel is E[max(min(n, 1), 0); n >= threshold], twice, where the zoom is 1 (severities 1 and 2).
    """
    mean, spread, zoom, threshold, *_ = constants_for("snow", severity, 32)
    values = mean + spread * np.random.default_rng(0).normal(size=10**6)
    light = 2 * 255 * np.where(values < threshold, 0, np.clip(values, 0, 1)).mean()
    on_black = corrupt(flat(0, 1, 32, 400), "snow", severity, seed=0).double()
    seen = (on_black - on_black.amin()).mean((1, 2, 3))
    if zoom == 1:  # each of the two layers is rounded to a level, and the sum cut down: 1.5 levels at most
        assert abs(float(seen.mean()) - light) < 5 * float(seen.std()) / 400**0.5 + 1.5
    else:  # interpolation lowers peaks, so that fewer pass the threshold
        assert 0 < float(seen.mean()) < light


@pytest.mark.parametrize("side", [28, 32, 64])
def test_the_ice_has_the_photographs_means_and_spreads(side):
    """To one level, of what clipping at white leaves of a normal distribution: the fields are nearly normal."""
    ice = textures(side) * 255
    assert ice.shape == (5, 3, 4 * side, 4 * side)
    for texture, look in zip(ice, LOOKS, strict=True):
        mean, spread = np.array(look.mean), np.array(look.spread)
        white = (255 - mean) / spread
        shift = white * norm.sf(white) - norm.pdf(white)  # the first two moments of min(standard normal, white)
        square = norm.cdf(white) - white * norm.pdf(white) + white**2 * norm.sf(white)
        np.testing.assert_allclose(texture.mean((1, 2)), mean + spread * shift, atol=1)
        np.testing.assert_allclose(texture.std((1, 2)), spread * np.sqrt(square - shift**2), atol=1)


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("side", [32, 64])
def test_frost_is_a_weighted_sum_of_image_and_ice(side, severity):
    kept, added = constants_for("frost", severity, side)
    black, gray = (corrupt(flat(level, 3, side), "frost", severity, seed=0).double() for level in (0, 60))
    assert (gray - black - kept * 60).abs().max() <= 1  # each is cut down by less than a level
    ice = textures(side) * 255
    assert black.min() >= math.floor(added * float(ice.min()))
    assert black.max() <= added * float(ice.max())
    means = (black / added).mean((2, 3))
    nearest = torch.cdist(means, ice.mean((2, 3))).argmin(1)
    assert set(nearest.tolist()) >= {0, 1, 3, 4}, "all textures are used (two of the five have one mean)"


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize(("channels", "side"), SHAPES)
def test_fog_keeps_the_brightest_level_and_hides_contrast(photographs, channels, side, severity):
    images = photographs(8, channels, side)
    result = corrupt(images, "fog", severity, seed=0)
    assert (result.amax((1, 2, 3)) <= images.amax((1, 2, 3))).all()
    thickness, _ = constants_for("fog", severity, side)
    cloud = corrupt(flat(255, channels, side), "fog", severity, seed=0)  # 255 (1 + t f) / (1 + t), with f from 0 to 1
    assert int(cloud.max()) <= 255
    assert int(cloud.min()) >= math.floor(255 / (1 + thickness))


@pytest.mark.parametrize(("side", "decay"), [(8, 3.0), (16, 1.75)])
def test_clouds_are_those_of_midpoint_displacement(side, decay):
    """Written out point by point, on a torus, with the same noise."""
    chance = Chance(0, "fog", 1, torch.arange(2))
    expected, step, amplitude = np.zeros((2, side, side)), side, 100.0
    while step > 1:
        half, count = step // 2, side // step
        noise = chance.between(-(amplitude**2), amplitude**2, 3, count, count).numpy()
        squares = [(row, column) for row in range(0, side, step) for column in range(0, side, step)]
        for row, column in squares:
            around = [expected[:, (row + a) % side, (column + b) % side] for a in (0, step) for b in (0, step)]
            expected[:, row + half, column + half] = sum(around) / 4 + noise[:, 0, row // step, column // step]
        for number, (down, across) in ((1, (0, half)), (2, (half, 0))):
            for row, column in squares:
                places = [(-half, 0), (half, 0), (0, -half), (0, half)]
                around = [expected[:, (row + down + a) % side, (column + across + b) % side] for a, b in places]
                expected[:, row + down, column + across] = sum(around) / 4 + noise[:, number, row // step, column // step]
        step, amplitude = half, amplitude / decay
    expected -= expected.min((1, 2), keepdims=True)
    expected /= expected.max((1, 2), keepdims=True)
    np.testing.assert_allclose(plasma(side, decay, Chance(0, "fog", 1, torch.arange(2))), expected, rtol=1e-9, atol=1e-9)
