"""Spatter: drops of water, or of mud, on the lens."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from varclass.data.corruptions import linear
from varclass.data.corruptions.chance import Chance
from varclass.data.corruptions.constants import Row
from varclass.data.corruptions.edges import distances, edges
from varclass.data.corruptions.levels import tint

WATER, MUD = (175, 238, 238), (63, 42, 20)
BOX = ((1, 1, 1), (1, 1, 1), (1, 1, 1))
RELIEF = ((-2, -1, 0), (-1, 1, 1), (0, 1, 2))  # light from the upper left


def spatter(x: Tensor, constants: Row, chance: Chance) -> Tensor:
    """Smoothed noise above a threshold is wet: water brightens, with highlights at the drops' edges; mud covers."""
    mean, spread, sigma, threshold, last, kind = constants
    liquid = linear.smooth(mean + spread * chance.normal(1, *x.shape[-2:]), sigma)
    if kind == 1:
        covered = linear.smooth((liquid > threshold).to(x.dtype), last)
        covered = torch.where(covered < 0.8, 0, covered)
        return x * (1 - covered) + covered * tint(MUD, x)
    drops = (torch.where(liquid < threshold, 0, liquid).clamp_(0, 1) * 255).floor()
    wet = drops * highlights(drops)
    return x + last * wet / wet.amax((2, 3), keepdim=True).clamp(min=1e-12) * tint(WATER, x)


def highlights(drops: Tensor) -> Tensor:
    """(B, 1, H, W), 0 to 255: how brightly the drops (levels) shine: a relief of the distance to their outlines."""
    away = filtered(distances(edges(drops)), BOX).div(9).add_(1e-6).floor()
    relief = filtered(equalized(away), RELIEF).clamp_(0, 255)
    return filtered(relief, BOX).div(9).round_()


def filtered(x: Tensor, kernel: tuple[tuple[int, ...], ...], border: str = "reflect") -> Tensor:
    """Correlation of (B, 1, H, W) with a 3x3 kernel."""
    height, width = x.shape[-2:]
    padded = F.pad(x, (1, 1, 1, 1), mode=border)
    taps = [(down, across, weight) for down, row in enumerate(kernel) for across, weight in enumerate(row) if weight]
    total = torch.zeros_like(x)
    for down, across, weight in taps:
        total += weight * padded[..., down : down + height, across : across + width]
    return total


def equalized(levels: Tensor) -> Tensor:
    """Small whole numbers stretched over 0 to 255 so that each image's histogram is flat; the lowest level becomes 0."""
    flat = levels.flatten(1).long()
    counts = torch.zeros(len(flat), 256, dtype=levels.dtype, device=levels.device)
    counts.scatter_add_(1, flat, torch.ones_like(flat, dtype=levels.dtype))
    up_to = counts.cumsum(1)
    lowest = counts.gather(1, flat.amin(1, keepdim=True))
    others = flat.shape[1] - lowest
    stretched = ((up_to - lowest) * 255 / others.clamp(min=1)).round_().clamp_(0, 255)
    # An image of one level only keeps it.
    return torch.where(others > 0, stretched.gather(1, flat), flat.to(levels.dtype)).reshape(levels.shape)
