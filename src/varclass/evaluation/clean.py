"""The clean suite: the test split as it is, with the usual repairs beside it, conformal sets, and label shift."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from varclass.evaluation.scorebook import Row
from varclass.evaluation.subject import Subject
from varclass.metrics.calibration import reliability
from varclass.metrics.conformal import fit_conformal, set_summary
from varclass.metrics.ensemble import ensemble
from varclass.metrics.label_shift import label_shift
from varclass.metrics.predictions import Predictions
from varclass.metrics.scaling import TemperatureScaling, VectorScaling
from varclass.metrics.summary import score

RAW, TEMPERATURE, VECTOR, DROPOUT = "raw", "temperature", "vector", "mc-dropout"
SHIFT = 10.0  # ratio of the most to the least frequent class under label shift


def clean(subject: Subject) -> Iterator[Row]:
    """Every clean metric, raw and repaired; conformal sets; accuracy under label shift."""
    for method, predictions in methods(subject):
        condition = {"split": "test", "seed": subject.seed}
        yield scored("clean", method, condition, predictions)
    if subject.validation_predictions is not None:
        yield from conformal(subject, subject.validation_predictions)
    yield shifted_labels(subject)


def methods(subject: Subject) -> Iterator[tuple[str, Predictions]]:
    """The test predictions as they are, and by each repair that there is data, or dropout, for."""
    raw = subject.test_predictions
    yield RAW, raw
    for method, scaling in repairs(subject).items():
        yield method, scaling.apply(raw)
    if subject.options.passes:
        yield DROPOUT, subject.keep("test-mc-dropout", subject.dropout_predictor.predict(subject.test))


def repairs(subject: Subject) -> dict[str, TemperatureScaling | VectorScaling]:
    """Temperature and vector scaling, fitted on the validation predictions; none if there are none."""
    held_out = subject.validation_predictions
    if held_out is None or not len(held_out.in_scope()):
        return {}
    return {TEMPERATURE: TemperatureScaling.fit(held_out), VECTOR: VectorScaling.fit(held_out)}


def scored(suite: str, method: str, condition: dict[str, Any], predictions: Predictions) -> Row:
    """A row with every clean metric, and the bins of a reliability diagram."""
    scores = score(predictions)
    n = int(scores.pop("n"))
    return Row(suite, method, condition, n, scores, {"reliability": asdict(reliability(predictions))})


def conformal(subject: Subject, held_out: Predictions) -> Iterator[Row]:
    """Coverage and size of split-conformal sets, calibrated on the validation split."""
    alpha = subject.options.alpha
    for method in ("threshold", "aps"):
        for by_class in (False, True):
            fitted = fit_conformal(held_out, alpha, method, randomized=method == "aps", by_class=by_class, seed=subject.seed)
            found: dict[str, Any] = set_summary(fitted.apply(subject.test_predictions), subject.test_predictions.labels)
            by_each = found.pop("coverage_by_class")
            condition = {
                "sets": method,
                "by_class": by_class,
                "alpha": alpha,
                "calibrated_on": len(held_out),
                "seed": subject.seed,
            }
            yield Row("clean", "conformal", condition, int(found.pop("n")), found, {"coverage_by_class": by_each})


def shifted_labels(subject: Subject) -> Row:
    """Accuracy with the trained, the true and the estimated p(y) on test samples drawn with other class frequencies."""
    predictions = subject.test_predictions.in_scope()
    true = SHIFT ** -np.linspace(0, 1, predictions.num_classes)
    true = true / true.sum()
    rng = np.random.default_rng(subject.seed)
    frequency = np.bincount(predictions.labels, minlength=predictions.num_classes) / max(len(predictions), 1)
    present = frequency > 0
    keep = np.where(present, true / np.where(present, frequency, 1), 0)
    chance = keep[predictions.labels] / max(keep.max(), 1e-300) if len(predictions) else np.zeros(0)
    chosen = predictions.take(np.flatnonzero(rng.random(len(predictions)) < chance))
    trained = subject.model.head.label_prior.probs().double().cpu().numpy()
    drawn = np.where(present, true, 0) + 1e-12
    found: dict[str, Any] = label_shift(chosen, trained / trained.sum(), drawn / drawn.sum())
    estimated = found.pop("estimated_prior")
    condition = {"label_shift": SHIFT, "seed": subject.seed}
    return Row(
        "clean", "label-prior", condition, int(found.pop("n")), found, {"estimated_prior": estimated, "true_prior": true}
    )


def average_runs(runs: Sequence[str | Path]) -> Row:
    """A deep ensemble: the average of several evaluated runs' test predictions."""
    files = [Path(run) / "predictions" / "test.npz" for run in runs]
    missing = [file for file in files if not file.is_file()]
    if missing:
        raise ValueError(
            f"{missing[0]}: expected test predictions; there are none: varclass evaluate {missing[0].parent.parent}"
        )
    predictions = ensemble([Predictions.load(file) for file in files])
    return scored("clean", "ensemble", {"split": "test", "runs": [str(run) for run in runs]}, predictions)
