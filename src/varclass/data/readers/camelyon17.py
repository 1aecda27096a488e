"""WILDS' Camelyon17: tumor or not in 96x96 patches of lymph nodes from five hospitals, one of them for testing only."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from varclass.data.errors import DataError
from varclass.data.files import read_text
from varclass.data.images import ImageFiles, settled
from varclass.data.split import Split

CLASSES = ("normal", "tumor")
COLUMNS = ("patient", "node", "x_coord", "y_coord", "tumor", "center", "split")
VALIDATION_CENTER, TEST_CENTER = "1", "2"


def read_camelyon17(paths: tuple[Path, ...], split: str) -> Split:
    """A split by WILDS' official scheme.

    | train, id_validation | hospitals 0, 3 and 4, divided by the file's own column      |
    | validation           | hospital 1: another hospital than the training patches'    |
    | test                 | hospital 2                                                  |
    """
    metadata, patches = paths
    files, labels = [], []
    for number, row in _rows(metadata):
        if _split_of(row) != split:
            continue
        if row["tumor"] not in {"0", "1"}:
            raise DataError(f"{metadata}: line {number}: expected tumor to be 0 or 1; got {row['tumor']!r}")
        # patients are three digits in the names of the files; a tool that rewrote the table may have dropped the zeros
        place = f"patient_{row['patient'].zfill(3)}_node_{row['node']}"
        files.append(patches / place / f"patch_{place}_x_{row['x_coord']}_y_{row['y_coord']}.png")
        labels.append(int(row["tumor"]))
    if not files:
        raise DataError(f"{metadata}: expected rows of the split {split!r}; got none")
    lazy = ImageFiles(files, (96, 96), 3)
    return Split("image", settled(lazy, f"camelyon17 {split}"), np.asarray(labels, np.int64), CLASSES)


def _split_of(row: dict[str, str]) -> str:
    by_center = {VALIDATION_CENTER: "validation", TEST_CENTER: "test"}
    return by_center.get(row["center"]) or {"0": "train", "1": "id_validation"}.get(row["split"], "")


def _rows(metadata: Path) -> list[tuple[int, dict[str, str]]]:
    """The table's rows with their line numbers, once they have the columns that are needed."""
    reader = csv.DictReader(io.StringIO(read_text(metadata)), strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise DataError(f"{metadata}: line {reader.line_num}: {error}") from error
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise DataError(f"{metadata}: expected a column {missing[0]!r}; got {', '.join(reader.fieldnames or ()) or 'nothing'}")
    for number, row in rows:
        if None in row or None in row.values():
            raise DataError(f"{metadata}: line {number}: expected {len(reader.fieldnames or ())} columns")
        if not _split_of(row) or row["center"] not in {"0", "1", "2", "3", "4"}:
            came = f"{row['center']!r} and {row['split']!r}"
            raise DataError(f"{metadata}: line {number}: expected center 0 to 4 and split 0 or 1; got {came}")
    return rows
