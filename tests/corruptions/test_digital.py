"""Pixelation and JPEG against pillow byte by byte; the elastic transformation against scipy."""

import io

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage

from varclass.data.corruptions import SEVERITIES, constants_for, corrupt
from varclass.data.corruptions.chance import Chance
from varclass.data.corruptions.digital import affine, elastic_transform, sampled

SHAPES = [(1, 28), (3, 32), (3, 64), (3, 45)]


def by_pillow(images, change):
    shape = images.permute(0, 2, 3, 1).shape
    pixels = images.permute(0, 2, 3, 1).squeeze(-1).numpy()
    changed = np.stack([np.asarray(change(Image.fromarray(image))) for image in pixels])
    return torch.from_numpy(changed).reshape(shape).permute(0, 3, 1, 2)


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize(("channels", "side"), SHAPES)
def test_pixelate_is_pillows_box_filter(photographs, channels, side, severity):
    images = photographs(6, channels, side)
    images[0] = torch.randint(0, 256, images[0].shape, generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    (share,) = constants_for("pixelate", severity, side)
    small = int(side * share)
    box = Image.Resampling.BOX
    expected = by_pillow(images, lambda image: image.resize((small, small), box).resize((side, side), box))
    assert torch.equal(corrupt(images, "pixelate", severity, seed=0), expected)


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize(("channels", "side"), SHAPES)
def test_jpeg_compression_is_pillows(photographs, channels, side, severity):
    images = photographs(6, channels, side)
    (quality,) = constants_for("jpeg_compression", severity, side)

    def coded(image):
        stream = io.BytesIO()
        image.save(stream, "JPEG", quality=quality)
        return Image.open(stream)

    assert torch.equal(corrupt(images, "jpeg_compression", severity, seed=0), by_pillow(images, coded))


@pytest.mark.parametrize(("border", "scipys"), [("symmetric", "reflect"), ("mirror", "mirror")])
def test_positions_are_interpolated_as_by_scipy(photographs, border, scipys):
    x = photographs(3, 3, 28).double() / 255
    rows, columns = torch.rand(2, 3, 28, 28, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 140 - 56
    result = sampled(x, rows, columns, border)
    for image in range(3):
        for channel in range(3):
            place = np.stack([rows[image], columns[image]])
            expected = ndimage.map_coordinates(x[image, channel].numpy(), place, order=1, mode=scipys)
            np.testing.assert_allclose(result[image, channel], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("size", [(32, 32), (48, 64)])
def test_the_affine_map_takes_the_moved_corners_back(size):
    height, width = size
    back = affine(height, width, 3.0, Chance(0, "elastic_transform", 1, torch.arange(50)))
    moves = Chance(0, "elastic_transform", 1, torch.arange(50)).between(-3, 3, 3, 2)
    half = min(size) // 3
    corners = torch.tensor([[1, 1], [1, -1], [-1, -1]]) * half + torch.tensor([width // 2, height // 2])
    moved = torch.cat([corners + moves, torch.ones(50, 3, 1, dtype=torch.float64)], dim=2)
    torch.testing.assert_close(moved @ back.mT, corners.double().expand(50, 3, 2), rtol=1e-9, atol=1e-9)


def test_the_displacement_is_smoothed_uniform_noise(photographs):
    """Without the affine part, against scipy throughout."""
    x = photographs(2, 1, 32).double() / 255
    strength, sigma, _ = constants_for("elastic_transform", 4, 32)
    result = elastic_transform(x, (strength, sigma, 0), Chance(0, "elastic_transform", 4, torch.arange(2)))
    chance = Chance(0, "elastic_transform", 4, torch.arange(2))
    chance.between(0, 0, 3, 2)  # the corners' moves come first
    noise = chance.between(-1, 1, 2, 32, 32).numpy()
    shift = ndimage.gaussian_filter(noise, (0, 0, sigma, sigma), mode="reflect", truncate=3) * strength
    for image in range(2):
        place = np.indices((32, 32)) + shift[image]
        expected = ndimage.map_coordinates(x[image, 0].numpy(), place, order=1, mode="reflect")
        np.testing.assert_allclose(result[image, 0], expected, rtol=1e-9, atol=1e-9)
