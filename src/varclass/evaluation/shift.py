"""The shift suite: the test split corrupted in the manner of CIFAR-C, every type and severity, raw and temperature-scaled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from varclass.data.root import data_root
from varclass.data.split import Split
from varclass.evaluation.clean import RAW, TEMPERATURE, repairs, scored
from varclass.evaluation.scorebook import Row
from varclass.evaluation.subject import Subject, some_of
from varclass.training.model import as_tensor


def shift(subject: Subject) -> Iterator[Row]:
    """Every clean metric at each type and severity. The scaling is the one fitted on clean validation data."""
    from varclass.data.corruptions import STANDARD  # noqa: PLC0415

    scaling = repairs(subject).get(TEMPERATURE)
    for name in subject.options.corruptions or STANDARD:
        for severity in subject.options.severities:
            split = corrupted(subject, name, severity)
            predictions = subject.predictor.predict(split)
            if subject.options.keep_log_joints:
                subject.keep(f"{name}-{severity}", predictions)
            condition = {"type": name, "severity": severity, "seed": subject.seed, "published": bool(subject.options.corrupted)}
            yield scored("shift", RAW, condition, predictions)
            if scaling is not None:
                yield scored("shift", TEMPERATURE, condition, scaling.apply(predictions))


def corrupted(subject: Subject, name: str, severity: int) -> Split:
    """The test samples at one type and severity: generated, or the published ones where a folder of them was given."""
    from varclass.data.corruptions import corrupt  # noqa: PLC0415

    if subject.options.corrupted:
        return some_of(published(subject, Path(subject.options.corrupted), name, severity), subject.options.samples)
    split = subject.some
    images = as_tensor(np.asarray(split.inputs), subject.task)
    made = corrupt(images.to(subject.options.device), name, severity, seed=subject.seed).cpu()
    return replace(split, inputs=made.permute(0, 2, 3, 1).contiguous().numpy())


def published(subject: Subject, folder: Path, name: str, severity: int) -> Split:
    """From a folder of CIFAR-10-C or -100-C arrays, or one of Tiny-ImageNet-C's folders."""
    from varclass.data.corruptions import read_cifar_c, read_tiny_imagenet_c  # noqa: PLC0415

    if not (folder / name).is_dir():
        return read_cifar_c(folder, name, severity, subject.task.classes)
    wnids = data_root(subject.options.data_root) / "tiny-imagenet-200" / "wnids.txt"  # the order of its classes
    return read_tiny_imagenet_c(folder, name, severity, wnids, subject.task.classes)
