"""Reading a publisher's file: what is missing, cut short or damaged is said with the file's name."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from varclass.data.errors import DataError
from varclass.data.split import Split

AGAIN = "the file is damaged or cut short: get it again"


def read_bytes(path: Path) -> bytes:
    """All bytes of a file, unpacked where its name ends in .gz."""
    raw = path.read_bytes()
    if path.suffix != ".gz":
        return raw
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise DataError(f"{path}: expected a gzip file; got {error}: {AGAIN}") from error


def read_text(path: Path) -> str:
    """All of a UTF-8 text file, without a byte-order mark; line ends as they are."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}: expected UTF-8 text; line {line} is not: save it as UTF-8 (a download: get it again)"
        ) from error


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text file that are not blank, each with its number from 1."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            yield number, line.removesuffix("\r")


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """All arrays of an .npz file; pickled objects are refused, since reading one runs what is in it."""
    arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                # Whole members, whose CRC zipfile then checks: np.load stops reading where a damaged header says.
                stream = io.BytesIO(archive.read(member))
                name = member.removesuffix(".npy")
                arrays[name] = _read_array(f"{path}: {name}", stream)
                if stream.read(1):
                    raise DataError(f"{path}: {member} has bytes after its array: {AGAIN}")
    except DataError:
        raise
    except Exception as error:  # a damaged zip raises half a dozen types, and which ones depends on the version
        raise DataError(f"{path}: expected an .npz file of plain arrays; got {error}: {AGAIN}") from error
    return arrays


def _read_array(where: str, stream: io.BytesIO) -> np.ndarray:
    try:
        return np.lib.format.read_array(stream, allow_pickle=False)
    except ValueError as error:
        if "Object arrays" not in str(error):
            raise
        wanted = "expected a plain array; got Python objects (dtype object)"
        raise DataError(
            f"{where}: {wanted}: save names with .astype(str), numbers with .astype(float) or .astype(int)"
        ) from error


def image_split(path: Path, images: np.ndarray, labels: np.ndarray, classes: tuple[str, ...]) -> Split:
    """A Split of images with their labels, once they fit each other: uint8 (N, H, W) or (N, H, W, C)."""
    images = checked_images(path, images)
    return Split("image", images, checked_labels(path, labels, len(images), len(classes)), classes)


def checked_images(where: Path | str, images: np.ndarray) -> np.ndarray:
    """uint8 images (N, H, W) or (N, H, W, C) of 1 or 3 channels as (N, H, W, C)."""
    if images.dtype != np.uint8 or images.ndim not in {3, 4} or 0 in images.shape[1:]:
        raise DataError(f"{where}: expected uint8 images (N, height, width[, channels]); got {images.dtype} {images.shape}")
    if images.ndim == 4 and images.shape[3] not in {1, 3}:
        hint = ": put the channels last with .transpose(0, 2, 3, 1)" if images.shape[1] in {1, 3} else ""
        wanted = "images (N, height, width, channels) with 1 or 3 channels"
        raise DataError(f"{where}: expected {wanted}; got {images.shape[3]} channels in {images.shape}{hint}")
    return images if images.ndim == 4 else images[..., None]


def checked_vectors(where: Path | str, vectors: np.ndarray) -> np.ndarray:
    """Numbers (N, features) as float32, once all of them are finite there."""
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite
        small = vectors.astype(np.float32)
    fine = np.isfinite(small)
    if not fine.all():
        rows = np.flatnonzero(~fine.all(axis=1))
        value = vectors[rows[0]][~fine[rows[0]]][0]
        came = f"got {value} in row {rows[0]} ({len(rows)} of {len(vectors)} rows hold NaN, inf or more than float32 can)"
        raise DataError(f"{where}: expected finite floats; {came}: fill or drop them")
    return small


def checked_labels(where: Path | str, labels: np.ndarray, count: int, num_classes: int) -> np.ndarray:
    """Labels as int64 (N,), one for each of `count` inputs, each the number of a class."""
    labels = np.asarray(labels)
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise DataError(f"{where}: expected whole-number labels of shape (N,); got {labels.dtype} {labels.shape}")
    if len(labels) != count:
        raise DataError(f"{where}: expected as many labels as inputs; got {len(labels)} labels and {count} inputs: {AGAIN}")
    if count == 0:
        raise DataError(f"{where}: expected at least one sample; got none")
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= num_classes:
        raise DataError(f"{where}: expected labels from 0 to {num_classes - 1}; got {high if high >= num_classes else low}")
    return labels.astype(np.int64)
