"""log N(z; mu_y, sigma_y^2) of every latent under every class: matrix products, and never a (B, C, D) tensor.

Both functions return it in two parts, log p(z|y) = relative (B, C) + common (B,). What is common to all classes is large
and says nothing about y: Bayes' rule takes the relative part alone, which keeps float32's digits for what tells the classes
apart. The split is a matter of reference points that are held constant, so `relative` has meaning, and gradients, only up to
a number per latent; the sum is exact.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

LOG_2PI = math.log(2 * math.pi)
Parts = tuple[Tensor, Tensor]


def equal_log_density(u: Tensor, offset: Tensor, shrink: float, shift: Tensor | None) -> Parts:
    """log N(u; shrink offset_y, I) + shift_y without its constant, (B, D), (C, D) -> (B, C), (B,): one product."""
    center = offset.detach().mean(0)
    u, offset = torch.sub(u, center, alpha=shrink), offset - center
    bias = -0.5 * shrink**2 * torch.linalg.vecdot(offset, offset)
    bias = bias if shift is None else bias + shift
    return torch.addmm(bias, u, offset.T, alpha=shrink), -0.5 * torch.linalg.vecdot(u, u)


def equal_log_joint(u: Tensor, offset: Tensor, shrink: float, shift: Tensor, level: Tensor) -> Tensor:
    """`equal_log_density` in one piece, plus `level`, for prediction: as many passes over (B, C) as `nn.Linear` makes."""
    center = offset.mean(0)
    u, offset = torch.sub(u, center, alpha=shrink), offset - center
    length, radius = torch.linalg.vector_norm(offset, dim=1), torch.linalg.vector_norm(u, dim=1)
    bias = torch.addcmul(shift, length, length, value=-0.5 * shrink**2)
    common = torch.addcmul(level, radius, radius, value=-0.5)
    return torch.add(bias, common[:, None]).addmm_(u, offset.T, alpha=shrink)


def gaussian_log_density(
    z: Tensor, offset: Tensor, log_sigma: Tensor, shrink: float, shift: Tensor | None = None, y: Tensor | None = None
) -> Any:
    """-1/2 sum_d { (z_d / sigma_yd - shrink offset_yd)^2 + 2 log sigma_yd + log 2 pi } + shift_y, (B, D), (C, D) -> (B, C).

    So mu_y = shrink sigma_y offset_y. `log_sigma` is (C, D), or (C, 1) where a class's dimensions share it; `shift` (C,) is
    log p(y). Given labels, a third result (B,) has the whole at them but passes no gradient to z: Algorithm 1 asks for
    log p(y|z) with z attached and for log p(z|y) with z detached, and both come from the same two products.

    Expanding |z - mu|^2 = |z|^2 - 2 z.mu + |mu|^2 turns the sum into products of [z^2, z] with the classes' natural
    parameters, but in float32 the expansion cancels. So z and mu are first centred on the mean of the means, and z^2 meets
    each class's *difference* from the average precision. The gradient is written out because it takes half the elementwise
    passes of the recorded one; it is made of differentiable operations, so second derivatives work too. A compiler fuses
    those passes by itself and is given the plain form.
    """
    if torch.compiler.is_compiling() and y is None:
        return _evaluate(_centered(z, offset, log_sigma, shrink), log_sigma, shrink, shift)
    return _GaussianLogDensity.apply(z, offset, log_sigma, shrink, shift, y)


class _GaussianLogDensity(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, z: Tensor, offset: Tensor, log_sigma: Tensor, shrink: float, shift: Tensor | None, y: Tensor | None
    ) -> Any:
        parts = _centered(z, offset, log_sigma, shrink)
        ctx.save_for_backward(z, offset, log_sigma, y, *parts)
        ctx.shrink = shrink
        ctx.set_materialize_grads(False)
        relative, common = _evaluate(parts, log_sigma, shrink, shift)
        if y is None:
            return relative, common
        return relative, common, relative.gather(1, y[:, None])[:, 0] + common

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, grad_common: Tensor | None, *grad_own: Tensor | None) -> Any:
        z, offset, log_sigma, y, *parts = ctx.saved_tensors
        shrink = ctx.shrink
        if torch.is_grad_enabled():  # a second derivative is wanted: the parts must know where they come from
            parts = _centered(z, offset, log_sigma, shrink)
        z, offset, weight, inverse, excess, average, square, center = parts
        grad_z = grad_offset = grad_log_sigma = grad_shift = None
        if ctx.needs_input_grad[0] and grad is not None:
            grad_z = torch.addmm((grad @ excess) * z, grad, weight, beta=-1, alpha=shrink)
        if ctx.needs_input_grad[0] and grad_common is not None:
            pull = (grad_common[:, None] * average) * z
            grad_z = -pull if grad_z is None else grad_z - pull
        if grad_own and grad_own[0] is not None:  # moves theta, not z
            grad = z.new_zeros(len(z), len(offset)) if grad is None else grad
            grad = grad.scatter_add(1, y[:, None], grad_own[0][:, None])
        if grad is not None and any(ctx.needs_input_grad[1:5]):
            counts = grad.sum(0)
            grad_shift = counts if ctx.needs_input_grad[4] else None
            count = counts[:, None]
            first = grad.T @ z
            grad_offset = torch.addcmul(offset * (-(shrink**2) * count), inverse, first, value=shrink)
            if ctx.needs_input_grad[2]:
                mixed = inverse * torch.addcmul(center * grad_offset, offset, first, value=-shrink)
                spread = torch.addcmul(mixed.sum_to_size(excess.shape), excess + average, grad.T @ square)
                grad_log_sigma = torch.sub(spread, count, alpha=z.shape[1] / log_sigma.shape[1])
        return grad_z, grad_offset, grad_log_sigma, None, grad_shift, None


def _centered(z: Tensor, offset: Tensor, log_sigma: Tensor, shrink: float) -> tuple[Tensor, ...]:
    """From the mean of the means: z, offset, offset / sigma; 1 / sigma; each 1 / sigma^2 less the average; z^2; that mean."""
    inverse = torch.exp(-log_sigma)
    center = (offset / inverse).detach().mean(0)
    z = torch.sub(z, center, alpha=shrink)
    square = z.square() if log_sigma.shape[-1] > 1 else z.square().sum(-1, keepdim=True)
    offset = torch.addcmul(offset, inverse, center, value=-1)
    precision = inverse.square()
    average = precision.detach().mean(0)
    return z, offset, offset * inverse, inverse, precision - average, average, square, center


def _evaluate(parts: tuple[Tensor, ...], log_sigma: Tensor, shrink: float, shift: Tensor | None) -> Parts:
    z, offset, weight, _, excess, average, square, _ = parts
    dim = z.shape[1]
    spread = log_sigma.mean(-1)
    level = spread.detach().mean()
    below = torch.add(spread - level, torch.linalg.vecdot(offset, offset), alpha=0.5 * shrink**2 / dim)
    bias = -dim * below if shift is None else torch.sub(shift, below, alpha=dim)
    relative = torch.addmm(bias, z, weight.T, alpha=shrink).addmm_(square, excess.T, alpha=-0.5)
    common = torch.addmv((level + 0.5 * LOG_2PI).expand(len(z)), square, average, beta=-dim, alpha=-0.5)
    return relative, common
