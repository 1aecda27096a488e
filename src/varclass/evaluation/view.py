"""view.json beside a run: some test samples in two dimensions with the class priors around them, and the worst mistakes.

points       x, y of each sample; label, predicted, confidence, log_evidence, index in the test split
projection   "direct" where D = 2, else "pca" of the class means and latents
priors       class by class, the mean and 2x2 covariance of p(z|y) in the same plane
mistakes     positions in the test split of the most confident errors
samples      by position: a small PNG as base64, or a text
"""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np

from varclass.core.priors import GaussianPrior
from varclass.data.split import Split
from varclass.evaluation.scorebook import plain
from varclass.evaluation.subject import Subject
from varclass.training.files import write_json

POINTS, MISTAKES = 1000, 24
LONGEST_TEXT = 300


def write_view(subject: Subject) -> Path:
    """What a page needs to show the latents of a run and what it got wrong."""
    split, predictions = subject.test, subject.test_predictions
    rng = np.random.default_rng(subject.seed)
    shown = np.sort(rng.permutation(len(split))[:POINTS])
    z = subject.predictor.latents(split.take(shown)).astype(np.float64)
    prior = subject.model.head.class_prior
    mean = prior.mean.detach().cpu().double().numpy() if isinstance(prior, GaussianPrior) else np.zeros((0, z.shape[1]))
    origin, axes = plane(z, mean)
    wrong = np.flatnonzero(~predictions.correct & (predictions.labels >= 0))
    mistakes = wrong[np.argsort(-predictions.confidence[wrong], kind="stable")][:MISTAKES]
    view: dict[str, Any] = {
        "projection": "direct" if z.shape[1] == 2 else "pca",
        "classes": split.classes,
        "points": (z - origin) @ axes.T,
        "index": shown,
        "label": split.labels[shown],
        "predicted": predictions.predicted[shown],
        "confidence": predictions.confidence[shown],
        "log_evidence": predictions.log_evidence[shown],
        "priors": projected_priors(prior, mean, origin, axes),
        "mistakes": [
            {
                "index": i,
                "label": predictions.labels[i],
                "predicted": predictions.predicted[i],
                "confidence": predictions.confidence[i],
                "log_evidence": predictions.log_evidence[i],
            }
            for i in mistakes
        ],
        "samples": {int(i): shown_as(split, int(i)) for i in np.union1d(shown, mistakes)},
    }
    path = subject.run.path / "view.json"
    write_json(path, plain(view))
    return path


def plane(z: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An origin (D,) and two orthonormal axes (2, D): the identity where D = 2, else the cloud's principal axes."""
    dim = z.shape[1]
    if dim == 2:
        return np.zeros(2), np.eye(2)
    cloud = np.concatenate([z, mean]) if len(z) or len(mean) else np.zeros((1, dim))
    origin = cloud.mean(0)
    _, _, axes = np.linalg.svd(cloud - origin, full_matrices=False)
    padded = np.zeros((2, dim))
    padded[: min(2, len(axes))] = axes[:2]
    sign = np.sign(padded[np.arange(2), np.abs(padded).argmax(1)])  # an SVD leaves it open
    return origin, padded * np.where(sign == 0, 1, sign)[:, None]


def projected_priors(prior: Any, mean: np.ndarray, origin: np.ndarray, axes: np.ndarray) -> list[dict[str, Any]]:
    """Mean and covariance of each class's prior in the plane."""
    if not len(mean):
        return []
    variance = (2 * prior.log_sigma().detach()).exp().expand(*mean.shape).cpu().double().numpy()
    return [{"mean": axes @ (m - origin), "covariance": (axes * v) @ axes.T} for m, v in zip(mean, variance, strict=True)]


def shown_as(split: Split, position: int) -> str:
    """A sample as a page can show it: "data:image/png;base64,...", the beginning of a text, or some numbers."""
    value = split.read(np.array([position]))[0]
    if split.kind == "image":
        from PIL import Image  # noqa: PLC0415

        pixels = value[..., 0] if value.shape[-1] == 1 else value
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "PNG", optimize=True)
        return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
    if split.kind == "text":
        text = value if isinstance(value, str) else " | ".join(value)
        return text[:LONGEST_TEXT]
    return ", ".join(f"{each:.3g}" for each in value[:8]) + (", ..." if len(value) > 8 else "")
