"""Brightness, contrast and saturation: the corruptions that draw nothing at random."""

from __future__ import annotations

import torch
from torch import Tensor

from varclass.data.corruptions.chance import Chance
from varclass.data.corruptions.constants import Row
from varclass.data.corruptions.levels import LUMINANCE

TINY = 1e-12  # stands in for a divisor that is 0 where the quotient is not used


def brightness(x: Tensor, constants: Row, chance: Chance) -> Tensor:
    """HSV's value V, the largest channel, plus a constant; hue and saturation stay.

    The channels are proportional to V, so that a factor V' / V does it; black has no hue and becomes gray.
    """
    (more,) = constants
    value = x.amax(1, keepdim=True)
    raised = (value + more).clamp_(max=1)
    return torch.where(value > 0, x * (raised / value.clamp(min=TINY)), raised)


def saturate(x: Tensor, constants: Row, chance: Chance) -> Tensor:
    """HSV's saturation S times a factor plus a constant; hue and value stay.

    V - channel is proportional to S, so that a factor S' / S does it. Gray has S = 0 and the hue of red, by convention. An
    image of one channel is gray: it keeps its values, and darkens to the luminance of that red where the constant is not 0.
    """
    factor, more = constants
    value, low = x.amax(1, keepdim=True), x.amin(1, keepdim=True)
    saturation = (value - low) / value.clamp(min=TINY)
    target = (saturation * factor + more).clamp_(0, 1)
    if x.shape[1] == 1:
        return value * (1 - (1 - LUMINANCE[0]) * target)
    reddish = torch.cat([value, *[value * (1 - target)] * 2], dim=1)
    return torch.where(saturation > 0, value - (value - x) * (target / saturation.clamp(min=TINY)), reddish)


def contrast(x: Tensor, constants: Row, chance: Chance) -> Tensor:
    """Distances to the mean of each channel of each image, times a factor."""
    (factor,) = constants
    mean = x.mean((2, 3), keepdim=True)
    return (x - mean) * factor + mean
