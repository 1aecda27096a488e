"""Parts of a split: stratified, seeded, the same on every machine, and nested over their sizes."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np

from varclass.data.errors import DataError
from varclass.data.split import Split

TEST_SHARE, TEST_SEED = 0.2, 0
log = logging.getLogger(__name__)


def carve(split: Split, amount: float, seed: int) -> tuple[Split, Split]:
    """(rest, carved): set a stratified part of a split aside, for validation or calibration.

    `amount` is a share (a float between 0 and 1) or a count (an int). Each class gives in proportion to its frequency,
    rounded by the method of Sainte-Lague; both parts keep the order of the split.

    >>> split = Split("vector", np.zeros((10, 2), np.float32), np.repeat([0, 1], [6, 4]), ("a", "b"))
    >>> rest, carved = carve(split, 0.5, seed=0)
    >>> np.bincount(rest.labels).tolist(), np.bincount(carved.labels).tolist()
    ([3, 2], [3, 2])
    """
    count = _count(amount, len(split))
    chosen = np.zeros(len(split), dtype=bool)
    chosen[proportional_order(split.labels, seed)[:count]] = True
    return split.take(np.flatnonzero(~chosen)), split.take(np.flatnonzero(chosen))


def set_test_aside(path: Path, split: Split) -> tuple[Split, Split]:
    """(train, test) of a user's data without a test part: a seeded, stratified fifth is the test, and that is said."""
    if round(TEST_SHARE * len(split)) == 0:
        came = f"got {len(split)} in all, of {len(split.classes)} class(es)"
        raise DataError(f"{path}: expected samples enough to set a fifth aside for the test; {came}: add some of each class")
    train, test = carve(split, TEST_SHARE, TEST_SEED)
    log.warning("%s has no test part: a stratified fifth is the test split, n = %d", path, len(test))
    return train, test


def hold_out_fold(split: Split, folds: int, fold: int, seed: int) -> tuple[Split, Split]:
    """(rest, fold): the fold-th (from 0) of `folds` parts of equal size, each with the classes in proportion.

    A class with a single sample is in every rest and in no part: without it nothing could be told of that class.

    >>> split = Split("vector", np.zeros((12, 2), np.float32), np.repeat([0, 1], [6, 6]), ("a", "b"))
    >>> [np.bincount(hold_out_fold(split, 3, fold, seed=0)[1].labels).tolist() for fold in range(3)]
    [[2, 2], [2, 2], [2, 2]]
    """
    _, codes, totals = np.unique(split.labels, return_inverse=True, return_counts=True)
    order = np.lexsort((_ranks(codes, seed), split.labels))
    order = order[totals[codes[order]] > 1]
    chosen = np.zeros(len(split), dtype=bool)
    chosen[order[fold::folds]] = True
    return split.take(np.flatnonzero(~chosen)), split.take(np.flatnonzero(chosen))


def subset(split: Split, count: int | None = None, seed: int = 0, *, per_class: int | None = None) -> Split:
    """A low-data subset: `count` samples in proportion to the classes' frequencies, or `per_class` of every class.

    With the same seed a smaller subset lies inside a larger one of the same kind, so that a curve over counts adds data and
    exchanges none. In proportion, a rare class may be absent from a small subset; `per_class` never leaves one out.

    >>> split = Split("vector", np.zeros((10, 2), np.float32), np.repeat([0, 1], [6, 4]), ("a", "b"))
    >>> np.bincount(subset(split, 5).labels).tolist(), np.bincount(subset(split, per_class=2).labels).tolist()
    ([3, 2], [2, 2])
    """
    if (count is None) == (per_class is None):
        raise DataError(f"a subset needs either count or per_class; got count={count!r} and per_class={per_class!r}")
    if per_class is not None:
        return split.take(np.sort(_equal(split, per_class, seed)))
    return split.take(np.sort(proportional_order(split.labels, seed)[: _whole("count", count, len(split))]))


def proportional_order(labels: np.ndarray, seed: int) -> np.ndarray:
    """All positions, ordered so that every beginning of the order holds the classes in proportion to their frequencies.

    The j-th (from 0) of a class's n samples, in random order, stands at (j + 1/2) / n: the first m positions are then the
    seats that Sainte-Lague's method deals to the classes. Unlike largest remainders it never takes a seat back when m grows.
    """
    labels = np.asarray(labels)
    _, codes, totals = np.unique(labels, return_inverse=True, return_counts=True)
    place = (2 * _ranks(codes, seed) + 1) / totals[codes]  # the halves doubled: exact ties stay exact
    return np.lexsort((codes, place))


def _equal(split: Split, per_class: int, seed: int) -> np.ndarray:
    """Positions of the first `per_class` samples of every class in its random order."""
    totals = np.bincount(split.labels[split.labels >= 0], minlength=len(split.classes))
    least = int(totals.argmin())
    if _whole("per_class", per_class, len(split)) > totals[least]:
        name, has = split.classes[least], int(totals[least])
        raise DataError(f"per_class must be at most {has}, all that class {name!r} has; got {per_class}")
    _, codes = np.unique(split.labels, return_inverse=True)
    return np.flatnonzero((_ranks(codes, seed) < per_class) & (split.labels >= 0))


def _ranks(codes: np.ndarray, seed: int) -> np.ndarray:
    """Each sample's place, from 0, in its class's random order."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise DataError(f"seed must be a whole number of at least 0; got {seed!r}")
    # The raw output of PCG64 is fixed for good; the shuffles that numpy builds on it may change between versions.
    order = np.lexsort((np.random.PCG64(int(seed)).random_raw(len(codes)), codes))
    starts = np.searchsorted(codes[order], codes[order], side="left")
    ranks = np.empty(len(codes), dtype=np.int64)
    ranks[order] = np.arange(len(codes)) - starts
    return ranks


def _count(amount: float, total: int) -> int:
    """A share or a count as a count that leaves something on both sides."""
    if not isinstance(amount, float):
        return _whole("the count to carve", amount, total - 1)
    count = round(amount * total)
    if not 0 < amount < 1 or not 0 < count < total:
        raise DataError(f"a share must lie between 0 and 1 and leave samples on both sides; got {amount!r} of {total}")
    return count


def _whole(what: str, value: object, most: int) -> int:
    """An int from 1 to `most`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 1 <= value <= most:
        raise DataError(f"{what} must be a whole number from 1 to {most}; got {value!r}")
    return int(value)
