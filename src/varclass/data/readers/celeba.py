"""CelebA: photographs of celebrities' faces, aligned and cropped; the class is one of the 40 published attributes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from varclass.data.errors import DataError
from varclass.data.files import AGAIN, read_lines
from varclass.data.images import ImageFiles, settled
from varclass.data.split import Split

CLASSES = ("not smiling", "smiling")
ATTRIBUTE = "Smiling"
PARTS = {"train": "0", "validation": "1", "test": "2"}
SIZE = (218, 178)


def read_celeba(paths: tuple[Path, ...], split: str) -> Split:
    """A split of the published division, in the order of its list; whether a face smiles is its label."""
    partition, attributes, images = paths
    smiling = dict(_attribute(attributes))
    files, labels = [], []
    for number, line in read_lines(partition):
        name, part = _two(partition, number, line)
        if part != PARTS[split]:
            continue
        if name not in smiling:
            raise DataError(f"{attributes}: expected a line for {name}; got none: {AGAIN}")
        files.append(images / name)
        labels.append(smiling[name])
    if not files:
        raise DataError(f"{partition}: expected images of the split {split!r}; got none")
    lazy = ImageFiles(files, SIZE, 3)
    return Split("image", settled(lazy, f"celeba {split}"), np.asarray(labels, np.int64), CLASSES)


def _two(partition: Path, number: int, line: str) -> tuple[str, str]:
    fields = line.split()
    if len(fields) != 2 or fields[1] not in PARTS.values():
        raise DataError(f"{partition}: line {number}: expected the name of an image and 0, 1 or 2; got {line[:60]!r}")
    return fields[0], fields[1]


def _attribute(path: Path) -> Iterator[tuple[str, int]]:
    """(image, class) from a table: the number of images, the names of the attributes, then -1 or 1 of each for every image."""
    lines = read_lines(path)
    next(lines, None)
    _, names = next(lines, (0, ""))
    columns = names.split()
    if ATTRIBUTE not in columns:
        raise DataError(f"{path}: expected an attribute {ATTRIBUTE!r} in line 2; got {names[:60]!r}")
    place = columns.index(ATTRIBUTE) + 1
    for number, line in lines:
        fields = line.split()
        if len(fields) != len(columns) + 1 or fields[place] not in {"-1", "1"}:
            raise DataError(
                f"{path}: line {number}: expected a name and -1 or 1 for {len(columns)} attributes; got {line[:60]!r}"
            )
        yield fields[0], int(fields[place] == "1")
