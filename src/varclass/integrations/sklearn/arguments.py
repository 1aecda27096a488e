"""What a user passes to the estimator, checked: numbers, layer sizes, sample weights. scikit-learn checks X and y."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

from varclass.core.options import check_count, check_positive


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least `least`; numpy's are welcome, as a search over parameters makes them."""
    plain = isinstance(value, Integral) and not isinstance(value, bool)
    return check_count(name, int(value) if plain else value, least)


def number(name: str, value: Any, *, zero: bool = False) -> float:
    """A finite number above zero (or from zero on)."""
    plain = isinstance(value, Real) and not isinstance(value, bool)
    return check_positive(name, float(value) if plain else value, zero=zero)


def share(name: str, value: Any) -> float:
    """A number above 0 and below 1."""
    if number(name, value) >= 1:
        raise ValueError(f"{name} must be a number above 0 and below 1; got {value!r}")
    return float(value)


def layer_sizes(value: Any) -> tuple[int, ...]:
    """Widths of the hidden layers; one number is one layer, () is none."""
    if isinstance(value, Integral):
        value = (value,)
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(f"hidden_layer_sizes must be layer widths such as (100,); got {value!r}")
    return tuple(whole("each of hidden_layer_sizes", width, 1) for width in value)


def counted(x: np.ndarray, codes: np.ndarray, weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, labels and weights in float64 of the samples that count; a sample of weight 0 is as if it were not there."""
    weight = np.asarray(1.0 if weight is None else weight, dtype=np.float64)
    weight = np.full(len(x), weight) if weight.ndim == 0 else weight
    if weight.shape != (len(x),):
        raise ValueError(f"sample_weight must hold {len(x)} weights, one for each sample; got shape {weight.shape}")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError(f"sample_weight must hold finite numbers >= 0; got {weight.min():g} to {weight.max():g}")
    if not weight.any():
        raise ValueError("sample_weight must be above 0 for some sample; got zeros only")
    kept = weight > 0
    return x[kept], codes[kept], weight[kept]
