"""Where class means start, or stay: C unit vectors in D dimensions, as far from each other as the dimension allows."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

REPULSION_STEPS = 300
REPULSION_WORK = 2**25  # entries of the (C, C) cosines over all steps: well under a second, whatever C


def spread_directions(num_classes: int, dim: int) -> Tensor:
    """Unit vectors (C, D): a regular simplex if C <= D + 1, otherwise well-spread; the orientation is random.

    In one dimension there are only two directions, so more classes are placed evenly in [-1, 1].

    >>> a = spread_directions(4, 3)
    >>> bool(torch.allclose(a @ a.T, torch.eye(4) * 4 / 3 - 1 / 3, atol=1e-6))
    True
    """
    if num_classes <= dim + 1:
        return _simplex(num_classes, dim)
    if dim == 1:
        return torch.linspace(-1, 1, num_classes)[:, None]
    if dim == 2:
        angle = 2 * math.pi * (torch.arange(num_classes) / num_classes + torch.rand(()))
        return torch.stack([angle.cos(), angle.sin()], dim=1)
    return _repelled(num_classes, dim)


def _simplex(num_classes: int, dim: int) -> Tensor:
    """Vertices of the regular simplex: the rows of an orthonormal basis (Helmert's) of the complement of (1, ..., 1)."""
    k = torch.arange(1, num_classes, dtype=torch.float64)
    rows = torch.arange(num_classes)[:, None]
    basis = torch.where(rows < k, 1.0, torch.where(rows == k, -k, 0.0)) / (k * (k + 1)).sqrt()
    rotation = torch.linalg.qr(torch.randn(dim, num_classes - 1, dtype=torch.float64)).Q
    return F.normalize(basis @ rotation.T, dim=1).float()


def _repelled(num_classes: int, dim: int) -> Tensor:
    """Random directions pushed away from their nearest neighbours; in high dimension random is nearly orthogonal already."""
    x = F.normalize(torch.randn(num_classes, dim), dim=1)
    steps = min(REPULSION_STEPS, REPULSION_WORK // num_classes**2)
    for step in range(steps):
        done = step / steps
        cosine = (x @ x.T).fill_diagonal_(-math.inf)
        push = torch.softmax(cosine * (10 + 150 * done), dim=1) @ x
        x = F.normalize(x - 0.5 * (1 - done) * push, dim=1)
    return x
