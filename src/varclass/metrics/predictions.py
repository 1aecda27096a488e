"""Predictions: the log joint of every sample, and what follows from it by Bayes' rule."""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from varclass.atomic import replacing
from varclass.metrics.arguments import check_labels

FIELDS = ("log_joint", "labels", "index")


@dataclass(frozen=True, eq=False)
class Predictions:
    """A classifier's predictions: log p(z, y) for every class, so that softmax is p(y|x) and logsumexp is log p(z).

    Everything derived is float64 whatever the log joint's type. A tie between classes goes to the first. The arrays are
    kept as read-only views, not copied.

    Args:
        log_joint: (N, C), floating; -inf is a class ruled out, and each row needs one that is not.
        labels: (N,), the true classes; -1 where it is unknown or none of the C. Metrics that need labels skip those rows.
        index: (N,), each row's position in the split it came from.

    >>> held = Predictions.of(np.log([[0.2, 0.1], [0.3, 0.1]]), [0, 1])
    >>> held.probabilities.round(3).tolist(), held.predicted.tolist(), np.exp(held.log_evidence).round(3).tolist()
    ([[0.667, 0.333], [0.75, 0.25]], [0, 0], [0.3, 0.4])
    """

    log_joint: np.ndarray
    labels: np.ndarray
    index: np.ndarray

    def __post_init__(self) -> None:
        log_joint = _check_log_joint(self.log_joint)
        labels = check_labels("labels", self.labels, *log_joint.shape)
        index = np.asarray(self.index)
        if index.shape != labels.shape or (index.size and not np.issubdtype(index.dtype, np.integer)):
            raise ValueError(f"index must hold {len(labels)} whole numbers; got shape {index.shape}, {index.dtype}")
        for name, array in zip(FIELDS, (log_joint, labels, index.astype(np.int64, copy=False)), strict=True):
            view = array.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    @classmethod
    def of(cls, log_joint: object, labels: object | None = None) -> Predictions:
        """Predictions in their own order: index 0 to N - 1, labels unknown unless given."""
        rows = np.asarray(log_joint)
        count = len(rows) if rows.ndim else 0
        return cls(rows, np.full(count, -1) if labels is None else np.asarray(labels), np.arange(count))

    def __len__(self) -> int:
        return len(self.log_joint)

    @property
    def num_classes(self) -> int:
        """C."""
        return int(self.log_joint.shape[1])

    def take(self, rows: np.ndarray) -> Predictions:
        """The given rows: positions, or a mask of length N."""
        return Predictions(self.log_joint[rows], self.labels[rows], self.index[rows])

    def in_scope(self) -> Predictions:
        """The rows with a label."""
        return self if (self.labels >= 0).all() else self.take(self.labels >= 0)

    @cached_property
    def predicted(self) -> np.ndarray:
        """The most probable class, (N,)."""
        return self.log_joint.argmax(1)

    @cached_property
    def _top(self) -> np.ndarray:
        """The largest log joint, (N, 1)."""
        return self.log_joint.max(1, keepdims=True).astype(np.float64)

    @cached_property
    def _log_rest(self) -> np.ndarray:
        """log(sum_y p(z, y) / max_y p(z, y)), (N, 1): log1p of the others, so that a posterior next to 1 keeps its tail."""
        ratio = np.exp(self.log_joint - self._top)
        np.put_along_axis(ratio, self.predicted[:, None], 0, axis=1)
        return np.log1p(ratio.sum(1, keepdims=True))

    @cached_property
    def log_posterior(self) -> np.ndarray:
        """log p(y|x), (N, C)."""
        return (self.log_joint - self._top) - self._log_rest  # in this order: a log joint of -1e9 costs no digits

    @cached_property
    def log_evidence(self) -> np.ndarray:
        """log p(z), (N,)."""
        return (self._top + self._log_rest)[:, 0]

    @property
    def probabilities(self) -> np.ndarray:
        """p(y|x), (N, C)."""
        ratio = np.exp(self.log_joint - self._top)
        return ratio / ratio.sum(1, keepdims=True)  # not exp(log_posterior): that can miss 1/C, the edge of a bin

    @cached_property
    def confidence(self) -> np.ndarray:
        """max_y p(y|x), (N,)."""
        return self.probabilities.max(1)

    @property
    def log_confidence(self) -> np.ndarray:
        """max_y log p(y|x), (N,): orders samples whose confidences all round to 1."""
        return -self._log_rest[:, 0]

    @cached_property
    def entropy(self) -> np.ndarray:
        """-sum_y p(y|x) log p(y|x) in nats, (N,); a class of probability 0 adds nothing."""
        possible = np.where(np.isfinite(self.log_posterior), self.log_posterior, 0)
        return -(np.exp(self.log_posterior) * possible).sum(1) + 0.0  # + 0.0 makes a -0.0 a 0.0

    @cached_property
    def correct(self) -> np.ndarray:
        """Whether the predicted class is the label, (N,) of bool; never for a row without one."""
        return self.predicted == self.labels

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an .npz without pickles; it is written beside its place and renamed, so it is whole or not there.

        The log joint is stored as float32. That loses nothing of a float32 log joint, as models give it. Of a float64 one
        it moves every log joint by up to 2^-24 of its size, so log p(y|x) by up to 2^-23 of the largest: 1e-4 at 1000.
        """
        path = Path(path)
        with np.errstate(over="ignore"):
            stored = self.log_joint.astype(np.float32)
        if not np.array_equal(np.isfinite(stored), np.isfinite(self.log_joint)):
            raise ValueError("log_joint must lie within float32's range to be saved; got an entry beyond 3.4e38")
        with replacing(path) as file:
            np.savez(file, log_joint=stored, labels=self.labels, index=self.index)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Predictions:
        """Read what `save` wrote; other arrays in the file are left alone."""
        try:
            # Opened here: np.load leaves a damaged archive open.
            with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return cls(*(arrays[name] for name in FIELDS))
        except (KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile) as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"{path}: expected an .npz with {', '.join(FIELDS)}; got {reason or 'no data'}") from error


def _check_log_joint(values: object) -> np.ndarray:
    log_joint = np.asarray(values)
    if log_joint.ndim != 2 or log_joint.shape[1] == 0 or not np.issubdtype(log_joint.dtype, np.floating):
        raise ValueError(f"log_joint must be floating with shape (N, C); got {log_joint.dtype} with shape {log_joint.shape}")
    wrong = ~np.isfinite(log_joint.max(1))  # NaN spreads, +inf wins, and -inf wins in a row that holds nothing else
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"log_joint must have a finite largest entry in each row; got {log_joint[row].max()} in row {row}")
    return log_joint
