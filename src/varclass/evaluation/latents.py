"""The latents suite: per class, how far q(z|y) is from p(z|y)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
import torch

from varclass.core.priors import GaussianPrior
from varclass.evaluation.clean import RAW
from varclass.evaluation.scorebook import Row
from varclass.evaluation.subject import Subject
from varclass.metrics.latents import gaussian_kl, moments
from varclass.metrics.normality import normality


def latents(subject: Subject) -> Iterator[Row]:
    """Standardized moments, a goodness-of-fit test and the estimated KL of each class's test latents, and over all classes."""
    prior = subject.model.head.class_prior
    if not isinstance(prior, GaussianPrior):
        raise ValueError(f"standardized moments are those of a Gaussian prior; got {type(prior).__name__}")
    split = subject.test
    known = np.flatnonzero(split.labels >= 0)
    labels = split.labels[known]
    z = torch.from_numpy(subject.predictor.latents(split)[known])
    with torch.no_grad():
        device = prior.offset.device
        u = prior.standardize(z.to(device), torch.from_numpy(labels).to(device)).cpu().double().numpy()
    count = len(split.classes)
    test = asdict(normality(u, labels, count))
    level = test.pop("level")
    table = {**asdict(moments(u, labels, count)), **test, "kl": gaussian_kl(u, labels, count)}
    n = table.pop("count")
    condition = {"split": "test", "dim": u.shape[1], "level": level, "seed": subject.seed}
    for position, name in enumerate(split.classes):
        numbers = {key: float(values[position]) for key, values in table.items()}
        yield Row("latents", RAW, condition | {"class": name}, int(n[position]), numbers)
    held = n > 1
    average = {key: float(np.mean(values[held])) if held.any() else float("nan") for key, values in table.items()}
    yield Row("latents", RAW, condition | {"class": "all"}, int(n.sum()), average)
