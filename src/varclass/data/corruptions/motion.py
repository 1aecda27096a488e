"""Motion blur along a line of any angle, each image its own: that of falling snow and of a moving camera."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F


def along(x: Tensor, radius: float, sigma: float, angle: Tensor) -> Tensor:
    """One-sided Gaussian mean over 2 ceil(radius) + 1 steps from each pixel in the direction `angle` (B,), in radians.

    Steps end on whole pixels and the border pixel is repeated: the rule of ImageMagick, with which the published sets were
    made. The result is rounded to whole levels.
    """
    steps = torch.arange(2 * math.ceil(radius) + 1, dtype=torch.float64)
    weight = torch.exp(-0.5 * (steps / sigma) ** 2)
    weight = weight / weight.sum()
    steps, weight = steps[weight > 2**-53], weight[weight > 2**-53]  # the rest is lost in a float64 sum anyway
    reach, (height, width) = int(steps[-1]), x.shape[-2:]

    # Images in the order of their angles: those that share an offset are then neighbors, and move together as one slice.
    order = angle.argsort()
    direction = torch.stack([angle[order].sin(), angle[order].cos()], dim=1).cpu()  # down, across
    padded = F.pad(x[order], (reach,) * 4, mode="replicate")
    blurred = torch.zeros_like(x)
    for step, share in zip(steps.tolist(), weight.tolist(), strict=True):
        offsets, counts = (direction * step - 0.5).ceil().long().unique_consecutive(dim=0, return_counts=True)
        ends = counts.cumsum(0)
        runs = zip((ends - counts).tolist(), ends.tolist(), (offsets + reach).tolist(), strict=True)
        for start, end, (top, left) in runs:
            window = padded[start:end, :, top : top + height, left : left + width]
            blurred[order[start:end]] += share * window
    return blurred.clamp_(0, 1).mul_(255).add_(0.5).floor_().div_(255)
