"""Split: inputs with labels, the one thing every reader returns and every trainer takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

KINDS = ("image", "vector", "text")


class Inputs(Protocol):
    """What holds a split's inputs: an array, or files that are read when they are asked for.

    `inputs[index]` selects and reads nothing; `np.asarray(inputs)` reads. For an array both cost what they always cost.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: np.ndarray, /) -> Inputs: ...
    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> np.ndarray: ...


@dataclass(frozen=True)
class Split:
    """N inputs of one kind, their labels, and the names of the classes.

    | kind     | inputs                                                                          |
    |----------|---------------------------------------------------------------------------------|
    | "image"  | uint8 (N, height, width, channels): an array, or image files decoded when read  |
    | "vector" | float32 (N, features)                                                           |
    | "text"   | str, dtype object: (N,), or (N, 2) for pairs of texts                           |
    """

    kind: str
    inputs: Inputs
    labels: np.ndarray  # int64 (N,); -1 where a sample belongs to no class (an out-of-scope split)
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, index: np.ndarray) -> Split:
        """The samples at these positions, in this order; files among them are still not read."""
        return replace(self, inputs=self.inputs[index], labels=self.labels[index])

    def read(self, index: np.ndarray) -> np.ndarray:
        """The inputs at these positions, as an array: what a batch is made of."""
        return np.asarray(self.inputs[index])


Splits = Mapping[str, Split]  # "train" and "test" always; "validation" where it is published; others by their own names
