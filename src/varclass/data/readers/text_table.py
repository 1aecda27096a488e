"""Texts in tables: CSV, JSON lines and tab-separated files, the publishers' and a user's own."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from varclass.data.errors import DataError
from varclass.data.files import read_lines, read_text
from varclass.data.sampling import set_test_aside
from varclass.data.split import Split

FORMATS = (".csv", ".jsonl")
PARTS = {"train": ("train",), "validation": ("validation", "val", "dev"), "test": ("test",)}
TEXTS = (("text",), ("sentence1", "sentence2"), ("premise", "hypothesis"))
LABELS = ("label", "gold_label")
Row = tuple[int, tuple[str, ...], str]  # line number, one text or two, the name of the class


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file with the numbers of the lines they end on; broken quoting is refused."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise DataError(f"{path}: line {reader.line_num}: {error}") from error


def json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file with one JSON object per line."""
    for number, line in read_lines(path):
        try:
            held = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: line {number}: expected a JSON object; got {error}") from error
        if not isinstance(held, dict):
            raise DataError(f"{path}: line {number}: expected a JSON object; got {line[:40]!r}")
        yield number, held


def text_split(path: Path, rows: Iterable[Row], classes: tuple[str, ...]) -> Split:
    """A Split of texts (N,) or of pairs of texts (N, 2)."""
    number_of = {name: number for number, name in enumerate(classes)}
    texts: list[tuple[str, ...]] = []
    labels: list[int] = []
    for line, text, label in rows:
        if label not in number_of:
            raise DataError(f"{path}: line {line}: expected one of the {len(classes)} classes; got {label!r}")
        if texts and len(text) != len(texts[0]):
            raise DataError(f"{path}: line {line}: expected {len(texts[0])} text(s) as in the first row; got {len(text)}")
        texts.append(text)
        labels.append(number_of[label])
    if not texts:
        raise DataError(f"{path}: expected at least one text; got none")
    inputs = np.empty((len(texts), len(texts[0])), dtype=object)
    inputs[:] = texts
    return Split("text", inputs[:, 0] if inputs.shape[1] == 1 else inputs, np.asarray(labels, np.int64), classes)


def read_own_tables(path: Path) -> dict[str, Split]:
    """A user's folder with train and test (and validation) files, or one file of which a stratified fifth becomes the test.

    A .csv file names its columns in the first line; TEXTS and LABELS are the names both formats need.
    The classes are the labels that train has, sorted.
    """
    if path.is_dir():
        parts = {split: found for split, names in PARTS.items() if (found := _one_of(path, names))}
    else:
        parts = {"train": path}
    if path.is_dir() and "test" not in parts:
        raise DataError(f"{path}: expected test.csv or test.jsonl beside {parts['train'].name}; got neither")
    rows = {split: list(own_rows(file)) for split, file in parts.items()}
    widths = {split: len(held[0][1]) for split, held in rows.items() if held}
    if len(set(widths.values())) > 1:
        raise DataError(f"{path}: expected one text, or pairs, in all splits; got {widths}")
    names = {label for _, _, label in rows["train"]}
    whole = all(name.removeprefix("-").isdecimal() for name in names)
    classes = tuple(sorted(names, key=int)) if whole else tuple(sorted(names))
    splits = {split: text_split(file, rows[split], classes) for split, file in parts.items()}
    if not path.is_dir():
        splits["train"], splits["test"] = set_test_aside(path, splits["train"])
    return splits


def has_tables(folder: Path) -> bool:
    """Whether a folder has a train table."""
    return _one_of(folder, PARTS["train"]) is not None


def own_rows(path: Path) -> Iterator[Row]:
    """The rows of a user's table."""
    for number, row in _named_rows(path):
        texts, label = _columns(path, number, row)
        for name in (*texts, label):
            # a float or a bool as a label is more likely a mistake than a class
            if (
                not isinstance(row[name], str if name != label else (str, int))
                or isinstance(row[name], bool)
                or row[name] == ""
            ):
                raise DataError(f"{path}: line {number}: expected {name} to be text; got {row[name]!r}")
        yield number, tuple(row[name] for name in texts), str(row[label])


def _columns(path: Path, number: int, names: Collection[str]) -> tuple[tuple[str, ...], str]:
    """Which columns hold the text, or the pair of texts, and the label."""
    texts = next((wanted for wanted in TEXTS if set(wanted) <= set(names)), None)
    label = next((name for name in LABELS if name in names), None)
    if texts is None or label is None:
        wanted = f"{' or '.join('+'.join(each) for each in TEXTS)}, and {' or '.join(LABELS)}"
        came = ", ".join(names)[:80] or "none"
        raise DataError(f"{path}: line {number}: expected the columns {wanted}; got {came}: rename them")
    return texts, label


def _named_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if path.suffix == ".jsonl":
        yield from json_rows(path)
        return
    rows = csv_rows(path)
    first, header = next(rows, (1, []))
    _columns(path, first, header)
    for number, row in rows:
        if len(row) != len(header):
            raise DataError(f"{path}: line {number}: expected {len(header)} columns; got {len(row)}")
        yield number, dict(zip(header, row, strict=True))


def _one_of(folder: Path, names: tuple[str, ...]) -> Path | None:
    found = [folder / (name + suffix) for name in names for suffix in FORMATS if (folder / (name + suffix)).is_file()]
    if len(found) > 1:
        raise DataError(f"{folder}: expected one file of {', '.join(names)}; got {found[0].name} and {found[1].name}")
    return found[0] if found else None
