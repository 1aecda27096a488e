"""SVHN's cropped digits: MATLAB files with X (32, 32, 3, N) and y (N, 1), where the digit 0 has the label 10."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from varclass.data.errors import DataError
from varclass.data.files import AGAIN, image_split
from varclass.data.readers.matlab import read_matlab
from varclass.data.split import Split


def read_svhn(paths: tuple[Path, ...], split: str, *, classes: tuple[str, ...]) -> Split:
    """A split from its .mat file."""
    (path,) = paths
    held = read_matlab(path)
    if not {"X", "y"} <= set(held):
        raise DataError(f"{path}: expected the variables X and y; got {', '.join(sorted(held)) or 'none'}: {AGAIN}")
    images, labels = held["X"], held["y"]
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[:3] != (32, 32, 3):
        raise DataError(f"{path}: expected X to be uint8 (32, 32, 3, N); got {images.dtype} {images.shape}: {AGAIN}")
    if labels.shape != (images.shape[3], 1):
        raise DataError(f"{path}: expected y to be ({images.shape[3]}, 1), one label per image; got {labels.shape}: {AGAIN}")
    if not np.isin(labels, np.arange(1, 11)).all():
        raise DataError(f"{path}: expected labels from 1 to 10; got {labels.min()} to {labels.max()}")
    return image_split(path, np.ascontiguousarray(images.transpose(3, 0, 1, 2)), labels.astype(np.int64) % 10, classes)
