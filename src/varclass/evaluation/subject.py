"""Subject: a trained run with its model, its splits and its predictions, read or made when they are first asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from varclass.classifier import Classifier
from varclass.core.options import check_count, check_positive
from varclass.data.catalogue import CATALOGUE
from varclass.data.loading import load
from varclass.data.sampling import subset
from varclass.data.split import Split
from varclass.evaluation.predicting import Predictor
from varclass.metrics.predictions import Predictions
from varclass.training.runs import Run
from varclass.training.task import Task, prepare

NOISE = "noise"
BLOCK = 1024  # images scaled at once: a set in files may be larger than memory


@dataclass(frozen=True)
class Options:
    """What to evaluate on; nothing in it changes the run."""

    data_root: str | Path | None = None
    device: str = "cpu"
    corruptions: tuple[str, ...] = ()  # the 15 standard types, if none is named
    severities: tuple[int, ...] = (1, 2, 3, 4, 5)
    corrupted: str | None = None  # folder of the published CIFAR-C arrays, instead of generated ones
    samples: int | None = None  # test samples of the shift, ood and adversarial suites, stratified; all if None
    splits: tuple[str, ...] = ()  # further labelled splits of the run's data, gathered in another way
    outliers: tuple[str, ...] = ()  # data sets that belong to none of the classes
    epsilons: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2)
    pgd_steps: int = 20
    training_loss: bool = False  # attack the whole training loss too
    passes: int = 0  # of Monte-Carlo dropout
    alpha: float = 0.1  # what conformal sets may miss
    keep_log_joints: bool = False  # of corrupted images

    def __post_init__(self) -> None:
        if self.samples is not None:
            check_count("samples", self.samples, 1)
        check_count("pgd_steps", self.pgd_steps, 1)
        check_count("passes", self.passes, 0)
        for epsilon in self.epsilons:
            check_positive("epsilons", epsilon)
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha must lie between 0 and 1; got {self.alpha!r}")


class LowPrecision(nn.Module):
    """An encoder in bf16 where it was trained in it; the head stays in fp32, as in training."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, torch.bfloat16):
            return self.encoder(x)


@dataclass(frozen=True)
class Subject:
    """One run under evaluation."""

    run: Run
    options: Options

    @cached_property
    def model(self) -> Classifier:
        model = self.run.load_model(self.options.device)
        if torch.device(self.options.device).type == "cuda":
            if self.task.kind == "image":
                model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            if self.run.spec.training.precision == "bf16":
                model.encoder = LowPrecision(model.encoder)
        return model

    @cached_property
    def task(self) -> Task:
        return Task.from_dict(self.run.record["task"])

    @cached_property
    def seed(self) -> int:
        return self.run.spec.seed

    @cached_property
    def predictor(self) -> Predictor:
        return Predictor(self.model, self.task, torch.device(self.options.device))

    @cached_property
    def dropout_predictor(self) -> Predictor:
        """The same model, averaged over dropout masks."""
        return replace(self.predictor, passes=self.options.passes, seed=self.seed)

    @cached_property
    def test(self) -> Split:
        return self.own("test")

    @cached_property
    def validation(self) -> Split | None:
        """The samples held out in training; refused if the data is no longer what the run was trained on."""
        data = prepare(self.run.spec.data, self.options.data_root, self.seed)
        if data.fingerprint != self.run.record["fingerprint"]:
            raise ValueError(f"{self.run.spec.data.name} is no longer the data that {self.run.path} was trained on")
        return data.validation

    @cached_property
    def some(self) -> Split:
        """The test samples of the costly suites."""
        return some_of(self.test, self.options.samples)

    @cached_property
    def test_predictions(self) -> Predictions:
        return self.keep("test", self.predictor.predict(self.test))

    @cached_property
    def validation_predictions(self) -> Predictions | None:
        return None if self.validation is None else self.keep("validation", self.predictor.predict(self.validation))

    def own(self, split: str) -> Split:
        """A split of the data the run was trained on."""
        return self._load(self.run.spec.data.name, split)

    def outliers(self, name: str) -> Split:
        """The test split of another data set, its images scaled to this task's shape; or uniform noise, by that name.

        Their own labels are left behind: in this task they belong to no class.
        """
        if name == NOISE:
            return noise(self.task, len(self.test), self.seed)
        split = self._load(name, "test")
        if split.kind != self.task.kind:
            raise ValueError(f"{name} holds inputs of kind {split.kind}; {self.run.path.name} takes {self.task.kind}")
        return replace(as_task(split, self.task), labels=np.full(len(split), -1))

    def keep(self, name: str, predictions: Predictions) -> Predictions:
        """Save predictions beside the run, for every metric to come."""
        folder = self.run.path / "predictions"
        folder.mkdir(exist_ok=True)
        predictions.save(folder / f"{name}.npz")
        return predictions

    def _load(self, name: str, split: str) -> Split:
        spec = self.run.spec.data
        wanted = [split] if name in CATALOGUE else None
        size = spec.size if name == spec.name else None
        held = load(name, self.options.data_root, splits=wanted, size=size)
        if split not in held:
            raise ValueError(f"{name} has no {split} split; it has {', '.join(held)}")
        return held[split]


def some_of(split: Split, count: int | None) -> Split:
    """A stratified part of a split, the same for every run; a split may be in the order of its classes."""
    if count is None or count >= len(split):
        return split
    return subset(split, count)


def noise(task: Task, count: int, seed: int) -> Split:
    """Images whose every pixel is uniform: outliers that need no data."""
    if task.kind != "image":
        raise ValueError(f"outliers called {NOISE!r} are images; the task takes {task.kind}: name a data set")
    channels, height, width = task.shape
    pixels = np.random.default_rng(seed).integers(256, size=(count, height, width, channels), dtype=np.uint8)
    return Split("image", pixels, np.full(count, -1), task.classes)


def as_task(split: Split, task: Task) -> Split:
    """A split whose images have the height, width and channels of a task."""
    if split.kind != "image":
        if split.kind == "vector" and split.inputs.shape[1:] != task.shape:
            raise ValueError(f"expected vectors of shape {task.shape}; got {tuple(split.inputs.shape[1:])}")
        return split
    channels, height, width = task.shape
    if split.inputs.shape[1:] == (height, width, channels):
        return split
    blocks = np.array_split(np.arange(len(split)), -(-len(split) // BLOCK) or 1)
    return replace(split, inputs=np.concatenate([fitted(split.read(rows), task.shape) for rows in blocks]))


def fitted(pixels: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Images (N, H, W, C) brought to another (C, H, W)."""
    channels, height, width = shape
    images = torch.from_numpy(np.require(pixels, requirements=["C", "W"])).permute(0, 3, 1, 2)
    if images.shape[1] != channels:
        images = images.expand(-1, 3, -1, -1) if channels == 3 else images.float().mean(1, keepdim=True).round().to(torch.uint8)
    if images.shape[2:] != (height, width):
        scaled = torch.nn.functional.interpolate(images.float(), (height, width), mode="bilinear", antialias=True)
        images = scaled.round().clamp(0, 255).to(torch.uint8)
    return images.permute(0, 2, 3, 1).contiguous().numpy()
