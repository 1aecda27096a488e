"""Random numbers of each image: a function of (seed, type, severity, index), on any device, in any batch.

A counter goes through SplitMix64's finalizer, in 64-bit whole numbers throughout: the bits are the same on CPU and GPU, and no
image's numbers depend on which images stand beside it.
"""

from __future__ import annotations

import hashlib
import math

import torch
from torch import Tensor

GOLDEN = 0x9E3779B97F4A7C15 - 2**64  # 2^64 / golden ratio, as the signed number that torch holds; it is SplitMix64's step


class Chance:
    """A stream of random numbers for each of B images; each call goes on where the last one stopped.

    >>> index = torch.arange(4)
    >>> many, one = Chance(0, "fog", 1, index), Chance(0, "fog", 1, index[2:3])
    >>> bool((many.uniform(5)[2] == one.uniform(5)[0]).all())
    True
    """

    def __init__(self, seed: int, name: str, severity: int, index: Tensor) -> None:
        digest = hashlib.blake2b(f"{seed} {name} {severity}".encode(), digest_size=8).digest()
        start = int.from_bytes(digest, "little", signed=True)
        self.keys = _mix(start + (index + 1) * GOLDEN)  # (B,)
        self.drawn = 0

    def __len__(self) -> int:
        return len(self.keys)

    def uniform(self, *shape: int) -> Tensor:
        """(B, *shape), float64, between 0 and 1 and never either."""
        bits = self._bits(math.prod(shape))
        return _unit(bits >> 12, 52).reshape(-1, *shape)

    def normal(self, *shape: int) -> Tensor:
        """(B, *shape), float64, by Box and Muller: each 64 bits give a radius and an angle, and these two numbers."""
        count = math.prod(shape)
        bits = self._bits((count + 1) // 2)
        radius = _unit(bits >> 32, 32).log_().mul_(-2).sqrt_()
        angle = _unit(bits, 32).mul_(2 * math.pi)
        pair = torch.cat([radius * angle.cos(), radius * angle.sin()], dim=1)
        return pair[:, :count].reshape(-1, *shape)

    def between(self, low: float, high: float, *shape: int) -> Tensor:
        """(B, *shape), uniform from `low` to `high`."""
        return self.uniform(*shape).mul_(high - low).add_(low)

    def whole(self, low: int, high: int, *shape: int) -> Tensor:
        """(B, *shape), whole numbers from `low` to `high` - 1."""
        return self.between(low, high, *shape).floor_().clamp_(max=high - 1).long()

    def _bits(self, count: int) -> Tensor:
        counter = torch.arange(self.drawn + 1, self.drawn + count + 1, device=self.keys.device)
        self.drawn += count
        return _mix(self.keys[:, None] + counter * GOLDEN)


def _unit(bits: Tensor, width: int) -> Tensor:
    """The lowest `width` bits as the middle of one of 2^width equal parts of [0, 1]."""
    return (bits & (2**width - 1)).double().add_(0.5).mul_(2.0**-width)


def _mix(state: Tensor) -> Tensor:
    """SplitMix64's finalizer; products wrap around, and the mask makes a logical shift of an arithmetic one."""
    state = (state ^ ((state >> 30) & (2**34 - 1))).mul_(0xBF58476D1CE4E5B9 - 2**64)
    state = (state ^ ((state >> 27) & (2**37 - 1))).mul_(0x94D049BB133111EB - 2**64)
    return state ^ ((state >> 31) & (2**33 - 1))
