"""The adversarial suite: accuracy and calibration under FGSM over a list of magnitudes, PGD beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from varclass.evaluation.attacks import Loss, fgsm, pgd, posterior_loss, training_loss
from varclass.evaluation.clean import RAW, scored
from varclass.evaluation.scorebook import Row
from varclass.evaluation.subject import Subject
from varclass.metrics.predictions import Predictions


def adversarial(subject: Subject) -> Iterator[Row]:
    """Every clean metric under each attack. The gradient is that of -log p(y|x), the same attack on every model."""
    losses = {"posterior": posterior_loss(subject.model)}
    if subject.options.training_loss:
        losses["training"] = training_loss(subject.model)
    for target, loss in losses.items():
        for epsilon in subject.options.epsilons:
            for attack in ("fgsm", "pgd"):
                predictions = attacked(subject, loss, attack, epsilon)
                condition: dict[str, Any] = {"attack": attack, "epsilon": epsilon, "loss": target, "seed": subject.seed}
                condition |= {"steps": subject.options.pgd_steps} if attack == "pgd" else {}
                yield scored("adversarial", RAW, condition, predictions)


def attacked(subject: Subject, loss: Loss, attack: str, epsilon: float) -> Predictions:
    """Predictions on attacked test samples; PGD starts at random points that depend on the run's seed."""
    generator = torch.Generator().manual_seed(subject.seed)
    found, labels = [], []
    for x, y in subject.predictor.batches(subject.some):
        if attack == "fgsm":
            changed = fgsm(loss, x, y, epsilon)
        else:
            start = torch.rand(x.shape, generator=generator).to(x.device) * 2 - 1
            changed = pgd(loss, x, y, epsilon, steps=subject.options.pgd_steps, start=start)
        with torch.no_grad():
            found.append(subject.model(changed).cpu().numpy())
        labels.append(y.cpu().numpy())
    if not found:
        return Predictions.of(np.zeros((0, len(subject.task.classes))))
    return Predictions.of(np.concatenate(found), np.concatenate(labels))
