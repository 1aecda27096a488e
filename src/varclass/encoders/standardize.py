"""Standardize: inputs to mean 0 and standard deviation 1, with numbers that live in the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from varclass.core.options import check_choice, check_count


class Rows(Protocol):
    """Inputs read some rows at a time: an array, or files that are read when they are asked for."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: np.ndarray) -> Any: ...


class Standardize(nn.Module):
    """(x - mean) / std, per channel of images (B, C, H, W) or per feature of vectors (B, F).

    Mean and std are float32 buffers: a model that holds them loads without its training data.

    >>> Standardize([0.5], [0.25])(torch.tensor([[0.0], [1.0]])).flatten().tolist()
    [-2.0, 2.0]
    """

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Any, std: Any) -> None:
        super().__init__()
        for name, value in (("mean", mean), ("std", std)):
            self.register_buffer(name, torch.as_tensor(value, dtype=torch.float32).clone())
        if self.mean.dim() != 1 or self.mean.shape != self.std.shape:
            got = f"{tuple(self.mean.shape)} and {tuple(self.std.shape)}"
            raise ValueError(f"mean and std must hold one number for each channel or feature; got shapes {got}")
        if not bool(self.mean.isfinite().all() and self.std.isfinite().all() and (self.std > 0).all()):
            raise ValueError(f"mean must be finite and std finite and above 0; got {mean!r:.60} and {std!r:.60}")

    def forward(self, x: Tensor) -> Tensor:
        """The shape of x, (B, C, H, W) or (B, F)."""
        size = (-1, 1, 1) if x.dim() == 4 else (-1,)
        if x.dim() not in (2, 4) or x.shape[1] != len(self.mean):
            count = len(self.mean)
            raise ValueError(f"inputs must be (B, {count}) or (B, {count}, H, W), as mean and std; got {tuple(x.shape)}")
        return (x - self.mean.view(size)) / self.std.view(size)

    @classmethod
    def fit(cls, inputs: Rows, kind: str, *, chunk: int = 1024) -> Standardize:
        """Mean and standard deviation of a training split's inputs, read `chunk` rows at a time.

        Args:
            inputs: uint8 images (N, H, W, C), of which x / 255 is standardized, or float vectors (N, F).
            kind: "image" or "vector", as `Split.kind`.
            chunk: rows in memory at once.
        """
        check_choice("kind", kind, ("image", "vector"))
        check_count("the number of inputs", len(inputs), 1)
        mean, std = (_of_images if kind == "image" else _of_vectors)(inputs, check_count("chunk", chunk, 1))
        # What never varied has no scale. Below float32's resolution at the mean, a spread is rounding.
        constant = std <= np.finfo(np.float32).eps * np.abs(mean)
        return cls(mean, np.where(constant, 1.0, std))


def _chunks(inputs: Rows, chunk: int) -> Iterator[np.ndarray]:
    for start in range(0, len(inputs), chunk):
        yield np.asarray(inputs[np.arange(start, min(start + chunk, len(inputs)))])  # reads them, if they are files


def _of_images(inputs: Rows, chunk: int) -> tuple[np.ndarray, np.ndarray]:
    """From a histogram of the 256 values of each channel: one pass, and exact."""
    counts = np.zeros((inputs.shape[-1], 256), dtype=np.int64)
    for images in _chunks(inputs, chunk):
        if images.dtype != np.uint8 or images.ndim != 4:
            raise ValueError(f"images must be uint8 (N, height, width, channels); got {images.dtype} {images.shape}")
        for channel in range(len(counts)):
            counts[channel] += np.bincount(images[..., channel].reshape(-1), minlength=256)
    share, value = counts / counts.sum(1, keepdims=True), np.arange(256) / 255
    mean = share @ value
    return mean, np.sqrt((share * (value - mean[:, None]) ** 2).sum(1))


def _of_vectors(inputs: Rows, chunk: int) -> tuple[np.ndarray, np.ndarray]:
    """In float64 and two passes: mean of squares minus square of mean would cancel."""
    for vectors in _chunks(inputs, chunk):
        if vectors.ndim != 2 or not np.issubdtype(vectors.dtype, np.floating) or not np.isfinite(vectors).all():
            raise ValueError(f"vectors must be finite floats (N, features); got {vectors.dtype} {vectors.shape}, or NaN or inf")
    mean = sum(vectors.sum(0, dtype=np.float64) for vectors in _chunks(inputs, chunk)) / len(inputs)
    squares = sum(((vectors - mean) ** 2).sum(0) for vectors in _chunks(inputs, chunk))
    return mean, np.sqrt(squares / len(inputs))
