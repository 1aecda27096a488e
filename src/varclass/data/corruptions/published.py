"""The published corrupted sets, where a user has them: CIFAR-10-C, CIFAR-100-C and Tiny-ImageNet-C, as they are unpacked."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from varclass.core.options import check_choice
from varclass.data.corruptions.apply import CORRUPTIONS
from varclass.data.corruptions.constants import SEVERITIES, check_severity
from varclass.data.errors import DataError
from varclass.data.files import AGAIN, checked_labels, read_lines
from varclass.data.images import ImageFiles, settled
from varclass.data.readers.image_folder import list_images
from varclass.data.split import Split

PER_SEVERITY = 10_000
CIFAR_SHAPE = (len(SEVERITIES) * PER_SEVERITY, 32, 32, 3)


def read_cifar_c(folder: str | Path, name: str, severity: int, classes: tuple[str, ...]) -> Split:
    """CIFAR-10-C or CIFAR-100-C at one type and severity: 10,000 images in the order of the clean test set.

    The folder holds <type>.npy with the severities one after the other, and labels.npy; `classes` are those of the clean set,
    `load("cifar10")["test"].classes`.
    """
    check_choice("name", name, CORRUPTIONS)
    check_severity(severity)
    path, labels_path = Path(folder) / f"{name}.npy", Path(folder) / "labels.npy"
    images, labels = _mapped(path), _mapped(labels_path)
    if images.dtype != np.uint8 or images.shape != CIFAR_SHAPE:
        raise DataError(f"{path}: expected uint8 {CIFAR_SHAPE}; got {images.dtype} {images.shape}: {AGAIN}")
    if len(np.atleast_1d(labels)) != len(images):
        raise DataError(f"{labels_path}: expected {len(images)} labels; got shape {labels.shape}: {AGAIN}")
    rows = slice((severity - 1) * PER_SEVERITY, severity * PER_SEVERITY)
    chosen = checked_labels(labels_path, labels[rows], PER_SEVERITY, len(classes))
    return Split("image", np.array(images[rows]), chosen, classes)  # copied: no file stays open behind a split


def read_tiny_imagenet_c(
    folder: str | Path, name: str, severity: int, wnids: str | Path, classes: tuple[str, ...] | None = None
) -> Split:
    """Tiny-ImageNet-C at one type and severity, from <type>/<severity>/<wnid>/*.JPEG.

    Labels are numbered by the lines of Tiny-ImageNet's wnids.txt, as in the clean set; `classes` are the clean set's names,
    and without them the ids stand in. The images are in the order of classes and names, which is not that of the clean set.
    """
    check_choice("name", name, CORRUPTIONS)
    check_severity(severity)
    ids = tuple(line.strip() for _, line in read_lines(_present(Path(wnids))))
    if classes is not None and len(classes) != len(ids):
        raise DataError(f"{wnids}: expected one id for each of {len(classes)} classes; got {len(ids)}")
    place = _present(Path(folder) / name / str(severity))
    missing = [key for key in ids if not (place / key).is_dir()]
    if missing:
        raise DataError(f"{place}: expected a folder for each of {len(ids)} ids; {missing[0]!r} has none: {AGAIN}")
    files, labels = list_images(place, ids)
    return Split("image", settled(ImageFiles(files, (64, 64), 3), f"{name} {severity}"), labels, classes or ids)


def _present(path: Path) -> Path:
    if not path.exists():
        raise DataError(f"{path}: expected the published set there; got nothing: unpack it, or name the folder it is in")
    return path


def _mapped(path: Path) -> np.ndarray:
    """An array of a .npy file, read only where it is looked at; pickled objects are refused."""
    try:
        return np.load(_present(path), mmap_mode="r", allow_pickle=False)
    except DataError:
        raise
    except Exception as error:  # a damaged header raises ValueError, SyntaxError, EOFError or a tokenizer's own
        raise DataError(f"{path}: expected a .npy file of plain numbers; got {error}: {AGAIN}") from error
