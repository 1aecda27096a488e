"""Folders of images, one folder per class: a user's own, and Tiny-ImageNet's official layout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from varclass.data.errors import DataError
from varclass.data.files import read_lines
from varclass.data.images import SUFFIXES, ImageFiles, settled, survey
from varclass.data.sampling import set_test_aside
from varclass.data.split import Split

PARTS = {"train": ("train",), "validation": ("validation", "val"), "test": ("test",)}


def read_own_folder(root: Path, size: int | tuple[int, int] | None = None) -> dict[str, Split]:
    """A user's root/train/<class>/*, root/test/<class>/* and, if it is there, root/validation/<class>/*.

    Without a train folder root/<class>/* is all there is, and a seeded, stratified fifth of it becomes the test split.
    Images of several sizes need a `size` to be brought to.
    """
    found = {split: next((root / name for name in names if (root / name).is_dir()), None) for split, names in PARTS.items()}
    parts = {split: folder for split, folder in found.items() if folder}
    if "train" not in parts and parts:
        raise DataError(f"{root}: expected a folder train beside {', '.join(parts)}; got none")
    if "train" in parts and "test" not in parts:
        raise DataError(f"{root}: expected a folder test beside train; got none (or put the classes right under {root})")
    parts = parts or {"train": root}
    classes = class_folders(parts["train"])
    listed = {split: list_images(folder, classes) for split, folder in parts.items()}
    splits = _read(listed, classes, size)
    if len(parts) == 1:
        splits["train"], splits["test"] = set_test_aside(root, splits["train"])
    return splits


def class_folders(folder: Path) -> tuple[str, ...]:
    """The names of the folders in a folder, sorted: the classes."""
    classes = tuple(sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith(".")))
    if not classes:
        raise DataError(f"{folder}: expected one folder of images per class; got no folder")
    return classes


def list_images(folder: Path, classes: tuple[str, ...]) -> tuple[list[Path], np.ndarray]:
    """(files, labels): all images under folder/<class>, class by class, sorted by name."""
    unknown = sorted(set(class_folders(folder)) - set(classes))
    if unknown:
        raise DataError(f"{folder}: expected classes that train has too; {unknown[0]!r} is none of them")
    files: list[Path] = []
    labels: list[int] = []
    for number, name in enumerate(classes):
        inside = sorted(path for path in (folder / name).rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
        files += inside
        labels += [number] * len(inside)
        if not inside and (folder / name).is_dir():
            raise DataError(f"{folder / name}: expected images ({' '.join(SUFFIXES)}); got none")
    return files, np.asarray(labels, np.int64)


def _read(
    listed: dict[str, tuple[list[Path], np.ndarray]], classes: tuple[str, ...], size: int | tuple[int, int] | None
) -> dict[str, Split]:
    """Splits of images that are all brought to one size and one number of channels."""
    if size is not None and min((size, size) if isinstance(size, int) else size) < 1:
        raise DataError(f"size must be a height and a width of at least 1; got {size!r}")
    sizes, channels = survey([path for files, _ in listed.values() for path in files])
    if size is None and len(sizes) > 1:
        some = ", ".join(f"{height}x{width}" for height, width in sorted(sizes)[:3])
        hint = "scale them all with --image-size 64 (load: size=64)"
        raise DataError(f"expected images of one size; got {len(sizes)} sizes ({some}, ...): {hint}")
    common = (size, size) if isinstance(size, int) else size or next(iter(sizes))
    splits = {}
    for split, (files, labels) in listed.items():
        lazy = ImageFiles(files, common, channels, resize=size is not None)
        splits[split] = Split("image", settled(lazy, f"{split} images"), labels, classes)
    return splits


def read_tiny_imagenet(paths: tuple[Path, ...], split: str) -> Split:
    """Tiny-ImageNet-200 as it is unpacked; its val is "test", since the labels of its own test are not published.

    Classes are in the order of wnids.txt, named by the first of their names in words.txt.
    """
    wnids, words, folder = paths
    ids = [line.strip() for _, line in read_lines(wnids)]
    names = {key: rest.split(",")[0].strip() for key, _, rest in (line.partition("\t") for _, line in read_lines(words))}
    unnamed = [key for key in ids if not names.get(key)]
    if not ids or unnamed or len(set(ids)) != len(ids):
        raise DataError(f"{wnids}: expected different ids that {words.name} names; got {(unnamed or ids or ['nothing'])[0]!r}")
    if split == "train":
        files, labels = list_images(folder, tuple(ids))
    else:
        files, labels = _annotated(folder, ids)
    taken = [names[key] for key in ids]
    classes = tuple(f"{name} ({key})" if taken.count(name) > 1 else name for key, name in zip(ids, taken, strict=True))
    return Split("image", settled(ImageFiles(files, (64, 64), 3), f"tiny-imagenet {split}"), labels, classes)


def _annotated(folder: Path, ids: Sequence[str]) -> tuple[list[Path], np.ndarray]:
    """(files, labels) by val_annotations.txt: file, id, and a box that is not needed, between tabs."""
    table, number_of = folder / "val_annotations.txt", {key: number for number, key in enumerate(ids)}
    files, labels = [], []
    for line_number, line in read_lines(table):
        columns = line.split("\t")
        if len(columns) != 6 or columns[1] not in number_of:
            raise DataError(f"{table}: line {line_number}: expected 6 columns with a known id in the second; got {line!r}")
        files.append(folder / "images" / columns[0])
        labels.append(number_of[columns[1]])
    if not files:
        raise DataError(f"{table}: expected one line per image; got none")
    return files, np.asarray(labels, np.int64)
