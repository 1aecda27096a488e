"""Damage grows with severity, by the squared distance to the clean image where the published constants make it grow."""

import pytest
import torch
from torch.nn import functional as F

from varclass.data.corruptions import CORRUPTIONS, SEVERITIES, constants_for, corrupt
from varclass.data.corruptions.blur import glass_blur
from varclass.data.corruptions.chance import Chance

SHAPES = [(1, 28), (3, 32), (3, 64)]
# Where the published constants do not make the squared distance grow:
# glass_blur   blurs more where it scatters less, and blur takes away the squared error that scattering makes: 1, 2, 3 and 5
# frost        darkens the image while it brightens the ice, which brings the sum back to the image's mean: 4 and 5
# elastic      moves the whole image less and its parts more: the affine jitter falls from 8% to 3% (2% at 64) of the side
# saturate     fades at severities 1 and 2, and oversaturates from 3 on; gray images have nothing to saturate before 4
OWN_MEASURE = {"glass_blur", "frost", "elastic_transform", "saturate"}
# Steps that change the kind of damage or next to nothing, and so need only not fall:
# motion_blur  3 to 4 at 32: a longer line with the same sigma of 2, which ends it
# spatter      3 to 4: from much water to a little mud
TIES = {("motion_blur", 28, 3), ("motion_blur", 32, 3), ("spatter", 28, 3), ("spatter", 32, 3), ("spatter", 64, 3)}


def steps(damage):
    """(4,): the rise from each severity to the next in units of its standard error, from (5, N) paired over images."""
    rise = damage.double().diff(dim=0)
    return rise.mean(1) / (rise.std(1) / rise.shape[1] ** 0.5)


def squared_distance(images, name):
    return torch.stack(
        [(corrupt(images, name, s, seed=0).double() - images.double()).square().mean((1, 2, 3)) for s in SEVERITIES]
    )


@pytest.mark.parametrize(("channels", "side"), SHAPES)
@pytest.mark.parametrize("name", [name for name in CORRUPTIONS if name not in OWN_MEASURE])
def test_the_squared_distance_grows_with_severity(photographs, name, channels, side):
    for start, rise in enumerate(steps(squared_distance(photographs(64, channels, side), name)), start=1):
        assert rise > (-5 if (name, side, start) in TIES else 2), f"from severity {start}: {float(rise):.1f} standard errors"


@pytest.mark.parametrize("side", [32, 64])
def test_saturate_fades_more_and_more_then_glows_more_and_more(photographs, side):
    rises = steps(squared_distance(photographs(64, 3, side), "saturate"))
    assert rises[[0, 2, 3]].min() > 2


def test_saturate_darkens_gray_images_at_the_last_two_severities():
    damage = squared_distance(torch.full((2, 1, 28, 28), 200, dtype=torch.uint8), "saturate")[:, 0]
    assert damage[:3].max() == 0 < damage[3] < damage[4]


def detail(x):
    return x - F.avg_pool2d(F.pad(x, (1, 1, 1, 1), mode="reflect"), 3, stride=1)


@pytest.mark.parametrize(("channels", "side"), SHAPES)
def test_glass_blur_takes_more_and_more_of_the_detail(photographs, channels, side):
    """The share of the detail, what a 3x3 mean leaves out, that is no longer where it was; the same scattering throughout."""
    images = photographs(64, channels, side).double() / 255
    clean, lost = detail(images), []
    for severity in SEVERITIES:
        chance = Chance(0, "glass_blur", 0, torch.arange(64))
        left = detail(glass_blur(images, constants_for("glass_blur", severity, side), chance))
        lost.append(1 - (clean * left).sum((1, 2, 3)) / clean.square().sum((1, 2, 3)))
    # At 64, from two rounds of one pixel to one round of two pixels: another kind of scattering, and a tie.
    tie = 2 if side == 64 else None
    rises = steps(torch.stack(lost))
    assert all(rise > (-5 if step == tie else 5) for step, rise in enumerate(rises)), rises
    assert steps(torch.stack(lost)[[1, 2, 4]]).min() > 5


@pytest.mark.parametrize(("channels", "side"), SHAPES)
def test_frost_leaves_less_and_less_of_the_image(photographs, channels, side):
    """The share of the corrupted image's variance that the clean image does not explain; all, where nothing is left."""
    images = photographs(512 if side < 45 else 128, channels, side)
    clean = images.double().flatten(1)
    clean = clean - clean.mean(1, keepdim=True)

    def unexplained(severity):
        after = corrupt(images, "frost", severity, seed=0).double().flatten(1)
        after = after - after.mean(1, keepdim=True)
        explained = (clean * after).sum(1) ** 2 / (clean.square().sum(1) * after.square().sum(1))
        return 1 - explained.nan_to_num(0)

    damage = torch.stack([unexplained(severity) for severity in SEVERITIES])
    tie = 2 if side < 45 else None  # 0.4 / 0.9 and 0.4 / 0.85 of ice per image
    rises = steps(damage)
    assert all(rise > (-5 if step == tie else 2) for step, rise in enumerate(rises)), rises


@pytest.mark.parametrize("side", [28, 32, 64])
def test_elastic_transform_bends_more_and_more_and_moves_less(side):
    """On ramps of brightness the result shows where pixels come from; what no affine map explains is the bending."""
    down, across = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    scale = 255 // (side - 1)
    inner = (slice(None), slice(side // 4, -side // 4), slice(side // 4, -side // 4))  # folded borders are no affine map
    basis = torch.stack([down, across, torch.ones_like(down)])[inner].flatten(1).double()
    bent, moved = [], []
    for severity in SEVERITIES:
        ramps = [(field * scale).to(torch.uint8).expand(64, 1, side, side) for field in (down, across)]
        found = torch.cat([corrupt(ramp, "elastic_transform", severity, seed=0)[:, 0] for ramp in ramps])[inner].flatten(1)
        found = (found.double() + 0.5) / scale
        fitted = torch.linalg.lstsq(basis.T, found.T).solution.T @ basis
        bent.append((found - fitted).square().mean(1))
        there = torch.cat([field.expand(64, side, side) for field in (down, across)])[inner].flatten(1)
        moved.append((fitted - there).square().mean(1))
    assert steps(torch.stack(bent)).min() > 2
    falls = -steps(torch.stack(moved))
    assert falls[[0, 1, 2, 3] if side < 45 else [0, 2, 3]].min() > 0  # at 64, 6% of the side at both 2 and 3
