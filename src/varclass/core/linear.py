"""A softmax layer as Gaussian class priors, and back [eq:sce]: the mathematics of `from_linear` and `as_linear`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from varclass.core.posterior import DeltaPosterior
from varclass.core.priors import GaussianPrior

if TYPE_CHECKING:
    from varclass.core.head import VariationalHead

SOLVED = 1e-6  # nats of p(y) that a shift may leave unexplained and still count as a solution
LONGEST_SHIFT = 32.0  # sigma; a log joint holds |z - mu|^2 / 2, whose float32 digits a longer shift would use up


def class_weights(layer: nn.Linear) -> tuple[Tensor, Tensor]:
    """W (C, D) and b (C,) of a layer in float64; one output, a sigmoid's, becomes the log-odds of two classes."""
    if not isinstance(layer, nn.Linear):
        raise TypeError(f"from_linear takes an nn.Linear; got {type(layer).__name__}")
    weight = layer.weight.detach().double()
    bias = weight.new_zeros(len(weight)) if layer.bias is None else layer.bias.detach().double()
    if not bool(torch.isfinite(weight).all() and torch.isfinite(bias).all()):
        raise ValueError("the layer's weights must be finite; got NaN or infinity")
    if len(weight) == 1:
        return torch.cat([-weight / 2, weight / 2]), torch.cat([-bias / 2, bias / 2])
    return weight, bias


def solve_means(weight: Tensor, bias: Tensor, log_label: Tensor) -> tuple[Tensor, Tensor]:
    """Means mu_y = w_y + v and log p(y) under which unit Gaussians have the posterior softmax(W z + b).

    log p(y|z) needs  mu_y.z - |mu_y|^2 / 2 + log p(y) = w_y.z + b_y + const(z).  With mu_y = w_y + v that is
    w_y.v = log p(y) - b_y - |w_y|^2 / 2 + const:  C - 1 equations for D unknowns, solved by least squares along as many
    singular directions as a shift of sensible length allows. What they leave over goes into p(y), and a warning says so.
    """
    goal = log_label - bias - 0.5 * weight.square().sum(1)
    differences, goal = weight - weight.mean(0), goal - goal.mean()
    u, s, vt = torch.linalg.svd(differences, full_matrices=False)
    along = torch.where(s > torch.finfo(s.dtype).eps * len(s) * s.max(), u.T @ goal / s, 0.0)
    shift = vt.T @ torch.where(along.square().cumsum(0) <= LONGEST_SHIFT**2, along, 0.0)
    left = differences @ shift - goal
    if float(left.abs().max()) <= SOLVED:
        return weight + shift, log_label
    absorbed = torch.log_softmax(log_label + left, dim=0)
    warnings.warn(
        f"no common shift of the means gives this layer the label prior asked for; p(y) absorbs the remainder and now "
        f"spans {float(absorbed.max() - absorbed.min()):.3g} nats",
        stacklevel=3,
    )
    return weight + shift, absorbed


@torch.no_grad()
def fold(head: VariationalHead) -> nn.Linear:
    """The nn.Linear with a head's posterior: w_y = mu_y / sigma^2, b_y = log p(y) - |mu_y / sigma|^2 / 2, means centred."""
    prior = head.class_prior
    if not isinstance(prior, GaussianPrior) or prior.covariance not in ("shared", "unit"):
        kind = f"{prior.covariance} covariance" if isinstance(prior, GaussianPrior) else type(prior).__name__
        raise ValueError(f"as_linear needs a Gaussian prior with shared or unit covariance; got {kind}")
    if not isinstance(head.posterior, DeltaPosterior):
        raise ValueError(f"as_linear needs a delta posterior; got {type(head.posterior).__name__}")
    sigma = torch.exp(prior.log_sigma().double()) / prior.scale_factor
    mean, precision = sigma * prior.offset.double(), torch.exp(-2 * prior.log_sigma().double())  # from the origin
    center = mean.mean(0)
    weight = precision * (mean - center)
    bias = head.label_prior.log_probs().double() - 0.5 * (weight * (mean + center)).sum(1)  # |mu|^2 - |c|^2, factored
    bias = bias - weight @ prior.origin.double()
    if isinstance(head.projection, nn.Linear):
        bias = bias + weight @ head.projection.bias.double()
        weight = weight @ head.projection.weight.double()
    layer = nn.Linear(head.in_features, head.num_classes, device=weight.device, dtype=prior.offset.dtype)
    layer.weight.copy_(weight)
    layer.bias.copy_(bias - bias.mean())
    return layer
