"""Predictions of a model on a split: log p(z, y) of every sample, and its latents on request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from varclass.classifier import Classifier
from varclass.core.head import average_prediction
from varclass.data.split import Split
from varclass.metrics.predictions import Predictions
from varclass.training.batches import Source, on_device
from varclass.training.model import model_input
from varclass.training.task import Task

BATCH = 512


@dataclass(frozen=True)
class Predictor:
    """A model with what it needs to read a split. `passes` > 0 averages over dropout masks (Monte-Carlo dropout)."""

    model: Classifier
    task: Task
    device: torch.device
    passes: int = 0
    seed: int = 0

    def batches(self, split: Split) -> Iterator[tuple[Tensor, Tensor]]:
        """Inputs as the model takes them, and labels, in the order of the split."""
        source = Source(split, self.task, self.device)
        rows = [np.arange(i, min(i + BATCH, len(split))) for i in range(0, len(split), BATCH)]
        for index, stored in zip(rows, source.read(iter(rows)), strict=True):
            yield model_input(stored), source.labels[on_device(index, self.device)]

    @torch.no_grad()
    def predict(self, split: Split) -> Predictions:
        """log p(z, y) of every sample."""
        found = [self.log_joint(x).cpu().numpy() for x, _ in self.batches(split)]
        log_joint = np.concatenate(found) if found else np.zeros((0, len(self.task.classes)))
        return Predictions(log_joint, split.labels, np.arange(len(split)))

    @torch.no_grad()
    def latents(self, split: Split) -> np.ndarray:
        """z of every sample, (N, D)."""
        found = [self.model.latent(x).cpu().numpy() for x, _ in self.batches(split)]
        return np.concatenate(found) if found else np.zeros((0, self.model.head.latent_dim))

    def log_joint(self, x: Tensor) -> Tensor:
        """log p(z, y), averaged over passes if there are several."""
        if not self.passes:
            return self.model(x)
        torch.manual_seed(self.seed)
        with dropout_on(self.model):
            return average_prediction([self.model(x) for _ in range(self.passes)])


@contextmanager
def dropout_on(model: nn.Module) -> Iterator[None]:
    """Dropout layers as in training, everything else as in evaluation; a ValueError if there are none."""
    layers = [module for module in model.modules() if isinstance(module, nn.modules.dropout._DropoutNd) and module.p > 0]
    if not layers:
        raise ValueError("Monte-Carlo dropout needs a model trained with dropout; got one without: fit it with --dropout 0.2")
    for layer in layers:
        layer.train()
    try:
        yield
    finally:
        for layer in layers:
            layer.eval()
