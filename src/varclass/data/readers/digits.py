"""scikit-learn's digits: 1,797 scans of 8x8 pixels that come with the library, so that there is always something to run."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from varclass.data.sampling import carve
from varclass.data.split import Split

TEST = 600


def read_digits(paths: tuple[Path, ...], split: str) -> Split:
    """The train or the test split, 1,197 and 600 images; the division is stratified and the same everywhere."""
    train, test = _both()
    return {"train": train, "test": test}[split]


@cache
def _both() -> tuple[Split, Split]:
    from sklearn.datasets import load_digits  # noqa: PLC0415

    held = load_digits()
    images = np.rint(held.images * (255 / 16)).astype(np.uint8)[..., None]  # published as 0..16
    classes = tuple(str(digit) for digit in range(10))
    return carve(Split("image", images, held.target.astype(np.int64), classes), TEST, seed=0)
