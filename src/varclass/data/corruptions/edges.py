"""Outlines of drops by Canny's method, and distances to them."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

LOW, HIGH = 50, 150
FAR = 20  # pixels: no distance is larger
TAN = 2**0.5 - 1  # of 22.5 degrees


def edges(levels: Tensor) -> Tensor:
    """(B, 1, H, W), bool: maxima of the gradient across it, above HIGH, or above LOW and connected to such ones."""
    across, down = gradient(levels)
    size = across.abs() + down.abs()
    ridge = (size > LOW) & _is_ridge(size, across, down)
    found = ridge & (size > HIGH)
    while True:
        grown = ridge & (F.max_pool2d(found.float(), 3, stride=1, padding=1) > 0)
        if bool((grown == found).all()):
            return found
        found = grown


def gradient(levels: Tensor) -> tuple[Tensor, Tensor]:
    """Sobel's differences (across, down), the border pixel repeated."""
    padded = F.pad(levels, (1, 1, 1, 1), mode="replicate")
    rows = padded[..., :-2, :] + 2 * padded[..., 1:-1, :] + padded[..., 2:, :]
    columns = padded[..., :-2] + 2 * padded[..., 1:-1] + padded[..., 2:]
    return rows[..., 2:] - rows[..., :-2], columns[..., 2:, :] - columns[..., :-2, :]


def _is_ridge(size: Tensor, across: Tensor, down: Tensor) -> Tensor:
    """Larger than both neighbors in the gradient's direction, which is taken to the nearest 45 degrees."""
    height, width = size.shape[-2:]
    padded = F.pad(size, (1, 1, 1, 1))

    def at(row: int, column: int) -> Tensor:
        return padded[..., 1 + row : 1 + row + height, 1 + column : 1 + column + width]

    level = (size > at(0, -1)) & (size >= at(0, 1))
    upright = (size > at(-1, 0)) & (size >= at(1, 0))
    falling = (size > at(-1, -1)) & (size > at(1, 1))
    rising = (size > at(-1, 1)) & (size > at(1, -1))
    slanted = torch.where(across * down < 0, rising, falling)
    steep = torch.where(down.abs() * TAN > across.abs(), upright, slanted)
    return torch.where(down.abs() < TAN * across.abs(), level, steep)


def distances(edge: Tensor) -> Tensor:
    """(B, 1, H, W): Euclidean distance to the nearest edge, FAR at most.

    >>> distances(torch.tensor([[[[True, False, False], [False, False, False]]]])).square().round().tolist()
    [[[[0.0, 1.0, 4.0], [1.0, 2.0, 5.0]]]]
    """
    height, width = edge.shape[-2:]
    column = torch.arange(width, device=edge.device, dtype=torch.float64)
    left = torch.where(edge, column, -torch.inf).cummax(-1).values
    right = torch.where(edge, column, torch.inf).flip(-1).cummin(-1).values.flip(-1)
    in_row = torch.minimum(column - left, right - column).clamp_(max=FAR).square_()
    padded = F.pad(in_row, (0, 0, FAR, FAR), value=FAR**2)
    nearest = torch.full_like(in_row, FAR**2)
    for step in range(-FAR, FAR + 1):
        nearest = torch.minimum(nearest, padded[..., FAR + step : FAR + step + height, :] + step**2)
    return nearest.sqrt_()
