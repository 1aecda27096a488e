"""Does q(z|y) follow p(z|y)? Two tests per class on standardized latents, with p-values that hold at any n and D."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varclass.metrics.arguments import check_share
from varclass.metrics.latents import class_rows


@dataclass(frozen=True, eq=False)
class Normality:
    """Tests of u ~ N(0, I) per class, all (C,); NaN (and 0 rejected) for a class without rows.

    p_radius: of |u|^2 against chi-square with D degrees of freedom (Kolmogorov-Smirnov). It sees a common scale, heavy
    tails and dependence between dimensions; it is blind to whatever keeps |u|, and weak against a shift of few dimensions.
    p_dimensions: the least Holm-adjusted p-value of D tests, each dimension against N(0, 1) (Kolmogorov-Smirnov). It sees
    any dimension's mean, scale or shape; it is blind to dependence. rejected: how many dimensions Holm rejects at `level`.
    p: both together, 2 min(p_radius, p_dimensions), at most 1.
    """

    count: np.ndarray
    p_radius: np.ndarray
    p_dimensions: np.ndarray
    rejected: np.ndarray
    p: np.ndarray
    level: float


def normality(u: object, labels: object, num_classes: int, level: float = 0.05) -> Normality:
    """Test each class's standardized latents (N, D) against N(0, I).

    Holm's correction holds however the dimensions depend on each other; Fisher's combination would need them independent,
    which latents are not. p-values are exact for rows that neither the encoder nor the prior was fitted to. With n in the
    thousands every real model is rejected: read the p-value beside the size of the misfit, in `moments` and `gaussian_kl`.
    Over C classes, compare with level / C.
    """
    parts = list(class_rows(u, labels, num_classes))
    table = np.array([_test(part, check_share("level", level)) for part in parts])
    both = np.minimum(1, 2 * np.minimum(table[:, 0], table[:, 1]))
    count = np.array([len(part) for part in parts])
    return Normality(count, table[:, 0], table[:, 1], table[:, 2].astype(np.int64), both, level)


def _test(u: np.ndarray, level: float) -> tuple[float, float, float]:
    from scipy.special import chdtr, ndtr  # noqa: PLC0415

    n, dim = u.shape
    if n == 0:
        return np.nan, np.nan, 0
    radius = _distance(chdtr(dim, (u**2).sum(1, keepdims=True)))
    worst_first = np.sort(_distance(ndtr(u)))[::-1]
    adjusted = min(1.0, dim * _p_value(worst_first[0], n))
    return _p_value(radius[0], n), adjusted, _holm(worst_first, n, level)


def _distance(cdf: np.ndarray) -> np.ndarray:
    """Kolmogorov and Smirnov's statistic of each column against U[0, 1], (D,)."""
    cdf = np.sort(cdf, axis=0)
    n = len(cdf)
    step = np.arange(n + 1)[:, None] / n
    return np.asarray(np.maximum((step[1:] - cdf).max(0), (cdf - step[:-1]).max(0)))


def _p_value(distance: float, n: int) -> float:
    from scipy.stats import kstwo  # noqa: PLC0415

    return float(kstwo.sf(distance, n))  # exact in n: the limiting law is off by a factor at n = 10 in the tail


def _holm(worst_first: np.ndarray, n: int, level: float) -> int:
    """How many of the sorted distances Holm rejects, by bisection: exact p-values of thousands of dimensions take seconds.

    With k rejected, all that pass level / (D - k) are rejected too; from 0 on, until no more come.
    """
    rejected = 0
    while rejected < len(worst_first):
        bound = level / (len(worst_first) - rejected)
        low, high = rejected, len(worst_first)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if _p_value(worst_first[middle], n) <= bound else (low, middle)
        if low == rejected:
            break
        rejected = low
    return rejected
