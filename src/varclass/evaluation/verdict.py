"""What a trained run says about new inputs: class, probability, log p(z) with a typicality p-value, conformal set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from varclass.data.files import checked_images, checked_vectors, read_text
from varclass.data.images import SUFFIXES, ImageFiles
from varclass.data.split import Split
from varclass.evaluation.predicting import Predictor
from varclass.evaluation.subject import as_task
from varclass.metrics.conformal import fit_conformal
from varclass.metrics.latents import typicality
from varclass.metrics.predictions import Predictions
from varclass.training.runs import Run
from varclass.training.task import Task


@dataclass(frozen=True)
class Verdict:
    """One input. `typicality` and `conformal_set` are None where the run has no validation predictions beside it."""

    input: str
    predicted: str
    probability: float
    log_evidence: float
    typicality: float | None
    conformal_set: tuple[str, ...] | None


def judge(run: Run, files: Sequence[Path], alpha: float = 0.1, device: str = "cpu") -> list[Verdict]:
    """Predict files: images, .npy or .npz arrays (their array "x") as fit takes them, .txt with a text on each line."""
    task = Task.from_dict(run.record["task"])
    names, split = read_inputs(files, task)
    predictions = Predictor(run.load_model(device), task, torch.device(device)).predict(split)
    held = run.path / "predictions" / "validation.npz"
    p_values: Sequence[float | None] = [None] * len(names)
    sets: Sequence[tuple[str, ...] | None] = [None] * len(names)
    if held.exists():
        reference = Predictions.load(held)
        p_values = typicality(predictions.log_evidence, reference.log_evidence).tolist()
        members = fit_conformal(reference, alpha).apply(predictions)
        sets = [tuple(np.array(task.classes, dtype=object)[row]) for row in members]
    return [
        Verdict(name, task.classes[predicted], float(confidence), float(evidence), p_value, held_set)
        for name, predicted, confidence, evidence, p_value, held_set in zip(
            names, predictions.predicted, predictions.confidence, predictions.log_evidence, p_values, sets, strict=True
        )
    ]


def read_inputs(files: Sequence[Path], task: Task) -> tuple[list[str], Split]:
    """Names of the inputs in files, and the inputs as a split without labels."""
    names, parts = [], []
    for file in files:
        part = _read(file, task)
        names += [str(file)] if file.suffix.lower() in SUFFIXES else [f"{file}:{row}" for row in range(len(part))]
        parts.append(part)
    if not parts:
        raise ValueError("predict needs at least one file; got none")
    inputs = np.concatenate(parts)
    return names, Split(task.kind, inputs, np.full(len(inputs), -1), task.classes)


def _read(file: Path, task: Task) -> np.ndarray:
    suffix = file.suffix.lower()
    if not file.is_file():
        raise ValueError(f"{file}: expected a file; there is none")
    if suffix in SUFFIXES and task.kind == "image":
        channels, height, width = task.shape
        return np.asarray(ImageFiles([file], (height, width), channels, resize=True))
    if suffix == ".txt" and task.kind == "text":
        return np.array(read_text(file).splitlines(), dtype=object)
    if suffix in (".npy", ".npz") and task.kind != "text":
        return _as_inputs(file, _read_array(file), task)
    wanted = {"image": "images, .npy or .npz", "vector": ".npy or .npz", "text": ".txt with a text on each line"}[task.kind]
    raise ValueError(f"{file}: this run takes {task.kind} inputs: expected {wanted}; got {suffix or 'no suffix'}")


def _read_array(file: Path) -> np.ndarray:
    try:
        held = np.load(file, allow_pickle=False)
        if isinstance(held, np.ndarray):
            return held
        with held:
            return held["x"]
    except KeyError:
        raise ValueError(f"{file}: expected an array called x in it; got {', '.join(held.files) or 'none'}") from None
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{file}: expected a numpy array without pickles; got {error}") from None


def _as_inputs(file: Path, array: np.ndarray, task: Task) -> np.ndarray:
    if task.kind == "vector":
        if array.ndim != 2 or array.shape[1:] != task.shape or array.dtype.kind not in "fiu":
            raise ValueError(f"{file}: expected numbers of shape (N, {task.shape[0]}); got {array.dtype} {array.shape}")
        return checked_vectors(file, array)
    images = checked_images(file, array)
    return np.asarray(as_task(Split("image", images, np.full(len(images), -1), task.classes), task).inputs)
