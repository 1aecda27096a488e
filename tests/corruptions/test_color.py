"""Brightness and saturation against colorsys, contrast against its formula."""

import colorsys

import numpy as np
import pytest
import torch

from varclass.data.corruptions import SEVERITIES, constants_for, corrupt


def through_hsv(images, change):
    """uint8 (B, 3, H, W): each pixel to HSV, changed, and back, cut down to whole levels."""
    pixels = images.permute(0, 2, 3, 1).reshape(-1, 3).double().div(255).tolist()
    back = [colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*pixel))) for pixel in pixels]
    levels = np.floor(np.clip(back, 0, 1) * 255 + 1e-6).astype(np.uint8)
    return torch.from_numpy(levels).reshape(images.permute(0, 2, 3, 1).shape).permute(0, 3, 1, 2)


@pytest.fixture(scope="module")
def colors(photographs):
    """Photographs, random colors, and the corners of the color cube with grays between them."""
    images = photographs(3, 3, 32)
    images[1] = torch.randint(0, 256, (3, 32, 32), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    images[2] = torch.arange(256, dtype=torch.uint8).repeat(4).reshape(32, 32)
    corners = torch.cartesian_prod(*[torch.tensor([0, 255], dtype=torch.uint8)] * 3)
    images[2, :, 0, :8] = corners.T
    return images


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("side", [32, 64])
def test_brightness_raises_the_value_of_hsv(colors, side, severity):
    images = colors.repeat(1, 1, side // 32, side // 32)
    (more,) = constants_for("brightness", severity, side)
    expected = through_hsv(images, lambda h, s, v: (h, s, min(v + more, 1)))
    assert torch.equal(corrupt(images, "brightness", severity, seed=0), expected)


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("side", [32, 64])
def test_saturate_scales_the_saturation_of_hsv(colors, side, severity):
    images = colors.repeat(1, 1, side // 32, side // 32)
    factor, more = constants_for("saturate", severity, side)
    expected = through_hsv(images, lambda h, s, v: (h, min(s * factor + more, 1), v))
    assert torch.equal(corrupt(images, "saturate", severity, seed=0), expected)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_brightness_of_gray_images_is_that_of_gray_colors(photographs, severity):
    images = photographs(4, 1, 32)
    gray = corrupt(images, "brightness", severity, seed=0)
    assert torch.equal(gray.expand(-1, 3, -1, -1), corrupt(images.expand(-1, 3, -1, -1), "brightness", severity, seed=0))


@pytest.mark.parametrize("severity", SEVERITIES)
def test_saturate_of_gray_images_is_the_luminance_of_what_gray_colors_become(photographs, severity):
    """Three channels are each cut down by less than a level before their luminance is taken."""
    images = photographs(4, 1, 32)
    gray = corrupt(images, "saturate", severity, seed=0).double()
    colored = corrupt(images.expand(-1, 3, -1, -1), "saturate", severity, seed=0).double()
    luminance = 0.299 * colored[:, :1] + 0.587 * colored[:, 1:2] + 0.114 * colored[:, 2:]
    assert (gray - luminance).abs().max() <= 1


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize(("channels", "side"), [(1, 28), (3, 32), (3, 64)])
def test_contrast_shrinks_distances_to_the_mean(photographs, channels, side, severity):
    images = photographs(4, channels, side)
    (factor,) = constants_for("contrast", severity, side)
    x = images.numpy() / 255
    mean = x.mean((2, 3), keepdims=True)
    expected = np.floor(np.clip((x - mean) * factor + mean, 0, 1) * 255 + 1e-6)
    np.testing.assert_array_equal(corrupt(images, "contrast", severity, seed=0).numpy(), expected)
