"""Axes: from values to a range with round ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

TICKS = 5


@dataclass(frozen=True)
class Axis:
    """A range with its label and ticks (value, text); `log` for powers, values above 0."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def share(self, value: float) -> float:
        """Where a value lies, 0 at the low end and 1 at the high."""
        if self.log:
            return (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (value - self.low) / (self.high - self.low)


def linear(label: str, values: Iterable[float], percent: bool = False, within: tuple[float, float] | None = None) -> Axis:
    """An axis around the finite values; it ends at round numbers, and not beyond the finite ends of `within`.

    >>> [text for _, text in linear("accuracy", [0.62, 0.97], percent=True, within=(0, 1)).ticks]
    ['60%', '70%', '80%', '90%', '100%']
    """
    held = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(held), max(held)
    if high - low < 1e-9 * max(1.0, abs(high)):
        half = abs(high) / 2 or 0.5
        low, high = low - half, high + half
        if within is not None:
            low, high = max(low, within[0]), min(high, within[1])
    step = _step((high - low) / TICKS)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    if within is not None:
        first = max(first, math.ceil(within[0] / step - 1e-9))
        last = min(last, math.floor(within[1] / step + 1e-9)) if math.isfinite(within[1]) else last
    places = range(first, max(last, first + 1) + 1)
    digits = max(0, -math.floor(math.log10(step * (100 if percent else 1)) + 1e-9))
    ticks = tuple((k * step, f"{100 * k * step:.{digits}f}%" if percent else _plain(k * step, digits)) for k in places)
    return Axis(label, ticks[0][0], ticks[-1][0], ticks)


def logarithmic(label: str, values: Sequence[float]) -> Axis:
    """A logarithmic axis with a tick at each value; those too close to the one before have no text."""
    held = sorted({value for value in values if value > 0 and math.isfinite(value)}) or [1.0]
    low, high = held[0] / 1.15, held[-1] * 1.15
    ticks, last = [], -math.inf
    for value in held:
        place = math.log(value / low) / math.log(high / low)
        ticks.append((value, f"{value:g}" if place - last > 0.12 else ""))
        last = place if place - last > 0.12 else last
    return Axis(label, low, high, tuple(ticks), log=True)


def slots(label: str, names: Sequence[object]) -> Axis:
    """An axis of places 0, 1, ..., one for each name."""
    return Axis(label, -0.5, max(len(names), 1) - 0.5, tuple((float(i), str(name)) for i, name in enumerate(names)))


def _step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= rough * (1 - 1e-9)), 10 * power)


def _plain(value: float, digits: int) -> str:
    return f"{value + 0.0:.0e}".replace("e+0", "e").replace("e+", "e") if abs(value) >= 1e5 else f"{value + 0.0:.{digits}f}"
