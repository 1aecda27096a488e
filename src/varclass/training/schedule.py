"""Learning-rate schedules: a factor on every group's rate as a function of how far training is."""

from __future__ import annotations

import math
from collections.abc import Callable

MILESTONES, GAMMA = (0.3, 0.6, 0.8), 0.2  # of the wide residual networks: 60, 120 and 160 of 200 epochs


def cosine(progress: float) -> float:
    """From 1 down to 0 along half a cosine."""
    return 0.5 * (1 + math.cos(math.pi * progress))


def one_cycle(progress: float, peak: float = 0.3, start: float = 0.04) -> float:
    """Up from `start` to 1 in the first `peak` of training, then down to 0, both along half a cosine."""
    if progress < peak:
        return start + (1 - start) * (1 - cosine(progress / peak))
    return cosine((progress - peak) / (1 - peak))


def step(progress: float) -> float:
    """Times 0.2 at 30, 60 and 80 percent of training."""
    return GAMMA ** sum(progress >= milestone for milestone in MILESTONES)


def constant(progress: float) -> float:
    """Always 1."""
    return 1.0


SCHEDULES: dict[str, Callable[[float], float]] = {
    "cosine": cosine,
    "one-cycle": one_cycle,
    "step": step,
    "constant": constant,
}


def lr_factor(schedule: str, done: int, total: int, warmup: float) -> float:
    """The factor for the step after `done` of `total`; it rises linearly over the first `warmup` share of the steps.

    >>> [round(lr_factor("cosine", t, 100, 0.1), 2) for t in (0, 9, 55, 99)]
    [0.1, 0.98, 0.42, 0.0]
    """
    factor = SCHEDULES[schedule](done / total)
    rising = math.ceil(warmup * total)
    return factor * min(1.0, (done + 1) / rising) if rising and schedule != "one-cycle" else factor
