"""Arrays in .npz files: MedMNIST's, and a user's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from varclass.data.errors import DataError
from varclass.data.files import AGAIN, checked_images, checked_labels, checked_vectors, image_split, read_npz
from varclass.data.sampling import set_test_aside
from varclass.data.split import Split

OWN = {"train": "train", "validation": "val", "test": "test"}  # split -> the end of the names of its arrays
NUMBERING = "number the classes from 0, or make names of them with .astype(str)"


def read_medmnist(paths: tuple[Path, ...], split: str, *, classes: tuple[str, ...]) -> Split:
    """A split from MedMNIST's <split>_images and <split>_labels."""
    (path,) = paths
    arrays, part = read_npz(path), OWN[split]
    images, labels = f"{part}_images", f"{part}_labels"
    if not {images, labels} <= set(arrays):
        raise DataError(f"{path}: expected arrays {images} and {labels}; got {', '.join(sorted(arrays))}: {AGAIN}")
    return image_split(path, arrays[images], arrays[labels], classes)


def read_own_arrays(path: Path) -> dict[str, Split]:
    """A user's x_train, y_train (or x, y) and, if they are there, x_val, y_val, x_test, y_test; a fifth is the test if not.

    Inputs are floats (N, features) or uint8 images (N, height, width[, channels]); labels are whole numbers from 0, or names.
    """
    arrays = read_npz(path)
    parts = {split: (f"x_{part}", f"y_{part}") for split, part in OWN.items()}
    if not set(parts["train"]) & set(arrays):
        parts["train"] = ("x", "y")
    if not set(parts["train"]) <= set(arrays):
        wanted = "x_train and y_train (or x and y), and optionally x_val, y_val, x_test, y_test"
        raise DataError(f"{path}: expected arrays {wanted}; got {', '.join(sorted(arrays)) or 'none'}")
    for x, y in parts.values():
        if (x in arrays) != (y in arrays):
            raise DataError(f"{path}: expected {x} and {y}, or neither; got one of them")
    classes = own_classes(path, arrays, parts["train"][1])
    splits = {split: _own(path, arrays, x, y, classes) for split, (x, y) in parts.items() if x in arrays}
    shapes = {split: held.inputs.shape[1:] for split, held in splits.items()}
    if len(set(shapes.values())) > 1:
        raise DataError(f"{path}: expected inputs of one shape in all splits; got {shapes}")
    if "test" not in splits:
        splits["train"], splits["test"] = set_test_aside(path, splits["train"])
    return splits


def own_classes(path: Path, arrays: dict[str, np.ndarray], name: str) -> tuple[str, ...]:
    """Names of the classes in the labels of that name: the strings there are, sorted, or the numbers from 0 to the largest."""
    labels = arrays[name]
    if labels.dtype.kind == "U":
        return tuple(np.unique(labels).tolist())
    wanted = f"{path}: expected {name} to be whole numbers from 0, or names"
    if labels.dtype.kind not in "iu" or labels.size == 0:
        raise DataError(f"{wanted}; got {labels.dtype} {labels.shape}: convert it with .astype(int) or .astype(str)")
    present = np.unique(labels)
    if int(present[0]) < 0:
        raise DataError(f"{wanted}; got {int(present[0])}: {NUMBERING}")
    if int(present[-1]) != len(present) - 1:  # counting from 1, say: the class 0 would be one that is never seen
        came = f"got labels up to {int(present[-1])}: {NUMBERING}"
        raise DataError(f"{path}: expected {name} to number {len(present)} classes from 0; {came}")
    return tuple(str(number) for number in present.tolist())


def _own(path: Path, arrays: dict[str, np.ndarray], x: str, y: str, classes: tuple[str, ...]) -> Split:
    kind, inputs = _own_inputs(f"{path}: {x}", arrays[x])
    labels = arrays[y]
    if labels.ndim and len(labels) != len(inputs):
        came = f"got {len(labels)} labels and {len(inputs)} inputs"
        raise DataError(f"{path}: expected as many labels in {y} as inputs in {x}; {came}: make them as long as each other")
    if labels.dtype.kind == "U":
        unknown = sorted(set(labels.ravel().tolist()) - set(classes))
        if unknown:
            raise DataError(f"{path}: expected {y} to name classes of the training labels; {unknown[0]!r} is none of them")
        labels = np.searchsorted(np.asarray(classes), labels)
    return Split(kind, inputs, checked_labels(f"{path}: {y}", labels, len(inputs), len(classes)), classes)


def _own_inputs(where: str, inputs: np.ndarray) -> tuple[str, np.ndarray]:
    if inputs.dtype.kind == "f" and inputs.ndim == 2:
        return "vector", checked_vectors(where, inputs)
    if inputs.dtype == np.uint8 and inputs.ndim != 2:
        return "image", checked_images(where, inputs)
    wanted = "float vectors (N, features) or uint8 images (N, height, width[, channels])"
    hint = ": convert vectors with .astype('float32')" if inputs.ndim == 2 else ""
    raise DataError(f"{where}: expected {wanted}; got {inputs.dtype} {inputs.shape}{hint}")
