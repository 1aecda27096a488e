"""corrupt: a batch of images, one type, one severity; and the types there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from varclass.core.options import check_choice, check_count
from varclass.data.corruptions import blur, color, digital, noise, weather
from varclass.data.corruptions.chance import Chance
from varclass.data.corruptions.constants import Row, check_severity, constants_for
from varclass.data.corruptions.levels import to_bytes, to_unit
from varclass.data.corruptions.spatter import spatter

# Values from 0 to 1 in float64 (B, C, H, W), the constants of a severity, the images' random numbers -> such values, unclipped.
Corruption = Callable[[Tensor, Row, Chance], Tensor]

CORRUPTIONS: Mapping[str, Corruption] = {
    "gaussian_noise": noise.gaussian_noise,
    "shot_noise": noise.shot_noise,
    "impulse_noise": noise.impulse_noise,
    "defocus_blur": blur.defocus_blur,
    "glass_blur": blur.glass_blur,
    "motion_blur": blur.motion_blur,
    "zoom_blur": blur.zoom_blur,
    "snow": weather.snow,
    "frost": weather.frost,
    "fog": weather.fog,
    "brightness": color.brightness,
    "contrast": color.contrast,
    "elastic_transform": digital.elastic_transform,
    "pixelate": digital.pixelate,
    "jpeg_compression": digital.jpeg_compression,
    "speckle_noise": noise.speckle_noise,
    "gaussian_blur": blur.gaussian_blur,
    "spatter": spatter,
    "saturate": color.saturate,
}
STANDARD = tuple(CORRUPTIONS)[:15]
EXTRA = tuple(CORRUPTIONS)[15:]

# Bytes of a block's float64 values: on a CPU little enough for its cache, on a GPU enough to keep it busy.
BLOCK_BYTES = {"cpu": 4 * 2**20}
BLOCK_BYTES_ELSEWHERE = 256 * 2**20


def corrupt(images: Tensor, name: str, severity: int, seed: int, first: int = 0) -> Tensor:
    """Images uint8 (B, C, H, W) of 1 or 3 channels, corrupted by one type at a severity from 1 to 5, on their device.

    What becomes of an image depends on it and on (seed, name, severity, first + its place in the batch) alone: batches of any
    size give the same, if `first` is the number of images before the batch. So do CPU and GPU, but for a level here and there
    where their elementary functions differ in the last bit. `NOTES` says where a type differs from the published sets.

    >>> images = torch.full((2, 3, 32, 32), 100, dtype=torch.uint8)
    >>> corrupt(images, "brightness", 5, seed=0).unique().tolist()
    [176]
    >>> both, second = corrupt(images, "fog", 1, seed=0), corrupt(images[1:], "fog", 1, seed=0, first=1)
    >>> torch.equal(both[1:], second)
    True
    """
    check_choice("name", name, CORRUPTIONS)
    _check(images)
    check_severity(severity)
    check_count("seed", seed, 0)
    check_count("first", first, 0)
    constants = constants_for(name, severity, min(images.shape[-2:]))
    result = torch.empty_like(images, memory_format=torch.contiguous_format)
    budget = BLOCK_BYTES.get(images.device.type, BLOCK_BYTES_ELSEWHERE)
    block = max(1, budget // (8 * images[:1].numel())) if len(images) else 1
    for start in range(0, len(images), block):
        part = images[start : start + block]
        index = torch.arange(first + start, first + start + len(part), device=images.device)
        chance = Chance(seed, name, severity, index)
        result[start : start + block] = to_bytes(CORRUPTIONS[name](to_unit(part), constants, chance))
    return result


def _check(images: Tensor) -> None:
    if not isinstance(images, Tensor) or images.dtype != torch.uint8 or images.ndim != 4:
        came = f"{images.dtype} {tuple(images.shape)}" if isinstance(images, Tensor) else type(images).__name__
        raise ValueError(f"images must be a uint8 tensor (B, C, H, W); got {came}")
    if images.shape[1] not in {1, 3} or min(images.shape[2:]) < 8:
        raise ValueError(f"images must have 1 or 3 channels and at least 8x8 pixels; got {tuple(images.shape[1:])}")
