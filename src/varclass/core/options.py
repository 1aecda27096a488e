"""Option names at the public boundary: registries, and one-line errors that say what was expected and what came."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T", bound=type)


class Registry(dict[str, Any]):
    """Names a user may write for one option, each with the class that answers to it.

    >>> SHAPES = Registry("shape")
    >>> @SHAPES.register("round")
    ... class Round: ...
    >>> SHAPES.pick("square")
    Traceback (most recent call last):
    ValueError: shape must be one of 'round'; got 'square'
    """

    def __init__(self, option: str) -> None:
        super().__init__()
        self.option = option

    def register(self, name: str) -> Callable[[T], T]:
        """Class decorator: make `name` a choice of this option (the contract tests pick it up by that alone)."""

        def add(cls: T) -> T:
            self[name] = cls
            return cls

        return add

    def pick(self, name: object) -> Any:
        """The class registered under `name`, or a ValueError that lists the choices."""
        check_choice(self.option, name, self)
        return self[str(name)]


def check_choice(option: str, value: object, choices: Any) -> None:
    """One of the names in `choices`."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{option} must be one of {listed}; got {value!r}")


def check_count(option: str, value: object, least: int) -> int:
    """An int of at least `least`; numpy's are welcome."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{option} must be a whole number of at least {least}; got {value!r}")
    return int(value)


def check_positive(option: str, value: object, *, zero: bool = False) -> float:
    """A finite number above zero (or from zero on), as a float; numpy's are welcome."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if not math.isfinite(number) or number < 0 or (not zero and number == 0):
        raise ValueError(f"{option} must be a finite number {'>=' if zero else '>'} 0; got {value!r}")
    return number


def check_probabilities(option: str, value: object, num_classes: int) -> Tensor:
    """A distribution over the classes, as float64; it is not renormalised, so it must sum to one already."""
    probs = torch.as_tensor(value, dtype=torch.float64)
    if probs.shape != (num_classes,):
        raise ValueError(f"{option} must hold {num_classes} probabilities; got shape {tuple(probs.shape)}")
    if not bool((probs >= 0).all()) or abs(float(probs.sum()) - 1) > 1e-4:
        raise ValueError(
            f"{option} must be non-negative and sum to 1; got min {float(probs.min()):.3g}, sum {float(probs.sum()):.6g}"
        )
    return probs


def check_class_weight(weight: Tensor | None, num_classes: int) -> Tensor | None:
    """C finite weights from zero on, or None."""
    if weight is None:
        return None
    weight = torch.as_tensor(weight, dtype=torch.float32)
    if weight.shape != (num_classes,):
        raise ValueError(f"class_weight must hold {num_classes} numbers >= 0; got shape {tuple(weight.shape)}")
    wrong = weight[~((weight >= 0) & weight.isfinite())]
    if len(wrong):
        raise ValueError(f"class_weight must hold {num_classes} finite numbers >= 0; got {float(wrong[0]):g}")
    return weight
