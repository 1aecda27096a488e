"""Batches whose every random choice is a function of the seed and the step: nothing to save, and nothing to lose in a crash."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from varclass.data.images import ImageFiles
from varclass.data.split import Split
from varclass.training.augmentation import CHANCES, augment, mix, smooth
from varclass.training.model import as_tensor, model_input
from varclass.training.spec import TrainingSpec
from varclass.training.task import Task

DEVICE_SHARE = 0.3  # of a GPU's free memory that a data set may take; a larger one stays in host memory
READERS = min(4, os.cpu_count() or 1)  # worker processes that decode image files


def seed_everything(*key: int) -> None:
    """Seed every random number generator with a digest of these numbers."""
    state = np.random.SeedSequence(key).generate_state(2)
    torch.manual_seed(int(state[0]) << 32 | int(state[1]))
    np.random.seed(int(state[0]))  # noqa: NPY002 (a user's encoder may use it)
    random.seed(int(state[1]))


@dataclass(frozen=True)
class Plan:
    """Which samples each step takes: a new random order every epoch, the same for every number of processes."""

    samples: int
    batch_size: int  # of a step, over all processes
    epochs: int
    seed: int

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches; what is left over of one epoch's order has its chance in the next."""
        return max(1, self.samples // self.batch_size)

    @property
    def steps(self) -> int:
        return self.epochs * self.steps_per_epoch

    def order(self, epoch: int) -> np.ndarray:
        """The order of one epoch."""
        return np.random.default_rng((self.seed, epoch)).permutation(self.samples)

    def batches(self, epoch: int, first: int = 0) -> Iterator[np.ndarray]:
        """The samples of each step of an epoch, from its `first` step on."""
        order = self.order(epoch)
        for step in range(first, self.steps_per_epoch):
            yield order[step * self.batch_size : (step + 1) * self.batch_size]


class Source:
    """A split as tensors: on the device if it fits, in host memory if not, or read from its files as they are needed."""

    def __init__(self, split: Split, task: Task, device: torch.device) -> None:
        self.files = split.inputs if isinstance(split.inputs, ImageFiles) else None
        self.task, self.device = task, device
        self.labels = torch.from_numpy(split.labels).to(device)
        if self.files is None:
            stored = as_tensor(np.asarray(split.inputs), task)
            self.stored = stored.to(device) if _fits(stored, device) else stored

    def __len__(self) -> int:
        return len(self.labels)

    def read(self, batches: Iterator[np.ndarray]) -> Iterator[Tensor]:
        """The stored inputs of each batch, on the device."""
        if self.files is None:
            for index in batches:
                yield self.stored[on_device(index, self.stored.device)].to(self.device, non_blocking=True)
            return
        loader = torch.utils.data.DataLoader(
            _Decoded(self.files, self.task),
            batch_size=None,
            sampler=list(batches),
            num_workers=READERS,
            pin_memory=self.device.type == "cuda",
        )
        for stored in loader:
            yield stored.to(self.device, non_blocking=True)


def on_device(index: np.ndarray, device: torch.device) -> Tensor:
    """Row numbers where the data is. A GPU is not waited for: between two steps it would have nothing to do."""
    rows = torch.from_numpy(index)
    return rows.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else rows.to(device)


class _Decoded(torch.utils.data.Dataset[Tensor]):
    def __init__(self, files: ImageFiles, task: Task) -> None:
        self.files, self.task = files, task

    def __getitem__(self, index: np.ndarray) -> Tensor:
        return as_tensor(np.asarray(self.files[index]), self.task)


@dataclass(frozen=True)
class Share:
    """The part of each step's batch that one process computes: parts of equal size, in order of rank."""

    rank: int = 0
    processes: int = 1

    def of(self, index: np.ndarray) -> np.ndarray:
        """This process's rows."""
        return index[self.rows(len(index))]

    def rows(self, count: int) -> slice:
        """Where they lie in the whole."""
        each = count // self.processes
        return slice(self.rank * each, (self.rank + 1) * each)


def transform(
    stored: Tensor, y: Tensor, chance: Tensor, share: float, classes: int, spec: TrainingSpec
) -> tuple[Tensor, Tensor]:
    """Stored inputs as the model takes them: augmented, smoothed, mixed. Images come out channels last on a GPU."""
    x = model_input(augment(stored, spec.augment, chance) if spec.augment else stored)
    if spec.label_smoothing or spec.mixup:
        y = smooth(y, classes, spec.label_smoothing)
    if spec.mixup:
        x, y = mix(x, y, share)
    if x.dim() == 4 and x.is_cuda:
        x = x.contiguous(memory_format=torch.channels_last)
    return x, y


def chances(count: int, device: torch.device) -> Tensor:
    """Uniform numbers for the augmentation of `count` samples."""
    return torch.rand(count, CHANCES, device=device)


def _fits(stored: Tensor, device: torch.device) -> bool:
    if device.type != "cuda":
        return True
    return stored.nbytes < DEVICE_SHARE * torch.cuda.mem_get_info(device)[0]
