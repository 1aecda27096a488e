"""A softmax layer as Gaussian class priors, on axes or with means of its own, and back [eq:sce]: `from_linear`, `as_linear`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from varclass.core.axes import AxesPrior
from varclass.core.label_prior import LabelPrior
from varclass.core.posterior import DeltaPosterior
from varclass.core.presets import where_means_lie
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
        stacklevel=4,
    )
    return weight + shift, absorbed


def make_head(
    kind: type[VariationalHead], layer: nn.Linear, label_prior: Tensor | str, options: dict[str, Any]
) -> VariationalHead:
    """A head of these options with the posterior of a trained layer: held as it is on axes, or as means that are learned."""
    for name in ("latent_dim", "prior"):
        if name in options:
            raise ValueError(f"from_linear sets {name} itself; got {name}={options[name]!r}")
    weight, bias = class_weights(layer)
    kept = LabelPrior(len(weight), label_prior, weight.dtype).to(weight.device)
    log_label = kept.log_probs().detach()
    if options.get("means") == "simplex":
        raise ValueError("from_linear keeps predictions with means='axes' or 'learned'; got means='simplex'")
    on_axes = where_means_lie(options) == "axes"
    if not on_axes:
        if "separation" in options:
            raise ValueError(f"from_linear places learned means itself; got separation={options['separation']!r}")
        mean, log_label = solve_means(weight, bias, log_label)
        options = {"covariance": "shared", "means": "learned", **options}
    prior: Any = "learned" if kept.learned else log_label.exp()
    head = kind(weight.shape[1], len(weight), label_prior=prior, **options)
    if on_axes:
        load(head.to(weight).projection, weight, bias - log_label)
    else:
        assert isinstance(head.class_prior, GaussianPrior)
        head.class_prior.to(weight).place(mean)
    with torch.no_grad():
        head.label_prior.logits.copy_(log_label)
    return head.to(layer.weight)


@torch.no_grad()
def load(layer: nn.Module, weight: Tensor, bias: Tensor) -> None:
    """Set a layer's weight and bias."""
    assert isinstance(layer, nn.Linear)
    layer.weight.copy_(weight)
    layer.bias.copy_(bias)


@torch.no_grad()
def fold(head: VariationalHead) -> nn.Linear:
    """The nn.Linear with a head's posterior: w_y = mu_y / sigma^2, b_y = log p(y) - |mu_y / sigma|^2 / 2, means centred."""
    prior = head.class_prior
    if not isinstance(prior, GaussianPrior) or not has_linear_log_odds(head):
        kind = f"{prior.covariance} covariance" if isinstance(prior, GaussianPrior) else type(prior).__name__
        raise ValueError(f"as_linear needs a Gaussian prior with shared or unit covariance; got {kind}")
    if not isinstance(head.posterior, DeltaPosterior):
        raise ValueError(f"as_linear needs a delta posterior; got {type(head.posterior).__name__}")
    if isinstance(prior, AxesPrior):  # h / a meets a e_y: the layer itself, with sigma's factor as a temperature
        assert isinstance(head.projection, nn.Linear)
        weight, bias = head.projection.weight.double(), head.projection.bias.double() - (prior.length * prior.origin).double()
        if prior.root.numel():
            precision = prior.root.double() @ prior.root.double()
            weight, bias = precision @ weight, precision @ bias - 0.5 * prior.length.double() ** 2 * (precision.diagonal() - 1)
        return _as_layer(prior.shrink**2 * weight, prior.shrink**2 * bias + head.label_prior.log_probs().double(), prior)
    weight, bias = _of_latents(prior, head.label_prior.log_probs().double())
    if isinstance(head.projection, nn.Linear):
        bias = bias + weight @ head.projection.bias.double()
        weight = weight @ head.projection.weight.double()
    return _as_layer(weight, bias, prior)


@torch.no_grad()
def _of_latents(prior: GaussianPrior, log_label: Tensor) -> tuple[Tensor, Tensor]:
    sigma = torch.exp(prior.log_sigma().double()) * prior.shrink
    mean, precision = sigma * prior.offset.double(), torch.exp(-2 * prior.log_sigma().double())  # from the origin
    center = mean.mean(0)
    weight = precision * (mean - center)
    bias = log_label - 0.5 * (weight * (mean + center)).sum(1)  # |mu|^2 - |c|^2, factored
    return weight, bias - weight @ prior.origin.double()


def has_linear_log_odds(head: VariationalHead) -> bool:
    """Whether what a head predicts from a latent is what a softmax layer predicts from it."""
    return isinstance(head.class_prior, GaussianPrior) and head.class_prior.covariance in ("shared", "unit")


def outputs_of(head: VariationalHead, z: Tensor) -> Tensor:
    """(B, D) -> (B, C): outputs of that layer. On axes they are its own; of learned means, centred over the classes."""
    prior, log_label = head.class_prior, head.log_label()
    if isinstance(prior, AxesPrior):
        return prior.length * z + log_label
    assert isinstance(prior, GaussianPrior)
    weight, bias = _of_latents(prior, log_label.double())
    return (z.double() @ weight.T + bias - bias.mean()).to(z.dtype)


def _as_layer(weight: Tensor, bias: Tensor, prior: GaussianPrior) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], device=weight.device, dtype=prior.log_scale.dtype)
    load(layer, weight, bias - bias.mean())
    return layer
