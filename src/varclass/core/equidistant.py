"""C equidistant class means under one covariance: the accuracy and the NLL they anticipate, exactly, by quadrature.

Let a = |mu_i - mu_j| / (sqrt(2) sigma), which is r sqrt(C / (C - 1)) for a simplex at |mu_y| = r sigma. The centred means have
the Gram matrix a^2 (I - 1/C), so the scores log p(z, j) of a z ~ p(z|y) are, up to what is common to all classes,

    s_j = log p_j + a^2 [j = y] + a e_j,   e_j ~ N(0, 1) independent

and because they are independent both expectations are integrals over one score t, whatever C and p(y):

    1 - accuracy = sum_y p_y int N(t; log p_y + a^2, a^2) { 1 - prod_{j != y} Phi((t - log p_j) / a) } dt
    nll          = sum_y p_y int H(t - log p_y - a^2)     { 1 - prod_{j != y} H(t - log p_j) } dt

where H is the distribution function of a e + g, g standard Gumbel. The second is -log p(y|z) = log(1 + x), with
x = sum_{j != y} exp(s_j - s_y), as the integral of (1 - exp(-u x)) exp(-u) / u over u > 0, where u = exp(s_y - t). Nothing
cancels in either: an error of 1e-9 has its digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

REACH = 9.0  # standard deviations on either side: what lies beyond has probability 2e-19
TABLE_STEP = 0.02
CHUNK_ENTRIES = 2**20


def score_deviation(separation: float, num_classes: int) -> float:
    """a, the standard deviation of a score, for a simplex at |mu_y| = separation sigma."""
    return separation * math.sqrt(num_classes / (num_classes - 1))


def error_probability(a: float, probs: Tensor) -> float:
    """1 - accuracy, to 1e-13 of it or 1e-18, whichever is more: the trapezoid rule on an integrand smooth on the scale of a.

    A class that even at the ends of its reach scores below the likeliest one is never answered: all of its p(y) is error.
    This bounds the grid however small a is.

    >>> two = torch.tensor([0.5, 0.5], dtype=torch.float64)
    >>> round(error_probability(math.sqrt(2), two), 9) == round(float(torch.special.ndtr(torch.tensor(-1.0).double())), 9)
    True
    """
    contends = probs.log() > float(probs.max().log()) - a**2 - 2 * REACH * a
    log_probs = probs[contends].log()
    low, high = float(log_probs.min()) + a**2 - REACH * a, float(log_probs.max()) + a**2 + REACH * a

    def density(t: Tensor) -> Tensor:
        return torch.exp(-0.5 * (t / a - a).square()) / (a * math.sqrt(2 * math.pi))

    def log_cdf(t: Tensor) -> Tensor:
        return torch.special.log_ndtr(t / a)

    return float(probs[~contends].sum()) + _integrate(density, log_cdf, log_probs, low, high, 0.1 * a)


def negative_log_likelihood(a: float, probs: Tensor) -> float:
    """E[-log p(y|z)], to 1e-9 of it or 1e-16, whichever is more.

    The integrand is analytic and bounded for |Im t| < pi / 2, so the trapezoid rule errs by exp(-pi^2 / step), 7e-18.
    """
    if math.log(len(probs)) - a**2 / 4 < -70:  # log(1 + x) <= sqrt(x) makes it at most C exp(-a^2 / 4)
        return 0.0
    log_probs = probs[probs > 0].log()
    low = float(log_probs.min()) + a**2 - REACH * a - 4  # a Gumbel variable is above -4 but for 2e-24
    high = max(low, a**2 / 2) + 40  # 1 - prod H < exp(a^2 / 2 - t)
    start = low - a**2 - float(log_probs.max())
    table = _gumbel_table(a, start, high - float(log_probs.min()))

    def log_cdf(t: Tensor) -> Tensor:
        """log H from the table, by the cubic through the four points around."""
        at = (t - start) / TABLE_STEP + 1
        i = at.long()
        x = at - i
        inner = (1 + x) * (2 - x) * torch.lerp(table[i], table[i + 1], x)
        outer = x * (1 - x) * ((2 - x) * table[i - 1] + (1 + x) * table[i + 2])
        return -torch.exp(inner / 2 - outer / 6)

    return _integrate(lambda t: log_cdf(t - a**2).exp(), log_cdf, log_probs, low, high, 0.25)


def _gumbel_table(a: float, low: float, high: float) -> Tensor:
    """log(-log H), nearly straight, from a step below `low` to beyond `high`. H(t) = E exp(-exp(a e - t))."""
    t = low + TABLE_STEP * torch.arange(-1, (high - low) / TABLE_STEP + 3, dtype=torch.float64)
    step = 0.3 / max(1.0, a)  # analytic for |Im e| < pi / 2a: the trapezoid rule errs by 5e-15
    below, above = torch.zeros_like(t), torch.zeros_like(t)
    for e in torch.arange(-REACH, REACH + step, step, dtype=torch.float64).tolist():
        rate = torch.exp(a * e - t)
        weight = step * math.exp(-0.5 * e**2) / math.sqrt(2 * math.pi)
        below.add_(torch.exp(-rate), alpha=weight)
        above.sub_(torch.expm1(-rate), alpha=weight)
    tiny = 1e-300  # no logarithm is infinite where the integrand is zero anyway
    minus_log = torch.where(above < 0.5, -torch.log1p(-above.clamp(tiny, 0.5)), -below.clamp(min=tiny).log())
    return minus_log.log()


def _integrate(
    kernel: Callable[[Tensor], Tensor],
    log_cdf: Callable[[Tensor], Tensor],
    log_probs: Tensor,
    low: float,
    high: float,
    step: float,
) -> float:
    """sum_y p_y int kernel(t - log p_y) { 1 - prod_{j != y} exp log_cdf(t - log p_j) } dt, by the trapezoid rule."""
    value, count = log_probs.unique(return_counts=True)  # classes of the same p(y) are computed once
    grid = low + step * torch.arange((high - low) / step, dtype=torch.float64)
    total = 0.0
    for t in grid.split(max(1, CHUNK_ENTRIES // len(value))):
        shifted = t[:, None] - value
        log_each = log_cdf(shifted)
        log_others = (log_each @ count.double())[:, None] - log_each
        total -= step * float((kernel(shifted) * torch.expm1(log_others)).sum(0) @ (count * value.exp()))
    return total
