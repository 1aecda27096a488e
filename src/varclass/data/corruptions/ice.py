"""Textures of ice, generated: feathery crystals over slow changes of tone."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from varclass.data.corruptions import linear
from varclass.data.corruptions.chance import Chance

WINDOWS = 4  # side of a texture in sides of an image: room for many different windows
BRANCH = math.pi / 3  # ice grows at 60 degrees


class Look(NamedTuple):
    """One texture: mean and spread of its channels (bytes), how much of it is slow changes, and the crystals' size.

    Mean and spread are those of the photographs that the published sets use, of which two are the same.
    """

    mean: tuple[float, float, float]
    spread: tuple[float, float, float]
    slow: float
    size: float  # length of a stem in pixels, at 32 pixels


LOOKS = (
    Look((78, 149, 166), (27, 16, 15), 1.2, 8),
    Look((201, 205, 214), (21, 22, 23), 0.7, 6),
    Look((201, 205, 214), (21, 22, 23), 0.7, 6),
    Look((138, 153, 166), (29, 29, 30), 0.5, 4),
    Look((112, 123, 135), (44, 43, 42), 0.5, 10),
)


@lru_cache(maxsize=4)
def textures(side: int) -> Tensor:
    """(5, 3, S, S) from 0 to 1 for images of `side` pixels: always the same ones, so that a texture is no extra chance."""
    # The photographs are shown half as large again at 64 pixels as at 32; in between and beyond, by the same power.
    scale = (side / 32) ** math.log2(1.5)
    return torch.stack([texture(look, number, WINDOWS * side, scale) for number, look in enumerate(LOOKS)])


def texture(look: Look, number: int, side: int, scale: float) -> Tensor:
    """(3, side, side) from 0 to 1."""
    chance = Chance(0, "ice", 0, torch.tensor([number]))
    fine = crystals(side, look.size * scale, chance)
    slow = _standard(linear.smooth(chance.normal(side, side)[0], 8 * scale, border="symmetric"))
    field = _standard(fine + look.slow * slow)
    mean, spread = torch.tensor([look.mean, look.spread], dtype=torch.float64)[..., None, None]
    return ((mean + spread * field) / 255).clamp_(0, 1)


def crystals(side: int, size: float, chance: Chance) -> Tensor:
    """(side, side), mean 0 and spread 1: crystals of many sizes and directions, grown over each other."""
    count = 40 + int(6 * (side / size) ** 2)
    place, turn, length = (
        chance.between(0, side, count, 2)[0],
        chance.between(0, 2 * math.pi, count)[0],
        chance.uniform(count)[0],
    )
    shape, weight = feather()
    angle = turn[:, None] + 0.5 * shape[:, 0] * chance.between(-1, 1, count, 1)[0]  # a bend towards the tip
    grown = size * (0.3 + length**3 * 1.4)[:, None]
    across = place[:, :1] + grown * (shape[:, 0] * angle.cos() - shape[:, 1] * angle.sin())
    down = place[:, 1:] + grown * (shape[:, 0] * angle.sin() + shape[:, 1] * angle.cos())
    light = weight * grown * chance.between(0.2, 1, count, 1)[0]
    cell = down.floor().long().remainder(side) * side + across.floor().long().remainder(side)
    field = torch.zeros(side * side, dtype=torch.float64).scatter_add_(0, cell.flatten(), light.expand_as(cell).flatten())
    field = linear.smooth(field.reshape(side, side), 0.3)
    return _standard(torch.log1p(field / field.mean()))


@lru_cache(maxsize=1)
def feather() -> tuple[Tensor, Tensor]:
    """((P, 2), (P,)): points of a crystal along the x axis, from 0 to 1, and their light: a stem and its branches."""
    points, light = [], []

    def grow(x: float, y: float, angle: float, length: float, order: int) -> None:
        t = torch.linspace(0, 1, max(4, int(24 * length)), dtype=torch.float64)
        points.append(torch.stack([x + length * t * math.cos(angle), y + length * t * math.sin(angle)], dim=1))
        light.append(torch.full_like(t, length / len(t) / order) * (1.2 - t))
        for knot in range(1, 6 if order < 2 else 0):
            at = length * knot / 6
            for side in (-BRANCH, BRANCH):
                start = x + at * math.cos(angle), y + at * math.sin(angle)
                grow(*start, angle + side, 0.6 * (length - at), order + 1)

    grow(0, 0, 0, 1, 1)
    return torch.cat(points), torch.cat(light)


def _standard(field: Tensor) -> Tensor:
    return (field - field.mean()) / field.std()
