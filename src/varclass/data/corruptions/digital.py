"""Pixelation, JPEG compression and elastic transformation."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from varclass.data.corruptions import linear
from varclass.data.corruptions.chance import Chance
from varclass.data.corruptions.constants import Row
from varclass.data.corruptions.levels import whole_levels


def pixelate(x: Tensor, constants: Row, chance: Chance) -> Tensor:
    """Scaled down by a share and up again with a box filter, in pillow's whole-number arithmetic (columns, then rows)."""
    (share,) = constants
    height, width = x.shape[-2:]
    levels = whole_levels(x).double()
    small = max(1, int(height * share)), max(1, int(width * share))
    for (old_rows, old_columns), (rows, columns) in (((height, width), small), (small, (height, width))):
        levels = _rounded(levels @ linear.boxing(old_columns, columns).to(levels).mT)
        levels = _rounded(linear.boxing(old_rows, rows).to(levels) @ levels)
    return levels / 255


def _rounded(sums: Tensor) -> Tensor:
    return ((sums + 2**21) / 2**22).floor_().clamp_(0, 255)


def jpeg_compression(x: Tensor, constants: Row, chance: Chance) -> Tensor:
    """Through pillow's JPEG encoder at a quality, image by image in several threads."""
    (quality,) = constants
    pixels = whole_levels(x).to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy()
    with ThreadPoolExecutor() as pool:  # pillow's codecs run outside the interpreter's lock
        coded = list(pool.map(lambda image: _through_jpeg(image, int(quality)), pixels))
    return torch.from_numpy(np.stack(coded)).to(x.device).permute(0, 3, 1, 2).double().div_(255)


def _through_jpeg(image: np.ndarray, quality: int) -> np.ndarray:
    from PIL import Image  # noqa: PLC0415

    stream = io.BytesIO()
    Image.fromarray(image[..., 0] if image.shape[2] == 1 else image).save(stream, "JPEG", quality=quality)
    return np.asarray(Image.open(stream)).reshape(image.shape)


def elastic_transform(x: Tensor, constants: Row, chance: Chance) -> Tensor:
    """A random affine map, then a smooth random displacement of every pixel.

    `jitter` pixels move three points of a square each way and fix the affine map; uniform noise, smoothed by `sigma`, times
    `strength` are the displacements.
    """
    strength, sigma, jitter = constants
    height, width = x.shape[-2:]
    down, across = torch.meshgrid(
        torch.arange(height, dtype=x.dtype, device=x.device),
        torch.arange(width, dtype=x.dtype, device=x.device),
        indexing="ij",
    )
    moved = affine(height, width, jitter, chance)  # (B, 2, 3)
    flat = torch.stack([across, down, torch.ones_like(down)]).flatten(1)
    columns, rows = (moved @ flat).reshape(-1, 2, height, width).unbind(1)
    x = sampled(x, rows, columns, "mirror")
    if strength == 0:
        return x
    shift = linear.smooth(chance.between(-1, 1, 2, height, width), sigma, 3, "symmetric") * strength
    return sampled(x, down + shift[:, 0], across + shift[:, 1], "symmetric")


def affine(height: int, width: int, jitter: float, chance: Chance) -> Tensor:
    """(B, 2, 3): from a pixel (across, down, 1) of the result to its place in the image.

    The map takes the three corners of a square, two thirds of the image's side, to corners that are moved by `jitter` at most.
    """
    half = min(height, width) // 3
    middle = torch.tensor([width // 2, height // 2], dtype=torch.float64)
    corners = middle + half * torch.tensor([[1, 1], [1, -1], [-1, -1]], dtype=torch.float64)
    corners = corners.to(chance.keys.device)
    moved = corners + chance.between(-jitter, jitter, 3, 2)
    # From the moved corners back to the corners, since a pixel of the result asks where it comes from.
    homogeneous = torch.cat([moved, torch.ones_like(moved[..., :1])], dim=-1)
    return torch.linalg.solve(homogeneous, corners.expand_as(moved)).mT


def sampled(x: Tensor, rows: Tensor, columns: Tensor, border: str) -> Tensor:
    """x (B, C, H, W) at real positions (B, H, W), bilinearly; what lies outside is folded back as `border` says."""
    channels, height, width = x.shape[1:]
    top, left = rows.floor(), columns.floor()
    down, across = (rows - top)[:, None], (columns - left)[:, None]
    first, second = (linear.fold(top.long() + step, height, border) * width for step in (0, 1))
    start, end = (linear.fold(left.long() + step, width, border) for step in (0, 1))
    flat = x.flatten(2)

    def at(place: Tensor) -> Tensor:
        return flat.gather(2, place.flatten(1)[:, None].expand(-1, channels, -1)).reshape(x.shape)

    upper = torch.lerp(at(first + start), at(first + end), across)
    return torch.lerp(upper, torch.lerp(at(second + start), at(second + end), across), down)
