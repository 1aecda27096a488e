"""Minibatch training of the estimator's model: epochs, early stopping, one line of history for each epoch."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from varclass.classifier import Classifier
from varclass.core.consistency import look_at
from varclass.training.optimization import set_rates
from varclass.training.schedule import lr_factor

TERMS = ("posterior", "prior", "ratio", "discriminator")


@dataclass(frozen=True)
class Arrays:
    """Inputs (N, F), labels (N,) and weights (N,) of mean 1, or None where every sample counts the same."""

    x: Tensor
    y: Tensor
    weight: Tensor | None

    def __getitem__(self, rows: Tensor) -> Arrays:
        return Arrays(self.x[rows], self.y[rows], None if self.weight is None else self.weight[rows])


@dataclass(frozen=True)
class Settings:
    """How to train. `patience` epochs without a gain of `tol` in validation NLL end it."""

    epochs: int
    batch_size: int
    lr: float
    weight_decay: float
    schedule: str
    patience: int
    tol: float


@contextlib.contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Random numbers of torch from a seed of their own; the global generators are afterwards as before."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def make_optimizer(model: Classifier, settings: Settings) -> torch.optim.Optimizer:
    """AdamW over phi, theta and psi, each with its peak rate."""
    groups = model.parameter_groups(settings.lr, settings.weight_decay)
    for group in groups:
        group["peak_lr"] = group["lr"]
    fused = next(model.parameters()).device.type in ("cpu", "cuda")
    return torch.optim.AdamW(groups, fused=fused)


def train(
    model: Classifier,
    data: Arrays,
    held_out: Arrays | None,
    settings: Settings,
    report: Callable[[dict[str, Any]], None],
) -> list[dict[str, Any]]:
    """All epochs, or as many as validation data call for; the best weights by validation NLL stay if there are such data."""
    optimizer, history = make_optimizer(model, settings), []
    best, weights, waited, bar = math.inf, None, 0, math.inf
    for epoch in range(settings.epochs):
        row: dict[str, Any] = {"epoch": epoch + 1, **train_epoch(model, data, optimizer, settings, epoch)}
        if held_out is not None:
            settle(model, held_out, shape=False)
            row |= validate(model, held_out)
            if row["validation_nll"] < best:
                best, weights = row["validation_nll"], copy.deepcopy(model.state_dict())
            waited, bar = (0, best) if best < bar - settings.tol else (waited + 1, bar)
        history.append(row)
        report(row)
        if waited >= settings.patience:
            break
    if weights is not None:
        model.load_state_dict(weights)
    if held_out is not None:
        settle(model, held_out, shape=True)
    return history


def train_epoch(
    model: Classifier, data: Arrays, optimizer: torch.optim.Optimizer, settings: Settings, epoch: int
) -> dict[str, float]:
    """Every sample once, in a random order; the means of the loss and of its terms over the epoch."""
    model.train()
    count = len(data.y)
    # Parts of almost equal size: no last batch of one sample, on which batch norm would fail.
    batches = torch.randperm(count).to(data.y.device).tensor_split(math.ceil(count / settings.batch_size))
    totals: dict[str, Tensor] = {}
    for done, rows in enumerate(batches, start=epoch * len(batches)):
        set_rates(optimizer, lr_factor(settings.schedule, done, settings.epochs * len(batches), warmup=0.0))
        batch = data[rows]
        terms = model.head.terms(model.encoder(batch.x), batch.y, sample_weight=batch.weight)
        # The head's mean is over the batch's weight. Times that weight, a batch counts for what it weighs of all the data.
        scale = 1.0 if batch.weight is None else batch.weight.mean()
        optimizer.zero_grad(set_to_none=True)
        (terms.total * scale).backward()
        optimizer.step()
        for name, value in (("loss", terms.total), *((name, getattr(terms, name)) for name in TERMS)):
            if value is not None:
                totals[name] = totals.get(name, 0.0) + value.detach() * scale * len(rows) / count
    means = {name: float(value) for name, value in totals.items()}
    if not math.isfinite(means["loss"]):
        raise ValueError(f"the loss became {means['loss']} in epoch {epoch + 1}: try a smaller learning_rate_init, or scale X")
    return means


@torch.no_grad()
def settle(model: Classifier, held_out: Arrays, shape: bool) -> None:
    """Sigma, or all of the covariance, by held-out data, if the head's separation is "auto"; all samples count alike."""
    if model.head.settles:
        model.eval()
        features = torch.cat([model.encoder(x) for x in held_out.x.split(4096)])
        model.head.settle_from(look_at(model.head, features, held_out.y, shape=shape))


@torch.no_grad()
def validate(model: Classifier, data: Arrays) -> dict[str, float]:
    """Weighted NLL and accuracy on held-out data."""
    model.eval()
    log_posterior = torch.cat([model.log_posterior(x) for x in data.x.split(4096)])
    weight = torch.ones_like(log_posterior[:, 0]) if data.weight is None else data.weight
    nll = -log_posterior.gather(1, data.y[:, None])[:, 0]
    right = (log_posterior.argmax(1) == data.y).to(weight)
    nll, accuracy = ((weight * value).sum() / weight.sum() for value in (nll, right))
    return {"validation_nll": float(nll), "validation_accuracy": float(accuracy)}
