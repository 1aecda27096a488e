"""What comes into a metric, checked or refused in one line; and an average that is NaN where there is nothing to average."""

from __future__ import annotations

import math

import numpy as np


def average(values: np.ndarray) -> float:
    """The mean; of nothing NaN, without a warning.

    >>> average(np.array([1.0, 2.0])), average(np.array([]))
    (1.5, nan)
    """
    return float(np.mean(values)) if np.size(values) else math.nan


def check_count(name: str, value: object, least: int = 1) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}")
    return int(value)


def check_share(name: str, value: object) -> float:
    """A number strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < float(value) < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1; got {value!r}")
    return float(value)


def check_scores(name: str, values: object, length: int | None = None) -> np.ndarray:
    """One number per sample, as float64: infinite ones have a rank and may stay, NaN has none and may not."""
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != 1 or (length is not None and len(scores) != length):
        raise ValueError(f"{name} must have shape ({'N' if length is None else length},); got {scores.shape}")
    if np.isnan(scores).any():
        raise ValueError(f"{name} must hold numbers; got {int(np.isnan(scores).sum())} NaN of {len(scores)}")
    return scores


def check_matrix(name: str, values: object, columns: int | None = None) -> np.ndarray:
    """Finite numbers of shape (N, columns), as float64."""
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2 or (columns is not None and matrix.shape[1] != columns):
        raise ValueError(f"{name} must have shape (N, {'D' if columns is None else columns}); got {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name} must be finite; got {int((~np.isfinite(matrix)).sum())} entries that are not")
    return matrix


def check_labels(name: str, values: object, length: int, num_classes: int) -> np.ndarray:
    """One class number per sample, or -1 where there is none, as int64."""
    labels = np.asarray(values)
    if labels.shape != (length,):
        raise ValueError(f"{name} must have shape ({length},); got {labels.shape}")
    if labels.size and not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"{name} must be whole numbers; got {labels.dtype}")
    labels = labels.astype(np.int64, copy=False)
    if labels.size and not -1 <= labels.min() <= labels.max() < num_classes:
        raise ValueError(f"{name} must lie from -1 to {num_classes - 1}; got {labels.min()} to {labels.max()}")
    return labels


def check_probabilities(name: str, values: object, num_classes: int) -> np.ndarray:
    """A distribution over the classes, as float64; it is not renormalized, so it must sum to one already."""
    probs = np.asarray(values, dtype=np.float64)
    if probs.shape != (num_classes,):
        raise ValueError(f"{name} must hold {num_classes} probabilities; got shape {probs.shape}")
    if not (probs >= 0).all() or abs(probs.sum() - 1) > 1e-4:  # 1e-4 as in the core: float32 frequencies of many classes
        raise ValueError(f"{name} must be non-negative and sum to 1; got min {probs.min():.3g}, sum {probs.sum():.6g}")
    return probs
