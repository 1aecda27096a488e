"""IDX, the format of MNIST and its relatives: a magic number, the sizes, then the bytes."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from varclass.data.errors import DataError
from varclass.data.files import AGAIN, image_split, read_bytes
from varclass.data.split import Split


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """The uint8 array in an IDX file, gzipped or not, which must hold exactly what its header says.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "labels-idx1-ubyte"
    >>> _ = file.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    >>> read_idx(file, dimensions=1)
    array([7, 8, 9], dtype=uint8)
    """
    raw = read_bytes(path)
    header = 4 + 4 * dimensions
    magic = bytes([0, 0, 8, dimensions])  # 8: unsigned bytes
    if len(raw) < header or raw[:4] != magic:
        raise DataError(
            f"{path}: expected an IDX file that begins with {magic.hex()}; got {raw[:4].hex() or 'nothing'}: {AGAIN}"
        )
    shape = [int(size) for size in np.frombuffer(raw, ">u4", dimensions, offset=4)]
    if len(raw) - header != math.prod(shape):
        wanted = f"{math.prod(shape)} bytes of data ({'x'.join(map(str, shape))})"
        raise DataError(f"{path}: expected {wanted}; got {len(raw) - header}: {AGAIN}")
    return np.frombuffer(raw, np.uint8, offset=header).reshape(shape)


def read_images(paths: tuple[Path, ...], split: str, *, classes: tuple[str, ...]) -> Split:
    """A split from its image file and its label file."""
    images, labels = paths
    return image_split(labels, read_idx(images, 3), read_idx(labels, 1), classes)
