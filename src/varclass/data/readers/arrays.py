"""Arrays in .npz files: MedMNIST's, and a user's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from varclass.data.errors import DataError
from varclass.data.files import AGAIN, checked_labels, image_split, read_npz
from varclass.data.split import Split

OWN = {"train": "train", "validation": "val", "test": "test"}  # split -> the end of the names of its arrays


def read_medmnist(paths: tuple[Path, ...], split: str, *, classes: tuple[str, ...]) -> Split:
    """A split from MedMNIST's <split>_images and <split>_labels."""
    (path,) = paths
    arrays, part = read_npz(path), OWN[split]
    images, labels = f"{part}_images", f"{part}_labels"
    if not {images, labels} <= set(arrays):
        raise DataError(f"{path}: expected arrays {images} and {labels}; got {', '.join(sorted(arrays))}: {AGAIN}")
    return image_split(path, arrays[images], arrays[labels], classes)


def read_own_arrays(path: Path) -> dict[str, Split]:
    """A user's x_train, y_train, x_test, y_test and, if they are there, x_val, y_val.

    Inputs are floats (N, features) or uint8 images (N, height, width[, channels]); labels are whole numbers from 0, or names.
    """
    arrays = read_npz(path)
    for part in ("train", "test"):
        if not {f"x_{part}", f"y_{part}"} <= set(arrays):
            raise DataError(
                f"{path}: expected arrays x_train, y_train, x_test and y_test (x_val, y_val); got {', '.join(sorted(arrays))}"
            )
    if ("x_val" in arrays) != ("y_val" in arrays):
        raise DataError(f"{path}: expected x_val and y_val, or neither; got one of them")
    classes = own_classes(path, arrays["y_train"])
    splits = {split: _own(path, arrays, part, classes) for split, part in OWN.items() if f"x_{part}" in arrays}
    shapes = {split: held.inputs.shape[1:] for split, held in splits.items()}
    if len(set(shapes.values())) > 1:
        raise DataError(f"{path}: expected inputs of one shape in all splits; got {shapes}")
    return splits


def own_classes(path: Path, labels: np.ndarray) -> tuple[str, ...]:
    """Names of the classes: the strings there are, sorted, or the numbers from 0 to the largest."""
    if labels.dtype.kind == "U":
        return tuple(np.unique(labels).tolist())
    if labels.dtype.kind not in "iu" or labels.size == 0 or int(labels.min()) < 0:
        raise DataError(f"{path}: expected y_train to be whole numbers from 0, or names; got {labels.dtype} {labels.shape}")
    present = np.unique(labels)
    if int(present[-1]) != len(present) - 1:  # counting from 1, say: the class 0 would be one that is never seen
        raise DataError(
            f"{path}: expected y_train to number {len(present)} classes from 0; got labels up to {int(present[-1])}"
        )
    return tuple(str(number) for number in present.tolist())


def _own(path: Path, arrays: dict[str, np.ndarray], part: str, classes: tuple[str, ...]) -> Split:
    x, y = arrays[f"x_{part}"], arrays[f"y_{part}"]
    if y.dtype.kind == "U":
        unknown = sorted(set(y.ravel().tolist()) - set(classes))
        if unknown:
            raise DataError(f"{path}: expected y_{part} to name classes of y_train; {unknown[0]!r} is none of them")
        y = np.searchsorted(np.asarray(classes), y)
    if x.dtype.kind != "f":
        return image_split(path, x, y, classes)
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is refused below
        small = x.astype(np.float32)
    if x.ndim != 2 or not np.isfinite(small).all():
        raise DataError(
            f"{path}: expected x_{part} to be finite floats (N, features), or uint8 images; got {x.dtype} {x.shape}"
        )
    return Split("vector", small, checked_labels(path, y, len(x), len(classes)), classes)
