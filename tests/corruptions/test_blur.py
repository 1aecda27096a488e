"""Blurs against scipy.ndimage, and against the published procedures written out pixel by pixel."""

import math

import numpy as np
import pytest
import torch
from scipy import ndimage

from varclass.data.corruptions import SEVERITIES, constants_for, corrupt, motion
from varclass.data.corruptions.blur import disk, scattered
from varclass.data.corruptions.chance import Chance
from varclass.data.corruptions.linear import stretching

SIDES = [28, 32, 64]


def cut_down(values):
    return np.floor(np.clip(values, 0, 1) * 255 + 1e-6).astype(np.uint8)


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("side", SIDES)
def test_gaussian_blur_is_scipys(photographs, side, severity):
    images = photographs(4, 3, side)
    (sigma,) = constants_for("gaussian_blur", severity, side)
    expected = ndimage.gaussian_filter(images.numpy() / 255, (0, 0, sigma, sigma), mode="nearest", truncate=4)
    np.testing.assert_array_equal(corrupt(images, "gaussian_blur", severity, seed=0).numpy(), cut_down(expected))


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("side", [32, 64])
def test_defocus_blur_is_correlation_with_a_softened_disk(photographs, side, severity):
    images = photographs(3, 3, side)
    radius, softness = constants_for("defocus_blur", severity, side)
    line = np.arange(-8, 9)
    hard = (line[:, None] ** 2 + line**2 <= radius**2).astype(float)
    soft = ndimage.gaussian_filter(hard / hard.sum(), softness, radius=1, mode="mirror")
    expected = ndimage.correlate(images.numpy() / 255, soft[None, None], mode="mirror")
    np.testing.assert_array_equal(corrupt(images, "defocus_blur", severity, seed=0).numpy(), cut_down(expected))


@pytest.mark.parametrize("scale", [0.25, 0.875, 1, 1.5, 3.5])
@pytest.mark.parametrize("severity", SEVERITIES)
def test_defocus_kernels_sum_to_one_and_are_symmetric(severity, scale):
    for side in (32, 64):
        kernel = disk(*constants_for("defocus_blur", severity, side))
        stretch = stretching(len(kernel) // 2, scale)
        kernel = stretch @ kernel @ stretch.mT
        assert float(kernel.sum()) == pytest.approx(1, rel=1e-12)
        torch.testing.assert_close(kernel, kernel.mT, rtol=1e-12, atol=1e-15)
        torch.testing.assert_close(kernel, kernel.flip(0), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", ["gaussian_blur", "defocus_blur", "motion_blur", "zoom_blur", "glass_blur"])
def test_blurs_keep_constant_images(name):
    images = torch.tensor([0, 1, 77, 254, 255], dtype=torch.uint8)[:, None, None, None].expand(5, 3, 32, 32)
    for severity in SEVERITIES:
        assert torch.equal(corrupt(images, name, severity, seed=0), images)


@pytest.mark.parametrize("name", ["gaussian_blur", "defocus_blur"])
def test_blurs_keep_the_mean_of_what_is_far_from_the_border(name):
    """A spot of 255 levels spreads and keeps its sum, but for less than one level cut off in each pixel it reaches."""
    images = torch.zeros(1, 1, 64, 64, dtype=torch.uint8)
    images[..., 32, 32] = 255
    for severity in SEVERITIES:
        radius = 1 + 4 * max(constants_for(name, severity, 64))
        result = corrupt(images, name, severity, seed=0).long()
        assert 255 - (2 * radius + 1) ** 2 < int(result.sum()) <= 255
        assert int(result.flip(2, 3).roll((1, 1), (2, 3)).sub(result).abs().max()) == 0


def test_zoom_blur_is_scipys_zoom_averaged(photographs):
    for side, ends in ((32, (1.06, 1.26)), (64, (1.06, 1.26))):
        images = photographs(2, 3, side)
        for end, severity in zip(ends, (1, 5), strict=True):
            factors = np.arange(1, end, 0.01)
            for image, result in zip(images.numpy() / 255, corrupt(images, "zoom_blur", severity, seed=0), strict=True):
                total = image.copy()
                for factor in factors:
                    inner = math.ceil(side / factor)
                    start = (side - inner) // 2
                    middle = image[:, start : start + inner, start : start + inner]
                    grown = ndimage.zoom(middle, (1, factor, factor), order=1)
                    trim = (grown.shape[1] - side) // 2
                    total += grown[:, trim : trim + side, trim : trim + side]
                np.testing.assert_array_equal(result.numpy(), cut_down(total / (len(factors) + 1)))


@pytest.mark.parametrize("degrees", [0, 17, 45, -30, -90, -135])
def test_motion_blur_steps_along_its_line(photographs, degrees):
    """ImageMagick's loop for each pixel: weights of a Gaussian from 0 on, whole steps, the border pixel repeated."""
    image = photographs(1, 1, 28)[0, 0].numpy() / 255
    radius, sigma, angle = 6, 2.0, math.radians(degrees)
    weights = np.exp(-0.5 * (np.arange(2 * radius + 1) / sigma) ** 2)
    expected = np.zeros_like(image)
    for row in range(28):
        for column in range(28):
            for step, weight in enumerate(weights / weights.sum()):
                down, across = math.ceil(step * math.sin(angle) - 0.5), math.ceil(step * math.cos(angle) - 0.5)
                expected[row, column] += weight * image[min(max(row + down, 0), 27), min(max(column + across, 0), 27)]
    angles = torch.tensor([angle, 0.3, angle, -0.4], dtype=torch.float64)
    result = motion.along(torch.from_numpy(image).expand(4, 1, 28, 28), radius, sigma, angles)
    rounded = np.floor(expected * 255 + 0.5)
    np.testing.assert_array_equal((result[0, 0] * 255).round(), rounded)
    assert torch.equal(result[0], result[2])


def test_motion_blur_angles_stay_within_45_degrees():
    """A spot's light moves against the blur's direction: left, and up or down by no more than left."""
    images = torch.zeros(64, 1, 32, 32, dtype=torch.uint8)
    images[..., 16, 16] = 255
    row, column = corrupt(images, "motion_blur", 5, seed=0)[:, 0].nonzero()[:, 1:].T - 16
    assert column.max() == 0
    assert (row.abs() <= -column).all()
    assert row.min() < -3
    assert row.max() > 3


@pytest.mark.parametrize(("height", "width", "most"), [(32, 32, 1), (64, 64, 2), (20, 31, 3)])
def test_glass_blur_scatters_as_the_loop_over_pixels_does(height, width, most):
    source = scattered(height, width, most, Chance(0, "glass_blur", 1, torch.arange(3)))
    offsets = Chance(0, "glass_blur", 1, torch.arange(3)).whole(-most, most, 2, height * width)
    for image in range(3):
        x = np.arange(height * width * 3).reshape(height, width, 3)
        down, across = offsets[image].reshape(2, height, width).numpy()
        for h in range(height - most, most, -1):
            for w in range(width - most, most, -1):
                to = h + down[h, w], w + across[h, w]
                x[h, w], x[to] = x[to], x[h, w]  # two views: the second assignment changes nothing
        np.testing.assert_array_equal(source[image].reshape(height, width), x[..., 0] // 3)


@pytest.mark.parametrize(("severity", "rounds"), [(1, 1), (2, 1), (4, 2), (5, 2)])
def test_glass_blur_is_blur_scatter_blur(photographs, severity, rounds):
    images = photographs(2, 3, 32)
    (sigma, most, _), chance = constants_for("glass_blur", severity, 32), Chance(0, "glass_blur", severity, torch.arange(2))

    def blurred(x):
        return ndimage.gaussian_filter(x, (0, 0, sigma, sigma), mode="nearest", truncate=4)

    x = cut_down(blurred(images.numpy() / 255)).reshape(2, 3, -1)
    for _ in range(rounds):
        source = scattered(32, 32, most, chance).numpy()
        x = np.take_along_axis(x, np.broadcast_to(source[:, None], x.shape), 2)
    expected = cut_down(blurred(x.reshape(2, 3, 32, 32) / 255))
    np.testing.assert_array_equal(corrupt(images, "glass_blur", severity, seed=0).numpy(), expected)
