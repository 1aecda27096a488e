"""Optimizers over the groups phi, theta, pi, psi, clipping of each group by itself, and the average of the weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from varclass.classifier import Classifier


def sgd(groups: list[dict[str, Any]], momentum: float) -> torch.optim.Optimizer:
    """SGD with Nesterov's momentum."""
    return torch.optim.SGD(groups, momentum=momentum, nesterov=momentum > 0)


def adamw(groups: list[dict[str, Any]], momentum: float) -> torch.optim.Optimizer:
    """AdamW; its first beta is the momentum."""
    return torch.optim.AdamW(groups, betas=(momentum, 0.999))


OPTIMIZERS: dict[str, Callable[[list[dict[str, Any]], float], torch.optim.Optimizer]] = {"sgd": sgd, "adamw": adamw}


def make_optimizer(model: Classifier, training: Any) -> torch.optim.Optimizer:
    """The optimizer of a `TrainingSpec`; each group keeps its peak rate as "peak_lr"."""
    groups = model.parameter_groups(
        training.lr,
        training.weight_decay,
        lr_multipliers=training.lr_multipliers,
        weight_decays=training.weight_decays,
    )
    for group in groups:
        group["peak_lr"] = group["lr"]
    return OPTIMIZERS[training.optimizer](groups, training.momentum)


def set_rates(optimizer: torch.optim.Optimizer, factor: float) -> dict[str, float]:
    """Each group's rate at this factor of its peak, set and returned by the group's name."""
    for group in optimizer.param_groups:
        group["lr"] = group["peak_lr"] * factor
    return {group["name"]: group["lr"] for group in optimizer.param_groups}


def clip_groups(optimizer: torch.optim.Optimizer, limit: float) -> None:
    """Scale down the gradient of each group whose norm is above the limit: a wild adversary does not slow the encoder."""
    for group in optimizer.param_groups:
        nn.utils.clip_grad_norm_(group["params"], limit)


class Average:
    """The exponential moving average of a model's parameters; buffers, such as batch statistics, are the latest."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.parameters = {name: value.detach().clone() for name, value in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module, done: int) -> None:
        """One step; the first ones count more, so that the start does not linger."""
        decay = min(self.decay, (1 + done) / (10 + done))
        latest = [value.detach() for _, value in model.named_parameters()]
        torch._foreach_lerp_(list(self.parameters.values()), latest, 1 - decay)

    def swapped_into(self, model: nn.Module) -> _Swap:
        """A context in which the model has the averaged weights."""
        return _Swap(model.named_parameters(), self.parameters)


class _Swap:
    def __init__(self, named: Iterable[tuple[str, Tensor]], averaged: dict[str, Tensor]) -> None:
        self.pairs = [(value, averaged[name]) for name, value in named]

    @torch.no_grad()
    def __enter__(self) -> None:
        self.kept = [value.detach().clone() for value, _ in self.pairs]
        for value, average in self.pairs:
            value.copy_(average)

    @torch.no_grad()
    def __exit__(self, *raised: object) -> None:
        for (value, _), kept in zip(self.pairs, self.kept, strict=True):
            value.copy_(kept)
