"""CIFAR's binary version: records of label bytes, then 1024 red, 1024 green and 1024 blue bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from varclass.data.errors import DataError
from varclass.data.files import AGAIN, image_split, read_bytes, read_lines
from varclass.data.split import Split

PIXELS = 3 * 32 * 32


def read_records(path: Path, label_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """(labels (N, label_bytes), images (N, 32, 32, 3)), both uint8."""
    raw, record = read_bytes(path), label_bytes + PIXELS
    if not raw or len(raw) % record:
        raise DataError(f"{path}: expected a multiple of {record} bytes (one record each); got {len(raw)}: {AGAIN}")
    rows = np.frombuffer(raw, np.uint8).reshape(-1, record)
    images = rows[:, label_bytes:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return rows[:, :label_bytes], np.ascontiguousarray(images)


def read_cifar10(paths: tuple[Path, ...], split: str, *, classes: tuple[str, ...]) -> Split:
    """A split from its batch files, one after the other."""
    parts = []
    for path in paths:
        labels, images = read_records(path, 1)
        parts.append(image_split(path, images, labels, classes))  # file by file, so that an error names the right one
    images = np.concatenate([np.asarray(part.inputs) for part in parts])
    return Split("image", images, np.concatenate([part.labels for part in parts]), classes)


def read_cifar100(paths: tuple[Path, ...], split: str) -> Split:
    """A split with its fine labels, from the file of records and the file of the fine labels' names."""
    path, names = paths
    classes = tuple(line.strip() for _, line in read_lines(names))
    if len(set(classes)) != 100:
        raise DataError(f"{names}: expected the names of 100 classes; got {len(set(classes))}: {AGAIN}")
    labels, images = read_records(path, 2)
    if int(labels[:, 0].max()) >= 20:
        raise DataError(f"{path}: expected coarse labels from 0 to 19; got {int(labels[:, 0].max())}: is it CIFAR-100?")
    return image_split(path, images, labels[:, 1:], classes)
