"""How far q(z|y) is from p(z|y), class by class, from latents u standardized by their own class's prior: N(0, I) if it fits.

u is (N, D) with labels (N,), of rows the prior was not fitted to; rows labeled -1 are left out. Every result is one number
per class, (C,), and NaN for a class with too few rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from varclass.metrics.arguments import check_count, check_labels, check_matrix, check_scores


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments per class over the dimensions, all (C,): 0, 1, 0 and 0 where q(z|y) is p(z|y).

    mean_rms, skewness_rms: root mean square over dimensions; under a perfect fit about sqrt(1/n) and sqrt(6/n), not 0.
    variance, kurtosis: averages over dimensions (n - 1; excess, unbiased for normal data). The worst are the values, with
    their sign, of the dimension farthest from the ideal (for the variance as a ratio). A mean needs one row, a variance
    two, a skewness three and a kurtosis four; a dimension that never varies has no skewness or kurtosis (NaN).
    """

    count: np.ndarray
    mean_rms: np.ndarray
    mean_worst: np.ndarray
    variance: np.ndarray
    variance_worst: np.ndarray
    skewness_rms: np.ndarray
    skewness_worst: np.ndarray
    kurtosis: np.ndarray
    kurtosis_worst: np.ndarray


def moments(u: object, labels: object, num_classes: int) -> Moments:
    """Mean, variance, skewness and excess kurtosis of each class's standardized latents.

    >>> found = moments([[-1.0], [0.0], [1.0]], [0, 0, 0], num_classes=2)
    >>> found.count.tolist(), found.variance.tolist(), found.skewness_rms.tolist()
    ([3, 0], [1.0, nan], [0.0, nan])
    """
    rows = list(class_rows(u, labels, num_classes))
    table = np.array([_moments_of(part) for part in rows])
    return Moments(np.array([len(part) for part in rows]), *table.T)


def _moments_of(u: np.ndarray) -> list[float]:
    n = len(u)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = u.sum(0) / n
        centered = u - mean
        square = centered * centered  # products: a power of 3 or 4 takes ten times as long
        m2, m3, m4 = (product.sum(0) / n for product in (square, square * centered, square * square))
        variance = m2 * np.float64(n) / (n - 1)
        skewness = m3 / m2**1.5 * np.sqrt(np.float64(n) * (n - 1)) / (n - 2) if n > 2 else np.full_like(m2, np.nan)
        kurtosis = np.full_like(m2, np.nan)
        if n > 3:
            kurtosis = ((n + 1) * (m4 / m2**2 - 3) + 6) * (n - 1) / ((n - 2) * (n - 3))
        away = np.abs(np.log(variance))
    return [
        _rms(mean),
        _farthest(mean, np.abs(mean)),
        float(variance.mean()),
        _farthest(variance, away),
        _rms(skewness),
        _farthest(skewness, np.abs(skewness)),
        float(kurtosis.mean()),
        _farthest(kurtosis, np.abs(kurtosis)),
    ]


def gaussian_kl(u: object, labels: object, num_classes: int) -> np.ndarray:
    """KL[N(m, diag v) || N(0, I)] = 1/2 sum_d (v_d + m_d^2 - 1 - log v_d) in nats, (C,), from each class's sample moments.

    With sample moments put in it is too large by about D / n; here the bias of m^2 and of log v is removed, exactly for
    normal data, so that a perfect fit scatters around 0 and may come out below. It sees means and variances, no shape and
    no dependence between dimensions. A class needs two rows; a dimension that never varies gives infinity.
    """
    from scipy.special import digamma  # noqa: PLC0415

    found = []
    for part in class_rows(u, labels, num_classes):
        n = len(part)
        if n < 2:
            found.append(np.nan)
            continue
        mean, variance = part.mean(0), part.var(0, ddof=1)
        with np.errstate(divide="ignore"):
            log_variance = np.log(variance) - (digamma((n - 1) / 2) - np.log((n - 1) / 2))
        found.append(float((variance + mean**2 - variance / n - 1 - log_variance).sum() / 2))
    return np.array(found)


def typicality(log_evidence: object, reference: object) -> np.ndarray:
    """Two-sided rank p-value of each log p(z) in a reference sample of validation log p(z), (N,).

    2 min(1 + #{r <= x}, 1 + #{r >= x}) / (M + 1), at most 1: P(p <= t) <= t for a sample exchangeable with the reference,
    exactly so for every M. Small for inputs less likely than the data, and for inputs more likely: a density is not
    typicality. The smallest value is 2 / (M + 1); no reference gives NaN.

    >>> typicality([-9.0, 3.0, 99.0], np.arange(19.0)).tolist()
    [0.1, 0.5, 0.1]
    """
    found, known = check_scores("log_evidence", log_evidence), np.sort(check_scores("reference", reference))
    if not len(known):
        return np.full(len(found), np.nan)
    below = np.searchsorted(known, found, side="right")
    above = len(known) - np.searchsorted(known, found, side="left")
    return np.minimum(1, 2 * (1 + np.minimum(below, above)) / (len(known) + 1))


def class_rows(u: object, labels: object, num_classes: int) -> Iterator[np.ndarray]:
    """Each class's rows in turn."""
    values = check_matrix("u", u)
    if not values.shape[1]:
        raise ValueError(f"u must have shape (N, D) with D > 0; got {values.shape}")
    y = check_labels("labels", labels, len(values), check_count("num_classes", num_classes))
    order = np.argsort(y, kind="stable")
    ends = np.searchsorted(y[order], np.arange(num_classes + 1))
    for first, last in pairwise(ends):
        yield values[order[first:last]]


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt((values**2).mean()))


def _farthest(values: np.ndarray, away: np.ndarray) -> float:
    return float(values[away.argmax()])  # NaN wins, as it should
