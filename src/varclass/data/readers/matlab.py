"""Numeric arrays in MATLAB's level 5 files.

scipy reads these too, and far more kinds of them; but its parser trusts the lengths it finds, and a damaged file can end the
whole process. Here every length is checked against what is there.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from varclass.data.errors import DataError
from varclass.data.files import AGAIN, read_bytes

HEADER = 128
MATRIX, COMPRESSED = 14, 15  # kinds of elements
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}  # kinds of numbers
CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}  # of an array
COMPLEX = 0x08


class Damage(Exception):
    """Something in the file contradicts something else."""


def read_matlab(path: Path) -> dict[str, np.ndarray]:
    """The real, dense numeric arrays of a MATLAB file by their names, in the types and shapes they had there."""
    raw = read_bytes(path)
    if len(raw) < HEADER or raw[124:128] != b"\x00\x01IM":
        raise DataError(f"{path}: expected a MATLAB file of level 5, little-endian; got {raw[:20]!r}: {AGAIN}")
    arrays: dict[str, np.ndarray] = {}
    try:
        for kind, data in _elements(memoryview(raw)[HEADER:]):
            for name, array in _arrays(kind, data):
                if name in arrays:
                    raise Damage(f"{name!r} is there twice")
                arrays[name] = array
    except (Damage, zlib.error) as error:
        raise DataError(f"{path}: expected a MATLAB file; got {error}: {AGAIN}") from error
    return arrays


def _arrays(kind: int, data: memoryview) -> Iterator[tuple[str, np.ndarray]]:
    if kind == COMPRESSED:
        unpacker = zlib.decompressobj()
        held = unpacker.decompress(data)
        if not unpacker.eof or unpacker.unused_data:
            raise Damage("a compressed part that does not end where it should")
        inner = list(_elements(memoryview(held)))
        if len(inner) != 1 or inner[0][0] == COMPRESSED:
            raise Damage("a compressed part that does not hold one array")
        yield from _arrays(*inner[0])
    elif kind == MATRIX:
        yield _matrix(data)
    else:
        raise Damage(f"an element of kind {kind}")


def _matrix(data: memoryview) -> tuple[str, np.ndarray]:
    """The name and the values of one array element: flags, sizes, name, numbers."""
    parts = list(_elements(data))
    if len(parts) != 4 or [kind for kind, _ in parts[:3]] != [6, 5, 1] or len(parts[0][1]) != 8 or len(parts[1][1]) % 4:
        raise Damage("an array that is not plain numbers")
    (_, flags), (_, sizes), (_, name), (stored, numbers) = parts
    if flags[0] not in CLASSES or flags[1] & COMPLEX or stored not in STORED:
        raise Damage("an array that is not real numbers")
    shape = [int(size) for size in np.frombuffer(sizes, "<i4")]
    dtype = np.dtype("<" + STORED[stored])
    if not shape or min(shape) < 0 or len(numbers) != math.prod(shape) * dtype.itemsize:
        raise Damage(f"{len(numbers)} bytes for an array of {'x'.join(map(str, shape))} numbers of {dtype.itemsize} bytes")
    # MATLAB stores whole numbers in the smallest type that holds them, and says apart from it what the array is
    values = np.frombuffer(numbers, dtype).astype(CLASSES[flags[0]], copy=False)
    return bytes(name).decode("latin-1"), values.reshape(shape, order="F")


def _elements(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """(kind, bytes) of the elements that follow each other, each with its length before it, padded to 8 bytes."""
    at = 0
    while at < len(data):
        if len(data) - at < 8:
            raise Damage("the beginning of an element")
        kind, length = struct.unpack_from("<II", data, at)
        if kind >> 16:  # up to four bytes, packed into the tag itself
            kind, length, start, end = kind & 0xFFFF, kind >> 16, at + 4, at + 8
            if length > 4:
                raise Damage("a packed element of more than 4 bytes")
        else:
            start = at + 8
            end = start + length + (-length % 8 if kind != COMPRESSED else 0)
        if end > len(data):
            raise Damage(f"{len(data) - start} bytes of an element that has {length}")
        yield kind, data[start : start + length]
        at = end
