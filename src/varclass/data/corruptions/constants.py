"""The published severity constants, for images of 32 and 64 pixels, and what becomes of them at other sizes.

32 are the constants of CIFAR-10-C and CIFAR-100-C, 64 those of Tiny-ImageNet-C. An image of another size takes the row of
the nearer of the two (by ratio, so up to 45 pixels that of 32), with everything that is measured in pixels, the `LENGTHS`
below, in proportion to its shorter side. The rest (noise levels, mixing weights, qualities, zoom factors) stays as published.
Two lengths are not scaled as numbers: defocus_blur's kernel is made at the published size and then stretched, since a radius of
less than a pixel would leave a disk of one pixel; and glass_blur's displacement is rounded, to one pixel at least.

Blurs of a fraction of a pixel vanish with the image: at 8x8 the lower severities of the blurs change little or nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

SEVERITIES = (1, 2, 3, 4, 5)
PUBLISHED_SIDES = (32, 64)

Row = tuple[float, ...]
Table = tuple[Row, Row, Row, Row, Row]


def _single(*values: float) -> Table:
    one, two, three, four, five = values
    return ((one,), (two,), (three,), (four,), (five,))


AT_32: dict[str, Table] = {
    "gaussian_noise": _single(0.04, 0.06, 0.08, 0.09, 0.10),
    "shot_noise": _single(500, 250, 100, 75, 50),
    "impulse_noise": _single(0.01, 0.02, 0.03, 0.05, 0.07),
    "defocus_blur": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    "glass_blur": ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
    "motion_blur": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    "zoom_blur": _single(7, 12, 16, 21, 26),
    "snow": (
        (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
    ),
    "frost": ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)),
    "fog": ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    "brightness": _single(0.05, 0.1, 0.15, 0.2, 0.3),
    "contrast": _single(0.75, 0.5, 0.4, 0.3, 0.15),
    "elastic_transform": ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03)),
    "pixelate": _single(0.95, 0.9, 0.85, 0.75, 0.65),
    "jpeg_compression": _single(80, 65, 58, 50, 40),
    "speckle_noise": _single(0.06, 0.1, 0.12, 0.16, 0.2),
    "gaussian_blur": _single(0.4, 0.6, 0.7, 0.8, 1),
    "spatter": (
        (0.62, 0.1, 0.7, 0.7, 0.5, 0),
        (0.65, 0.1, 0.8, 0.7, 0.5, 0),
        (0.65, 0.3, 1, 0.69, 0.5, 0),
        (0.65, 0.1, 0.7, 0.69, 0.6, 1),
        (0.65, 0.1, 0.5, 0.68, 0.6, 1),
    ),
    "saturate": ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
}
AT_64: dict[str, Table] = {
    "gaussian_noise": _single(0.04, 0.08, 0.12, 0.15, 0.18),
    "shot_noise": _single(250, 100, 50, 30, 15),
    "impulse_noise": _single(0.01, 0.02, 0.05, 0.08, 0.14),
    "defocus_blur": ((0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)),
    "glass_blur": ((0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)),
    "motion_blur": ((10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)),
    "zoom_blur": _single(7, 12, 16, 21, 26),
    "snow": (
        (0.1, 0.2, 1, 0.6, 8, 3, 0.8),
        (0.1, 0.2, 1, 0.5, 10, 4, 0.8),
        (0.15, 0.3, 1.75, 0.55, 10, 4, 0.7),
        (0.25, 0.3, 2.25, 0.6, 12, 6, 0.65),
        (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6),
    ),
    "frost": ((1, 0.3), (0.9, 0.4), (0.8, 0.45), (0.75, 0.5), (0.7, 0.55)),
    "fog": ((0.4, 3), (0.7, 3), (1, 2.5), (1.5, 2), (2, 1.75)),
    "brightness": _single(0.1, 0.2, 0.3, 0.4, 0.5),
    "contrast": _single(0.4, 0.3, 0.2, 0.1, 0.05),
    "elastic_transform": ((0, 0, 0.08), (0.05, 0.3, 0.06), (0.1, 0.08, 0.06), (0.1, 0.03, 0.03), (0.16, 0.03, 0.02)),
    "pixelate": _single(0.9, 0.8, 0.7, 0.6, 0.5),
    "jpeg_compression": _single(65, 58, 50, 40, 25),
    "speckle_noise": _single(0.15, 0.2, 0.25, 0.3, 0.35),
    "gaussian_blur": _single(0.5, 0.75, 1, 1.25, 1.5),
    "spatter": (
        (0.62, 0.1, 0.7, 0.7, 0.6, 0),
        (0.65, 0.1, 0.8, 0.7, 0.6, 0),
        (0.65, 0.3, 1, 0.69, 0.6, 0),
        (0.65, 0.1, 0.7, 0.68, 0.6, 1),
        (0.65, 0.1, 0.5, 0.67, 0.6, 1),
    ),
    "saturate": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (30, 0.2)),
}
PUBLISHED: Mapping[int, Mapping[str, Table]] = {32: AT_32, 64: AT_64}

# Which constants of a type are pixels, by position. Of spatter's, the last but one is a length for mud, a weight for water.
LENGTHS: Mapping[str, tuple[int, ...]] = {
    "glass_blur": (0, 1),
    "motion_blur": (0, 1),
    "snow": (4, 5),
    "gaussian_blur": (0,),
    "spatter": (2,),
}


def scale_of(side: int) -> float:
    """What an image's lengths are, in units of those published for the nearest side."""
    return side / nearest_side(side)


def nearest_side(side: int) -> int:
    """The published side whose constants an image of this side takes: 32 or 64.

    >>> [nearest_side(side) for side in (8, 28, 45, 46, 96)]
    [32, 32, 32, 64, 64]
    """
    return min(PUBLISHED_SIDES, key=lambda published: abs(math.log(side / published)))


def check_severity(severity: object) -> None:
    """A whole number from 1 to 5."""
    if isinstance(severity, bool) or not isinstance(severity, int) or severity not in SEVERITIES:
        raise ValueError(f"severity must be a whole number from 1 to 5; got {severity!r}")


def constants_for(name: str, severity: int, side: int) -> Row:
    """The constants of a type and severity for images whose shorter side is `side`.

    >>> constants_for("gaussian_blur", 5, 32), constants_for("gaussian_blur", 5, 28), constants_for("gaussian_blur", 5, 96)
    ((1.0,), (0.875,), (2.25,))
    """
    row, scale = PUBLISHED[nearest_side(side)][name][severity - 1], scale_of(side)
    if name == "elastic_transform":  # published as shares of the side
        return tuple(share * side for share in row)
    lengths = LENGTHS.get(name, ())
    if name == "spatter" and row[5] == 1:
        lengths = (*lengths, 4)
    return tuple(value * scale if place in lengths else value for place, value in enumerate(row))
