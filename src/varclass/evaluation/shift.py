"""The shift suite: the test split corrupted in the manner of CIFAR-C, every type and severity, raw and temperature-scaled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from varclass.data.split import Split
from varclass.evaluation.clean import RAW, TEMPERATURE, repairs, scored
from varclass.evaluation.scorebook import Row
from varclass.evaluation.subject import Subject


def shift(subject: Subject) -> Iterator[Row]:
    """Every clean metric at each type and severity. The scaling is the one fitted on clean validation data."""
    from varclass.data.corruptions import STANDARD  # noqa: PLC0415

    if subject.task.kind != "image":
        raise ValueError(f"corruptions are for images; {subject.run.path.name} takes {subject.task.kind}")
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
    from varclass.data.corruptions import corrupt, read_cifar_c  # noqa: PLC0415

    split = subject.some
    if subject.options.corrupted:
        published = read_cifar_c(subject.options.corrupted, name, severity, split.classes)
        return published.take(np.arange(min(len(split), len(published))))
    images = torch.from_numpy(np.ascontiguousarray(np.asarray(split.inputs))).permute(0, 3, 1, 2)
    made = corrupt(images.to(subject.options.device), name, severity, seed=subject.seed).cpu()
    return replace(split, inputs=made.permute(0, 2, 3, 1).contiguous().numpy())
