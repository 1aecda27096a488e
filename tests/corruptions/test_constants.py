"""The constants against the published ones, typed in from make_cifar_c.py and make_tinyimagenet_c.py, type by type."""

import numpy as np
import pytest

from varclass.data.corruptions import CORRUPTIONS, EXTRA, NOTES, SEVERITIES, STANDARD, constants_for
from varclass.data.corruptions.constants import LENGTHS, PUBLISHED

ENDS = (1.06, 1.11, 1.16, 1.21, 1.26)  # zoom_blur is published as arange(1, end, 0.01), alike for both sizes
ZOOMS = [len(np.arange(1, end, 0.01)) for end in ENDS]
CIFAR = {
    "gaussian_noise": [0.04, 0.06, 0.08, 0.09, 0.10],
    "shot_noise": [500, 250, 100, 75, 50],
    "impulse_noise": [0.01, 0.02, 0.03, 0.05, 0.07],
    "speckle_noise": [0.06, 0.1, 0.12, 0.16, 0.2],
    "gaussian_blur": [0.4, 0.6, 0.7, 0.8, 1],
    "glass_blur": [(0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)],
    "defocus_blur": [(0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)],
    "motion_blur": [(6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)],
    "zoom_blur": ZOOMS,
    "fog": [(0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)],
    "frost": [(1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)],
    "snow": [
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    ],
    "spatter": [
        (0.62, 0.1, 0.7, 0.7, 0.5, 0),
        (0.65, 0.1, 0.8, 0.7, 0.5, 0),
        (0.65, 0.3, 1, 0.69, 0.5, 0),
        (0.65, 0.1, 0.7, 0.69, 0.6, 1),
        (0.65, 0.1, 0.5, 0.68, 0.6, 1),
    ],
    "contrast": [0.75, 0.5, 0.4, 0.3, 0.15],
    "brightness": [0.05, 0.1, 0.15, 0.2, 0.3],
    "saturate": [(0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)],
    "jpeg_compression": [80, 65, 58, 50, 40],
    "pixelate": [0.95, 0.9, 0.85, 0.75, 0.65],
    "elastic_transform": [
        (32 * 0, 32 * 0, 32 * 0.08),
        (32 * 0.05, 32 * 0.2, 32 * 0.07),
        (32 * 0.08, 32 * 0.06, 32 * 0.06),
        (32 * 0.1, 32 * 0.04, 32 * 0.05),
        (32 * 0.1, 32 * 0.03, 32 * 0.03),
    ],
}
TINY_IMAGENET = {
    "gaussian_noise": [0.04, 0.08, 0.12, 0.15, 0.18],
    "shot_noise": [250, 100, 50, 30, 15],
    "impulse_noise": [0.01, 0.02, 0.05, 0.08, 0.14],
    "speckle_noise": [0.15, 0.2, 0.25, 0.3, 0.35],
    "gaussian_blur": [0.5, 0.75, 1, 1.25, 1.5],
    "glass_blur": [(0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)],
    "defocus_blur": [(0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)],
    "motion_blur": [(10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)],
    "zoom_blur": ZOOMS,
    "fog": [(0.4, 3), (0.7, 3), (1, 2.5), (1.5, 2), (2, 1.75)],
    "frost": [(1, 0.3), (0.9, 0.4), (0.8, 0.45), (0.75, 0.5), (0.7, 0.55)],
    "snow": [
        (0.1, 0.2, 1, 0.6, 8, 3, 0.8),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.8),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.7),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.65),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6),
    ],
    "spatter": [
        (0.62, 0.1, 0.7, 0.7, 0.6, 0),
        (0.65, 0.1, 0.8, 0.7, 0.6, 0),
        (0.65, 0.3, 1, 0.69, 0.6, 0),
        (0.65, 0.1, 0.7, 0.68, 0.6, 1),
        (0.65, 0.1, 0.5, 0.67, 0.6, 1),
    ],
    "contrast": [0.4, 0.3, 0.2, 0.1, 0.05],
    "brightness": [0.1, 0.2, 0.3, 0.4, 0.5],
    "saturate": [(0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (30, 0.2)],
    "jpeg_compression": [65, 58, 50, 40, 25],
    "pixelate": [0.9, 0.8, 0.7, 0.6, 0.5],
    "elastic_transform": [
        (64 * 0, 64 * 0, 64 * 0.08),
        (64 * 0.05, 64 * 0.3, 64 * 0.06),
        (64 * 0.1, 64 * 0.08, 64 * 0.06),
        (64 * 0.1, 64 * 0.03, 64 * 0.03),
        (64 * 0.16, 64 * 0.03, 64 * 0.02),
    ],
}


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.parametrize(("side", "published"), [(32, CIFAR), (64, TINY_IMAGENET)])
def test_the_constants_are_the_published_ones(side, published, name, severity):
    expected = published[name][severity - 1]
    assert constants_for(name, severity, side) == (expected if isinstance(expected, tuple) else (expected,))


def test_there_are_15_standard_types_and_4_extra_ones():
    assert len(STANDARD) == 15
    assert set(EXTRA) == {"speckle_noise", "gaussian_blur", "spatter", "saturate"}
    assert set(STANDARD) | set(EXTRA) == set(CORRUPTIONS) == set(CIFAR) == set(TINY_IMAGENET)


@pytest.mark.parametrize(("side", "nearest"), [(8, 32), (28, 32), (96, 64), (224, 64)])
@pytest.mark.parametrize("name", CORRUPTIONS)
def test_lengths_and_nothing_else_grow_with_the_side(name, side, nearest):
    for severity in SEVERITIES:
        row, published = constants_for(name, severity, side), PUBLISHED[nearest][name][severity - 1]
        mud = name == "spatter" and published[5] == 1
        lengths = range(3) if name == "elastic_transform" else (*LENGTHS.get(name, ()), *((4,) if mud else ()))
        unit = side if name == "elastic_transform" else side / nearest
        expected = [value * unit if place in lengths else value for place, value in enumerate(published)]
        assert row == pytest.approx(expected, rel=1e-12)


def test_notes_are_one_line_about_a_type_and_say_that_the_ice_is_generated():
    assert set(NOTES) <= set(CORRUPTIONS)
    assert all("\n" not in note and len(note) < 128 for note in NOTES.values())
    assert "generated" in NOTES["frost"]
