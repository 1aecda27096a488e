"""How sure a number is: t-intervals over seeds, the bootstrap over samples, Wilson's interval for a share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from varclass.metrics.arguments import check_count, check_share
from varclass.metrics.draws import uniform

FEW = 5  # seeds: below this, t's quantile is above 2.8 standard errors and nothing can be seen of normality
BLOCK = 2**22  # numbers resampled at once: 32 MiB


@dataclass(frozen=True)
class Interval:
    """A mean with its interval: n values, their standard deviation (n - 1), the ends, and a caveat where there is one."""

    mean: float
    low: float
    high: float
    sd: float
    n: int
    level: float
    note: str = ""


def over_seeds(values: object, level: float = 0.95) -> Interval:
    """The t-interval of the mean over seeds: mean +- t sd / sqrt(n), with n - 1 degrees of freedom.

    It answers for the seeds and not for the test samples, which are the same in all of them. One value has no interval:
    sd, low and high are NaN, and the note says so; no value gives NaN throughout.

    >>> found = over_seeds([1.0, 2.0, 3.0])
    >>> found.mean, round(found.low, 4), round(found.high, 4), found.note
    (2.0, -0.4841, 4.4841, 'n = 3: the interval rests on normality, which so few seeds cannot show')
    >>> over_seeds([1.0]).note
    'n = 1: one seed has no interval'
    """
    from scipy.special import stdtrit  # noqa: PLC0415

    found, level = np.asarray(values, dtype=np.float64), check_share("level", level)
    if found.ndim != 1:
        raise ValueError(f"values must have shape (seeds,); got {found.shape}")
    n = len(found)
    if n < 2:
        note = "n = 1: one seed has no interval" if n else "n = 0: no data"
        return Interval(float(found[0]) if n else math.nan, math.nan, math.nan, math.nan, n, level, note)
    with np.errstate(invalid="ignore"):  # an infinite NLL has a mean and no spread
        mean, sd = float(found.mean()), float(found.std(ddof=1))
    half = float(stdtrit(n - 1, (1 + level) / 2)) * sd / math.sqrt(n)
    note = f"n = {n}: the interval rests on normality, which so few seeds cannot show" if n < FEW else ""
    return Interval(mean, mean - half, mean + half, sd, n, level, note)


def paired_difference(values: object, others: object, level: float = 0.95) -> Interval:
    """The t-interval of values - others, seed by seed: what the two share, a seed's split or its start, cancels.

    >>> paired_difference([0.75, 0.5, 0.25], [0.5, 0.25, 0.0]).high  # apart by 0.25 in every seed
    0.25
    """
    one, two = np.asarray(values, dtype=np.float64), np.asarray(others, dtype=np.float64)
    if one.ndim != 1 or one.shape != two.shape:
        raise ValueError(f"paired values must have the same shape (seeds,); got {one.shape} and {two.shape}")
    with np.errstate(invalid="ignore"):
        return over_seeds(one - two, level)


def _means(resampled: np.ndarray) -> np.ndarray:
    return np.asarray(resampled.mean(1))


def bootstrap(
    values: object,
    statistic: Callable[[np.ndarray], np.ndarray] = _means,
    *,
    resamples: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """The percentile bootstrap over samples, for one trained model: it answers for the test set, not for the seed.

    Args:
        values: (N, ...), one entry per sample; n is N, and sd the standard deviation of the resampled statistics.
        statistic: from (R, N, ...), R resampled data sets, to (R,); the mean of each unless given.

    The statistic of the data itself is the mean field. No sample gives NaN; one sample an interval of no width, with a note.

    >>> found = bootstrap(np.arange(100.0))
    >>> found.mean, found.low < 49.5 < found.high
    (49.5, True)
    """
    data, level, resamples = np.asarray(values), check_share("level", level), check_count("resamples", resamples, 2)
    if data.ndim == 0:
        raise ValueError("values must have shape (N, ...); got a single number")
    n = len(data)
    if n == 0:
        return Interval(math.nan, math.nan, math.nan, math.nan, 0, level, "n = 0: no data")
    found = np.concatenate([statistic(data[rows]) for rows in _resamples(n, resamples, seed, max(1, BLOCK // data.size))])
    with np.errstate(invalid="ignore"):
        low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
        sd = float(found.std(ddof=1))
    note = "n = 1: one sample has no spread" if n == 1 else ""
    return Interval(float(statistic(data[None])[0]), float(low), float(high), sd, n, level, note)


def _resamples(n: int, resamples: int, seed: int, block: int) -> Iterator[np.ndarray]:
    """Positions drawn with replacement, (at most block, n) at a time."""
    for start in range(0, resamples, block):
        size = min(block, resamples - start)
        yield np.minimum((uniform(size * n, seed, stream=start) * n).astype(np.int64), n - 1).reshape(size, n)


def wilson(successes: object, n: object, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's score interval for a share, (low, high), element by element: within [0, 1], and sound near 0 and 1.

    NaN where n is 0. For n = 0 anything from 0 to 1 is possible; NaN says that nothing was seen.

    >>> [round(float(end), 4) for end in wilson(9, 10)]
    [0.5958, 0.9821]
    """
    hits, total = np.asarray(successes, dtype=np.float64), np.asarray(n, dtype=np.float64)
    if not ((hits >= 0) & (hits <= total) & np.isfinite(total)).all():
        raise ValueError(f"successes must lie from 0 to n; got {successes!r} and n = {n!r}")
    z2 = NormalDist().inv_cdf((1 + check_share("level", level)) / 2) ** 2
    total = np.where(total > 0, total, np.nan)
    share = hits / total
    center = (share + z2 / (2 * total)) / (1 + z2 / total)
    half = np.sqrt(z2 * (share * (1 - share) / total + z2 / (4 * total**2))) / (1 + z2 / total)
    return np.maximum(center - half, 0), np.minimum(center + half, 1)
