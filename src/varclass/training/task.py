"""Task: what a model must know of its data, and the splits a run trains and validates on."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from varclass.data.catalogue import CATALOGUE
from varclass.data.loading import load
from varclass.data.sampling import carve, hold_out_fold, subset
from varclass.data.split import Split
from varclass.training.spec import DataSpec


@dataclass(frozen=True)
class Task:
    """The kind and shape of inputs as the model gets them, and the names of the classes: enough to rebuild it without data."""

    kind: str
    shape: tuple[int, ...]  # (channels, height, width), (features,) or (tokens,)
    classes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Task:
        """From JSON."""
        return cls(values["kind"], tuple(values["shape"]), tuple(values["classes"]))


@dataclass(frozen=True)
class TrainingData:
    """What `prepare` found: the task, the split to train on, and the one to validate on, if any."""

    task: Task
    train: Split
    validation: Split | None
    fingerprint: str  # of what is trained on: a run is not continued on other data
    samples: int | None = None  # if others than `train` has: those of the run that is kept, of a fold


def prepare(data: DataSpec, root: str | Path | None, seed: int) -> TrainingData:
    """Read a data set and set a stratified, seeded part of its training split aside, unless a validation split is published.

    A limit counts the samples that are trained on and validated on together; the test split is never touched.
    """
    entry = CATALOGUE.get(data.name)
    wanted = None if entry is None else [split for split in ("train", "validation") if split in entry.files]
    splits = load(data.name, root, splits=wanted, size=data.size)  # the files of other splits need not be there
    train, validation = splits["train"], splits.get("validation")
    _check_labels(train, data.name)
    if data.limit is not None and data.limit < len(train):
        train = subset(train, data.limit, seed)
    if data.per_class is not None:
        train = subset(train, seed=seed, per_class=data.per_class)
    if data.validation == 0:
        validation = None
    elif validation is None:
        if not 0 < round(data.validation * len(train)) < len(train):
            raise ValueError(
                f"{data.name}: expected samples enough to hold out a share of {data.validation:g} for validation; "
                f"got {len(train)}: --validation 0 trains on all of them"
            )
        train, validation = carve(train, data.validation, seed)
    samples = None
    if data.fold is not None and data.cross_fit:
        samples = len(train)
        train, validation = hold_out_fold(train, data.cross_fit, data.fold, seed)
    return TrainingData(task_of(train, data.length), train, validation, fingerprint(train), samples)


def task_of(split: Split, length: int) -> Task:
    """The task of a split; texts become `length` tokens."""
    shape = tuple(split.inputs.shape[1:])
    if split.kind == "text":
        shape = (length,)
    elif split.kind == "image":
        height, width, channels = shape
        shape = (channels, height, width)
    return Task(split.kind, shape, split.classes)


def fingerprint(split: Split) -> str:
    """A digest of labels, shapes and up to 1,000 inputs spread over the split."""
    digest = hashlib.sha256(split.labels.tobytes())
    digest.update(repr((split.kind, split.inputs.shape, split.classes)).encode())
    some = np.linspace(0, len(split) - 1, min(len(split), 1000)).astype(int)
    chosen = np.asarray(split.inputs[some])
    digest.update(repr(chosen.tolist()).encode() if split.kind == "text" else np.ascontiguousarray(chosen).tobytes())
    return digest.hexdigest()


def _check_labels(split: Split, name: str) -> None:
    if len(split.classes) < 2:
        raise ValueError(f"{name}: expected at least two classes to tell apart; got {', '.join(split.classes) or 'none'}")
    if len(split) == 0:
        raise ValueError(f"{name}: expected training samples; got none")
