"""Attacks within an L-infinity ball: FGSM as in the paper, and PGD beside it, since FGSM alone is not robustness."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from varclass.classifier import Classifier

Loss = Callable[[Tensor, Tensor], Tensor]  # (x, y) -> a scalar to be made large


def posterior_loss(model: Classifier) -> Loss:
    """-sum log p(y|x): the same attack on every model, whatever it was trained with."""

    def loss(x: Tensor, y: Tensor) -> Tensor:
        return F.nll_loss(model.log_posterior(x), y, reduction="sum")

    return loss


def training_loss(model: Classifier) -> Loss:
    """The model's own objective, all of its terms: a variant."""

    def loss(x: Tensor, y: Tensor) -> Tensor:
        return model(x, y) * len(y)

    return loss


def fgsm(loss: Loss, x: Tensor, y: Tensor, epsilon: float) -> Tensor:
    """x + epsilon sign(grad), kept in [0, 1]: the fast gradient sign method (Goodfellow et al. 2015)."""
    return (x + epsilon * _gradient(loss, x, y).sign()).clamp(0, 1)


def pgd(
    loss: Loss,
    x: Tensor,
    y: Tensor,
    epsilon: float,
    *,
    steps: int = 20,
    step_size: float | None = None,
    start: Tensor | None = None,
) -> Tensor:
    """FGSM's step `steps` times, each time brought back into the ball (Madry et al. 2018).

    Args:
        loss: what to make large.
        x: images in [0, 1].
        y: labels.
        epsilon: radius of the ball, in the max norm.
        steps: gradients taken.
        step_size: 2.5 epsilon / steps by default, so that every point of the ball can be reached.
        start: where to begin, uniform numbers in [-1, 1] of the shape of x, times epsilon away; None begins at x.
    """
    size = 2.5 * epsilon / steps if step_size is None else step_size
    attacked = x if start is None else (x + epsilon * start).clamp(0, 1)
    for _ in range(steps):
        attacked = attacked + size * _gradient(loss, attacked, y).sign()
        attacked = torch.minimum(torch.maximum(attacked, x - epsilon), x + epsilon).clamp(0, 1)
    return attacked


def _gradient(loss: Loss, x: Tensor, y: Tensor) -> Tensor:
    leaf = x.detach().requires_grad_()
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(loss(leaf, y), leaf)
    return gradient
