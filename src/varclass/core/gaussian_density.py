"""log N(z; mu_y, sigma_y^2) of every latent under every class: two matrix products, and never a (B, C, D) tensor."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

LOG_2PI = math.log(2 * math.pi)


def gaussian_log_density(z: Tensor, offset: Tensor, log_sigma: Tensor, shrink: Tensor, y: Tensor | None = None) -> Any:
    """-1/2 sum_d { (z_d / sigma_yd - shrink offset_yd)^2 + 2 log sigma_yd + log 2 pi }, (B, D), (C, D) -> (B, C).

    So mu_y = shrink sigma_y offset_y. `log_sigma` is (C, D), or has size 1 where it is common to all classes or all
    dimensions; `shrink` is a constant scalar. Given labels, a second result (B,) has the entries at them but passes no
    gradient to z: Algorithm 1 asks for log p(y|z) with z attached and for log p(z|y) with z detached, and both come from
    the same two products.

    Expanding |z - mu|^2 = |z|^2 - 2 z.mu + |mu|^2 turns the sum into products of [z^2, z] with the classes' natural
    parameters, but in float32 the expansion cancels. So z and mu are first centred on the mean of the means, and z^2 meets
    each class's *difference* from the average precision: what is common to all classes is summed once per latent. Neither
    reference point changes the value. The gradient is written out because it takes half the elementwise passes of the
    recorded one; it is made of differentiable operations, so second derivatives work too. A compiler fuses those passes
    by itself and is given the plain form.
    """
    if torch.compiler.is_compiling() and y is None:
        return _evaluate(_centered(z, offset, log_sigma, shrink), log_sigma, shrink)
    return _GaussianLogDensity.apply(z, offset, log_sigma, shrink, y)


class _GaussianLogDensity(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, offset: Tensor, log_sigma: Tensor, shrink: Tensor, y: Tensor | None) -> Any:
        parts = _centered(z, offset, log_sigma, shrink)
        ctx.save_for_backward(z, offset, log_sigma, shrink, y, *parts)
        ctx.set_materialize_grads(False)
        out = _evaluate(parts, log_sigma, shrink)
        return out if y is None else (out, out.gather(1, y[:, None])[:, 0])

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, *grad_own: Tensor | None) -> tuple[Tensor | None, ...]:
        z, offset, log_sigma, shrink, y, *parts = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted: the parts must know where they come from
            parts = _centered(z, offset, log_sigma, shrink)
        z, offset, inverse, precision, square, center = parts
        grad_z = grad_offset = grad_log_sigma = None
        if grad is not None and ctx.needs_input_grad[0]:
            pull = grad @ precision if len(precision) > 1 else grad.sum(1, keepdim=True) * precision
            grad_z = torch.addcmul(shrink * (grad @ (offset * inverse)), pull, z, value=-1)
        if grad_own and grad_own[0] is not None:  # moves theta, not z
            grad = z.new_zeros(len(z), len(offset)) if grad is None else grad
            grad = grad.scatter_add(1, y[:, None], grad_own[0][:, None])
        if grad is not None and (ctx.needs_input_grad[1] or ctx.needs_input_grad[2]):
            count = grad.sum(0)[:, None]
            first = grad.T @ (shrink * z)
            grad_offset = torch.addcmul(inverse * first, offset, shrink.square() * count, value=-1)
            if ctx.needs_input_grad[2]:
                second = grad.T @ square if len(precision) > 1 else (grad.sum(1) @ square)[None]
                mixed = inverse * torch.addcmul(center * grad_offset, offset, first, value=-1)
                spread = torch.addcmul(mixed.sum_to_size(precision.shape), precision, second)
                each = z.shape[1] / log_sigma.shape[1]
                grad_log_sigma = torch.sub(spread, count.sum_to_size(len(precision), 1), alpha=each)
        return grad_z, grad_offset, grad_log_sigma, None, None


def _centered(z: Tensor, offset: Tensor, log_sigma: Tensor, shrink: Tensor) -> tuple[Tensor, ...]:
    """z and offset from the mean of the means, 1 / sigma, its square, z^2 (summed if dimensions share a sigma), that mean."""
    inverse = torch.exp(-log_sigma)
    center = (offset / inverse).detach().mean(0)
    z = z - shrink * center
    square = z.square() if log_sigma.shape[-1] > 1 else z.square().sum(-1, keepdim=True)
    return z, torch.addcmul(offset, inverse, center, value=-1), inverse, inverse.square(), square, center


def _evaluate(parts: tuple[Tensor, ...], log_sigma: Tensor, shrink: Tensor) -> Tensor:
    z, offset, inverse, precision, square, _ = parts
    at_mean = (log_sigma.mean(-1) + 0.5 * LOG_2PI) * -z.shape[1]
    level = at_mean.mean()
    average = precision.detach().mean(0) if len(precision) > 1 else precision[0]
    bias = (at_mean - level) - (0.5 * shrink.square()) * torch.linalg.vecdot(offset, offset)
    out = F.linear(shrink * z, offset * inverse, bias)
    if len(precision) > 1:
        out = out.addmm_(square, (precision - average).T, alpha=-0.5)
    common = square @ average if len(average) > 1 else square[:, 0] * average
    return out.add_(torch.sub(level, common, alpha=0.5)[:, None])  # last, because it is large and the same for every class
