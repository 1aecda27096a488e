"""Spatter: its steps against scipy, water that brightens, mud that covers."""

import numpy as np
import pytest
import torch
from scipy import ndimage

from varclass.data.corruptions import constants_for, corrupt
from varclass.data.corruptions.chance import Chance
from varclass.data.corruptions.edges import FAR, distances, edges, gradient
from varclass.data.corruptions.linear import smooth
from varclass.data.corruptions.spatter import equalized

SHAPES = [(1, 28), (3, 32), (3, 64)]


def drops(side, severity, count=8):
    mean, spread, sigma, threshold, *_ = constants_for("spatter", severity, side)
    noise = Chance(0, "spatter", severity, torch.arange(count)).normal(1, side, side)
    liquid = smooth(mean + spread * noise, sigma)
    return liquid, liquid >= threshold


def test_distances_are_scipys():
    for share in (0.001, 0.01, 0.2):
        edge = torch.rand(6, 1, 40, 64, generator=torch.Generator().manual_seed(0)) < share
        for image, result in zip(edge, distances(edge), strict=True):
            exact = ndimage.distance_transform_edt(~image[0].numpy()) if image.any() else np.full((40, 64), np.inf)
            np.testing.assert_allclose(result[0], np.minimum(exact, FAR), rtol=1e-12)


def test_gradients_are_scipys():
    levels = torch.randint(0, 256, (2, 1, 20, 30), generator=torch.Generator().manual_seed(0)).double()
    for axis, result in zip((3, 2), gradient(levels), strict=True):
        derivative = ndimage.correlate1d(levels.numpy(), [-1, 0, 1], axis, mode="nearest")
        expected = ndimage.correlate1d(derivative, [1, 2, 1], 5 - axis, mode="nearest")
        np.testing.assert_array_equal(result, expected)


def test_edges_run_along_the_outline_of_a_drop():
    """Around a disk: within one and a half pixels of the circle, in every direction, and nowhere else."""
    line = torch.arange(48) - 23.5
    radius = (line[:, None] ** 2 + line**2).sqrt()
    found = edges((radius < 12).double()[None, None] * 200)[0, 0]
    assert (radius[found] - 12).abs().max() < 1.5
    row, column = found.nonzero().T
    angles = torch.atan2(line[row], line[column]).sort().values
    assert angles.diff().max() < 2 * 1.5 / 12
    assert not edges(torch.full((1, 1, 9, 9), 100.0)).any()


def test_weak_edges_count_where_they_are_connected_to_strong_ones():
    levels = torch.zeros(2, 1, 16, 16)
    levels[:, :, :, 8:] = 20  # a gradient of 80: between the thresholds
    levels[0, :, :4, 8:] = 60  # 240 at one end of it: above both
    found = edges(levels)
    assert found[0, 0, 12].any()
    assert not found[1].any()


def test_equalized_levels_are_spread_over_their_ranks():
    levels = torch.randint(3, 15, (2, 1, 30, 30), generator=torch.Generator().manual_seed(0)).double()
    for image, result in zip(levels.numpy(), equalized(levels), strict=True):
        lowest = (image == image.min()).sum()
        ranks = np.array([(image <= level).sum() for level in image.ravel()]).reshape(image.shape)
        np.testing.assert_array_equal(result, np.round((ranks - lowest) * 255 / (image.size - lowest)))
    assert equalized(torch.full((1, 1, 4, 4), 7.0)).unique().tolist() == [7]


@pytest.mark.parametrize("severity", [1, 2, 3])
@pytest.mark.parametrize(("channels", "side"), SHAPES)
def test_water_brightens_where_it_is_wet_and_by_its_share_at_most(channels, side, severity):
    images = torch.full((8, channels, side, side), 40, dtype=torch.uint8)
    added = corrupt(images, "spatter", severity, seed=0).long() - 40
    _, wet = drops(side, severity)
    assert added.min() == 0
    assert (added[~wet.expand_as(added)] == 0).all()
    most = constants_for("spatter", severity, side)[4]
    colors = [175, 238, 238] if channels == 3 else [0.299 * 175 + 0.587 * 238 + 0.114 * 238]
    brightest = added.amax((2, 3)).double()
    expected = torch.tensor([most * color for color in colors], dtype=torch.float64).expand_as(brightest)
    assert (brightest - expected).abs().max() <= 1


@pytest.mark.parametrize("severity", [4, 5])
@pytest.mark.parametrize(("channels", "side"), SHAPES)
def test_mud_covers_with_its_color(channels, side, severity):
    images = torch.full((8, channels, side, side), 255, dtype=torch.uint8)
    result = corrupt(images, "spatter", severity, seed=0)
    liquid, _ = drops(side, severity)
    constants = constants_for("spatter", severity, side)
    covered = smooth((liquid > constants[3]).double(), constants[4])
    assert torch.equal((result < 255).all(1, keepdim=True), covered >= 0.8)
    mud = [63, 42, 20] if channels == 3 else [0.299 * 63 + 0.587 * 42 + 0.114 * 20]
    for channel, level in enumerate(mud):
        expected = torch.where(covered < 0.8, 255, 255 * (1 - covered) + level * covered)
        assert (result[:, channel : channel + 1] - expected).abs().max() <= 1
