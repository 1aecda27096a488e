"""Linear maps of pixels as matrices, borders included: smoothing, zooming, box resizing, and any kernel."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor


def fold(position: Tensor, size: int, border: str) -> Tensor:
    """Whole positions outside 0 .. size - 1 brought inside: "nearest" aa|abc|cc, "symmetric" ba|abc|cb, "mirror" cb|abc|ba.

    >>> {border: fold(torch.arange(-2, 5), 3, border).tolist() for border in ("nearest", "symmetric", "mirror")}
    {'nearest': [0, 0, 0, 1, 2, 2, 2], 'symmetric': [1, 0, 0, 1, 2, 2, 1], 'mirror': [2, 1, 0, 1, 2, 1, 0]}
    """
    if border == "nearest":
        return position.clamp(0, size - 1)
    repeated = 1 if border == "symmetric" else 0
    period = max(2 * size - 2 + 2 * repeated, 1)
    inside = position.remainder(period)
    return torch.minimum(inside, period - repeated - inside).clamp_(min=0)


def separable(x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """rows @ x @ columns^T for each channel of each image."""
    return rows.to(x) @ (x @ columns.to(x).mT)


def smooth(x: Tensor, sigma: float, truncate: float = 4, border: str = "nearest") -> Tensor:
    """Gaussian smoothing of (..., H, W), with the kernel cut off at `truncate` sigmas."""
    height, width = x.shape[-2:]
    return separable(x, smoothing(height, sigma, truncate, border), smoothing(width, sigma, truncate, border))


@lru_cache(maxsize=64)
def smoothing(size: int, sigma: float, truncate: float, border: str) -> Tensor:
    """(size, size): Gaussian smoothing of a line; each row sums to 1."""
    reach = int(truncate * sigma + 0.5)
    steps = torch.arange(-reach, reach + 1)
    weight = torch.exp(-0.5 * (steps.double() / max(sigma, 1e-9)) ** 2)
    source = fold(torch.arange(size)[:, None] + steps, size, border)
    return _filled(size, source, (weight / weight.sum()).expand(size, -1))


@lru_cache(maxsize=128)
def zooming(size: int, factor: float) -> Tensor:
    """(size, size): the middle of a line enlarged by `factor`, linearly interpolated.

    The middle ceil(size / factor) pixels are stretched, end on end, over round(factor times as many), and the surplus is cut.
    """
    inner = math.ceil(size / factor)
    outer = round(inner * factor)
    place = torch.arange(size, dtype=torch.float64) + (outer - size) // 2
    place = place * ((inner - 1) / max(outer - 1, 1))
    left = place.floor().clamp(max=max(inner - 2, 0))
    share = place - left
    source = torch.stack([left, left + 1], 1).long().clamp(max=inner - 1) + (size - inner) // 2
    return _filled(size, source, torch.stack([1 - share, share], 1))


@lru_cache(maxsize=64)
def boxing(size: int, new: int) -> Tensor:
    """(new, size): a line resized as pillow's box filter does it, weights in units of 2^-22 (whole numbers)."""
    scale = size / new
    grow = max(scale, 1)
    pixel, center = torch.arange(size, dtype=torch.float64), (torch.arange(new, dtype=torch.float64)[:, None] + 0.5) * scale
    # Both of pillow's conditions, in its order of rounding: a pixel whose middle lies on the box's edge is in by a hair or out.
    first, last = (center - grow / 2 + 0.5).floor(), (center + grow / 2 + 0.5).floor()
    offset = (pixel - center + 0.5) * (1 / grow)
    inside = ((pixel >= first) & (pixel < last) & (offset > -0.5) & (offset <= 0.5)).double()
    return (inside / inside.sum(1, keepdim=True) * 2**22 + 0.5).floor()


def stretching(reach: int, scale: float) -> Tensor:
    """(2 ceil(reach * scale) + 1, 2 reach + 1): a line of weights around 0 moved to `scale` times their distances.

    A weight that comes to lie between two pixels is shared between them, so that the sum stays.

    >>> stretching(1, 1.5).tolist()
    [[0.5, 0.0, 0.0], [0.5, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.5], [0.0, 0.0, 0.5]]
    """
    half = math.ceil(reach * scale)
    place = torch.arange(-reach, reach + 1, dtype=torch.float64) * scale + half
    low = place.floor().clamp(max=2 * half - 1)
    share = place - low
    target = torch.stack([low, low + 1], dim=1).long()
    return _filled(2 * half + 1, target, torch.stack([1 - share, share], dim=1)).mT


def _filled(size: int, source: Tensor, weight: Tensor) -> Tensor:
    return torch.zeros(len(source), size, dtype=torch.float64).scatter_add_(1, source, weight)


def spread(x: Tensor, pixels: Tensor) -> Tensor:
    """A sparse (HW, HW) map applied to each channel of each image."""
    return torch.sparse.mm(pixels.to(x.device), x.flatten(2).flatten(0, 1).T.contiguous()).T.reshape(x.shape)


def kernel_map(kernel: Tensor, height: int, width: int) -> Tensor:
    """Sparse (HW, HW): correlation with a square kernel of odd side, mirrored at the borders."""
    reach = len(kernel) // 2
    down, across = (kernel != 0).nonzero().T
    rows = fold(torch.arange(height)[:, None] + down - reach, height, "mirror")  # (H, taps)
    columns = fold(torch.arange(width)[:, None] + across - reach, width, "mirror")
    source = rows[:, None] * width + columns[None]  # (H, W, taps)
    target = torch.arange(height * width).reshape(height, width, 1).expand_as(source)
    weight = kernel[down, across].expand_as(source)
    return _sparse(target, source, weight, height * width)


def mean_map(pairs: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Sparse (HW, HW): the mean of several separable maps, each a matrix for rows and one for columns."""
    targets, sources, weights = [], [], []
    for rows, columns in pairs:
        (row, from_row), (column, from_column) = rows.nonzero().T, columns.nonzero().T
        width = len(columns)
        targets.append((row[:, None] * width + column).flatten())
        sources.append((from_row[:, None] * width + from_column).flatten())
        weights.append((rows[row, from_row][:, None] * columns[column, from_column]).flatten() / len(pairs))
    count = len(pairs[0][0]) * len(pairs[0][1])
    return _sparse(torch.cat(targets), torch.cat(sources), torch.cat(weights), count)


def _sparse(target: Tensor, source: Tensor, weight: Tensor, count: int) -> Tensor:
    places = torch.stack([target.flatten(), source.flatten()])
    with torch.sparse.check_sparse_tensor_invariants():
        return torch.sparse_coo_tensor(places, weight.flatten(), (count, count)).coalesce()
