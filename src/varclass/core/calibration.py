"""Fitting the one scalar that `VariationalHead.calibrate` keeps: a common factor on every class's sigma."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from varclass.core.label_prior import possible_classes

if TYPE_CHECKING:
    from varclass.core.head import VariationalHead

LOG_RANGE = (-4.0, 4.0)  # factors from 0.018 to 55: temperatures, their squares, from 3e-4 to 3000


@torch.no_grad()
def fit_scale_factor(head: VariationalHead, features: Tensor, y: Tensor) -> float:
    """Set the class prior's scale factor to the minimiser of -E log p(y|z) on held-out data, and return the factor.

    Where none of n samples is mistaken that would be certainty. So one more counts then, of which nothing is known: the
    average of -log p(y|z) over all y, weighted by 1 / n.
    """
    target = head.read_target(features, y)
    if target.labels is None or not len(target.labels) or (target.weight is not None and not bool(target.weight.any())):
        raise ValueError(f"calibrate needs at least one hard label; got y of shape {tuple(y.shape)}, {y.dtype}")
    labels, prior, possible = target.labels, head.class_prior, possible_classes(head.log_label())
    before, seed = prior.scale_factor, int(torch.randint(2**31, ()))

    def log_posterior_at(factor: float) -> Tensor:
        prior.scale_factor = factor
        with torch.random.fork_rng(devices=[features.device] if features.is_cuda else []):
            torch.manual_seed(seed)  # the same draws every time, if q(z|x) is stochastic
            return head.log_posterior(features).reshape(-1, head.num_classes).double()

    def held_out_loss(log_factor: float) -> float:
        log_posterior = log_posterior_at(math.exp(log_factor))
        loss = float(target.average(F.nll_loss(log_posterior, labels, reduction="none")))
        if not math.isfinite(loss):
            raise ValueError(f"calibrate needs features with finite log p(y|z); got a held-out loss of {loss}")
        return loss - unknown * float(target.average(log_posterior[:, possible].mean(1)))

    try:
        count = len(labels) if target.weight is None else float(target.weight.sum())
        mistaken = bool(target.average((log_posterior_at(1.0).argmax(1) != labels).double()))
        unknown = 0.0 if mistaken else 1 / count
        prior.scale_factor = math.exp(golden_section(held_out_loss, *LOG_RANGE))
    except BaseException:
        prior.scale_factor = before
        raise
    return prior.scale_factor


def golden_section(function: Callable[[float], float], low: float, high: float, tolerance: float = 1e-5) -> float:
    """The minimiser of a unimodal function on an interval.

    >>> round(golden_section(lambda x: (x - 1) ** 2, -4, 4), 4)
    1.0
    """
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > tolerance:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
    return (low + high) / 2
