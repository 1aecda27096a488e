"""One schedule for each data set and encoder, the same for every arm, fixed before the runs.

Full schedules are short ones for a large GPU: the paper's text names none, and its released code trains 90 epochs with steps.
Batches of 512 with SGD at 0.3 were tried first and given up: where variances are learned, training hardly moved.
Tiny-ImageNet's 64 pixels are halved by the stem of ResNet-50, so that a step costs what it does on CIFAR.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from varclass.data.catalogue.medmnist import MEDMNIST
from varclass.training.spec import RunSpec, override

RESIDUAL = {
    "data.validation": 0.04,  # 2,000 of CIFAR's samples, to fit temperatures on
    "training.epochs": 25,
    "training.batch_size": 256,
    "training.optimizer": "sgd",
    "training.lr": 0.2,
    "training.weight_decay": 5e-4,
    "training.schedule": "cosine",
    "training.warmup": 0.15,
    "training.augment": ("crop", "flip"),
    "training.precision": "bf16",
}
DEEP = RESIDUAL | {"training.epochs": 12}  # ResNet-50
SPRINT = RESIDUAL | {
    "encoder.options": {"mirror": True},
    "training.epochs": 50,  # 30 on CIFAR-10: as many as take softmax past 95.5% and 79%
    "training.batch_size": 1024,
    "training.lr": 0.8,
    "training.weight_decay": 1.4e-3,
    "training.warmup": 0.1,
    "training.augment": ("crop", "flip", "cutout"),
}
TINY = DEEP | {"encoder.options": {"halvings": 1}}
FEW = {"training.epochs": 60, "training.batch_size": 64}  # hundreds of samples
FEW_PHOTOGRAPHS = {
    "training.epochs": 150,
    "training.batch_size": 64,
    "training.optimizer": "adamw",
    "training.lr": 1e-3,
    "training.augment": ("crop", "flip"),
}
MEDICAL = {"training.optimizer": "adamw", "training.lr": 1e-3}
SMALL = {"training.epochs": 10, "training.batch_size": 128}  # thousands


def _medical(samples: int) -> dict[str, Any]:
    """A MedMNIST set, whole: as many samples seen whatever its size, from 10 to 100 epochs. Not every kind may be flipped."""
    return MEDICAL | {"training.epochs": min(100, max(10, 500_000 // samples)), "training.batch_size": 64}


SCHEDULES: dict[tuple[str, str], Mapping[str, Any]] = {
    ("cifar10", "wrn-28-10"): RESIDUAL | {"training.epochs": 20},
    ("cifar100", "wrn-28-10"): RESIDUAL,
    ("cifar10", "resnet-18"): RESIDUAL,
    ("cifar100", "resnet-18"): RESIDUAL,
    ("cifar10", "sprint-128"): SPRINT | {"training.epochs": 30},
    ("cifar100", "sprint-128"): SPRINT,
    ("cifar10", "resnet-50"): DEEP,
    ("cifar100", "resnet-50"): DEEP,
    ("tiny_imagenet", "resnet-50"): TINY,
    ("nli", "text"): {"training.epochs": 4, "training.batch_size": 512},
    ("pneumoniamnist", "lenet"): {"training.epochs": 5, "training.batch_size": 64},
    **{(entry.name, "resnet-18"): _medical(entry.samples["train"]) for entry in MEDMNIST},
}


def schedule(data: str, encoder: str, few: bool) -> Mapping[str, Any]:
    """The settings of training for a data set and an encoder; `few` if only some of its samples are trained on."""
    if few:
        return FEW_PHOTOGRAPHS if (data, encoder) == ("cifar10", "resnet-18") else FEW
    return SCHEDULES.get((data, encoder), SMALL)


def make_spec(data: str, encoder: str, changes: Mapping[str, Any], seed: int) -> RunSpec:
    """The spec of a run: the schedule of its data and encoder, and what its arm and experiment change."""
    base = override(RunSpec(seed=seed), {"data.name": data, "encoder.name": encoder})
    few = any(changes.get(name) is not None for name in ("data.limit", "data.per_class"))
    return override(override(base, schedule(data, encoder, few)), changes)
