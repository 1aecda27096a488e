"""Augmentation of a batch of images on its device: crop, flip, cutout; and mixup of any batch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

PADDING = 4  # pixels on 32; in proportion on other sizes
HOLE = 0.5  # side of the cut-out square as a share of the image's


def crop(x: Tensor, chance: Tensor) -> Tensor:
    """A random window of the image padded by reflection, each image its own, (B, C, H, W)."""
    height, width = x.shape[-2:]
    margin = max(1, round(PADDING * min(height, width) / 32))
    padded = F.pad(x.float(), (margin,) * 4, mode="reflect").to(x.dtype)
    top, left = (chance[:, :2] * (2 * margin + 1)).long().unbind(1)
    rows = top[:, None] + torch.arange(height, device=x.device)
    columns = left[:, None] + torch.arange(width, device=x.device)
    each = torch.arange(len(x), device=x.device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[each, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def flip(x: Tensor, chance: Tensor) -> Tensor:
    """Every second image mirrored left to right."""
    return torch.where((chance[:, 2] < 0.5)[:, None, None, None], x.flip(-1), x)


def cutout(x: Tensor, chance: Tensor) -> Tensor:
    """A square of each image, centred anywhere on it, set to the image's mean."""
    height, width = x.shape[-2:]
    down = torch.arange(height, device=x.device) + 0.5 - chance[:, 3:4] * height
    across = torch.arange(width, device=x.device) + 0.5 - chance[:, 4:5] * width
    hole = (down.abs() < HOLE * height / 2)[:, :, None] & (across.abs() < HOLE * width / 2)[:, None, :]
    mean = x.float().mean((1, 2, 3), keepdim=True).to(x.dtype)
    return torch.where(hole[:, None], mean, x)


AUGMENTATIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"crop": crop, "flip": flip, "cutout": cutout}
CHANCES = 5  # uniform numbers per image that the above take between them, each its own


def augment(x: Tensor, names: tuple[str, ...], chance: Tensor) -> Tensor:
    """Images (B, C, H, W) through the named augmentations in turn; `chance` (B, CHANCES) decides, so it can be repeated."""
    for name in names:
        x = AUGMENTATIONS[name](x, chance)
    return x


def smooth(y: Tensor, num_classes: int, amount: float) -> Tensor:
    """Labels (B,) as distributions (B, C) that give `amount` away to all classes alike.

    >>> smooth(torch.tensor([1]), 2, 0.2)
    tensor([[0.1000, 0.9000]])
    """
    return F.one_hot(y, num_classes).float() * (1 - amount) + amount / num_classes


def mix(x: Tensor, y: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """mixup: each input and its soft label averaged with those of its mirror in the batch (batches are in random order)."""
    return share * x + (1 - share) * x.flip(0), share * y + (1 - share) * y.flip(0)
