"""What a user passes to the estimator, checked: layer sizes, sample weights, folds. scikit-learn checks X and y."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from varclass.core.options import check_count, check_positive


def share(name: str, value: Any) -> float:
    """A number above 0 and below 1."""
    if check_positive(name, value) >= 1:
        raise ValueError(f"{name} must be a number above 0 and below 1; got {value!r}")
    return float(value)


def layer_sizes(value: Any) -> tuple[int, ...]:
    """Widths of the hidden layers; one number is one layer, () is none."""
    if isinstance(value, Integral):
        value = (value,)
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(f"hidden_layer_sizes must be layer widths such as (100,); got {value!r}")
    return tuple(check_count("each of hidden_layer_sizes", width, 1) for width in value)


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


def split_folds(codes: np.ndarray, folds: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(rows, held out) of each fold, with the classes in proportion; a class's only sample is held out by none."""
    several = np.flatnonzero(np.bincount(codes)[codes] > 1)
    with warnings.catch_warnings():  # of classes with fewer samples than folds: some folds hold out none of them
        warnings.simplefilter("ignore", UserWarning)
        parts = list(StratifiedKFold(folds, shuffle=True, random_state=0).split(several, codes[several]))
    for _, held_out in parts:
        rest = several[held_out]
        yield np.setdiff1d(np.arange(len(codes)), rest), rest
