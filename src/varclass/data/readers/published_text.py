"""The text sets of the catalogue: AG News, CLINC150, and natural language inference from SNLI, MultiNLI and SICK."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from varclass.data.errors import DataError
from varclass.data.files import AGAIN, read_lines, read_text
from varclass.data.readers.text_table import Row, csv_rows, json_rows, text_split
from varclass.data.split import Split

INFERENCE = ("entailment", "neutral", "contradiction")
CLINC_PARTS = {"train": "train", "validation": "val", "test": "test", "oos": "oos_test"}


def read_ag_news(paths: tuple[Path, ...], split: str, *, classes: tuple[str, ...]) -> Split:
    """A split from its CSV file without a header: class from 1, title, description. The text is both, a space between."""
    (path,) = paths
    if not read_text(path).rstrip("\r\n").endswith('"'):  # every field is in quotes: a cut after a comma has three of them too
        raise DataError(f"{path}: expected the last line to end with a quote: {AGAIN}")
    return text_split(path, _ag_news_rows(path, classes), classes)


def _ag_news_rows(path: Path, classes: tuple[str, ...]) -> Iterator[Row]:
    for number, row in csv_rows(path):
        if len(row) != 3:
            raise DataError(f"{path}: line {number}: expected 3 columns (class, title, description); got {len(row)}")
        if row[0] not in {str(label + 1) for label in range(len(classes))}:
            raise DataError(f"{path}: line {number}: expected a class from 1 to {len(classes)}; got {row[0]!r}")
        yield number, (" ".join(part for part in row[1:] if part),), classes[int(row[0]) - 1]


def read_inference(paths: tuple[Path, ...], split: str) -> Split:
    """A split of sentence pairs, from JSON lines (SNLI, MultiNLI) or from SICK's table, of which the TEST rows are taken.

    Pairs without a gold label ('-': the annotators did not agree) are left out, as everybody does.
    """
    (path,) = paths
    return text_split(path, _sick_rows(path) if path.suffix == ".txt" else _inference_rows(path), INFERENCE)


def _inference_rows(path: Path) -> Iterator[Row]:
    for number, row in json_rows(path):
        columns = [row.get(name) for name in ("sentence1", "sentence2", "gold_label")]
        if not all(isinstance(column, str) for column in columns):
            raise DataError(f"{path}: line {number}: expected sentence1, sentence2 and gold_label; got {', '.join(row)}")
        first, second, label = (str(column) for column in columns)
        if label != "-":
            yield number, (first, second), label.lower()


def _sick_rows(path: Path) -> Iterator[Row]:
    lines = read_lines(path)
    _, header = next(lines, (0, ""))
    names = header.split("\t")
    wanted = ("sentence_A", "sentence_B", "entailment_label", "SemEval_set")
    if not set(wanted) <= set(names):
        raise DataError(f"{path}: expected the columns {', '.join(wanted)}; got {header[:80]!r}")
    for number, line in lines:
        row = line.split("\t")
        if len(row) != len(names):
            raise DataError(f"{path}: line {number}: expected {len(names)} columns; got {len(row)}")
        first, second, label, part = (row[names.index(name)].strip() for name in wanted)
        if part not in {"TRAIN", "TRIAL", "TEST"}:
            raise DataError(f"{path}: line {number}: expected SemEval_set TRAIN, TRIAL or TEST; got {part!r}")
        if part == "TEST":
            yield number, (first, second), label.lower()


def read_clinc150(paths: tuple[Path, ...], split: str) -> Split:
    """A split of data_full.json: lists of [text, intent]. "oos" holds the out-of-scope test queries, labeled -1."""
    (path,) = paths
    try:
        held = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: expected one JSON object; got {error}: {AGAIN}") from error
    classes = tuple(sorted({intent for _, (_,), intent in _clinc_rows(path, held, "train")}))
    rows = list(_clinc_rows(path, held, CLINC_PARTS[split]))
    if split != "oos":
        return text_split(path, rows, classes)
    texts = np.asarray([text for _, (text,), _ in rows], dtype=object)
    return Split("text", texts, np.full(len(rows), -1, np.int64), classes)


def _clinc_rows(path: Path, held: Any, part: str) -> list[Row]:
    queries = held.get(part) if isinstance(held, dict) else None
    if not isinstance(queries, list) or not queries:
        raise DataError(f"{path}: expected a list {part!r} of queries; got {type(queries).__name__}: {AGAIN}")
    for number, query in enumerate(queries):
        if not (isinstance(query, list) and len(query) == 2 and all(isinstance(field, str) for field in query)):
            raise DataError(f"{path}: {part}, query {number}: expected [text, intent]; got {query!r:.60}")
    return [(number, (text,), intent) for number, (text, intent) in enumerate(queries)]
