"""ImageFiles: images that are decoded when they are read, and look like one uint8 array until then."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from varclass.data.errors import DataError
from varclass.data.progress import track
from varclass.data.split import Inputs

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
IN_MEMORY = 2 * 2**30  # bytes: CIFAR and Tiny-ImageNet fit many times, half a million pathology patches do not
GRAY, DEEP = ("1", "L", "LA"), ("I", "F", "I;16", "I;16B", "I;16L", "I;16N")  # pillow's names for kinds of pixels


class ImageFiles:
    """N image files as uint8 (N, height, width, channels).

    | `files[array]`, `files[2:5]` | other ImageFiles: nothing is read   |
    | `files[3]`                   | one image, decoded                  |
    | `np.asarray(files)`          | all of them, decoded                |

    Without `resize` an image of another size is refused; with it, it is scaled (bilinear) without keeping its proportions.
    """

    def __init__(self, paths: Sequence[Path] | np.ndarray, size: tuple[int, int], channels: int, *, resize: bool = False):
        self.paths = np.asarray([str(path) for path in paths], dtype=object)
        self.size, self.channels, self.resize = size, channels, resize

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, height, width, channels)."""
        return (len(self.paths), *self.size, self.channels)

    @property
    def dtype(self) -> np.dtype[np.uint8]:
        """uint8, always."""
        return np.dtype(np.uint8)

    @property
    def nbytes(self) -> int:
        """Bytes the images take once decoded."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, (int, np.integer)):
            return self.decode(self.paths[index])
        return ImageFiles(self.paths[index], self.size, self.channels, resize=self.resize)

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self.decode(path) for path in self.paths)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("image files become an array only by being read: expected copy=None or True; got False")
        return self.read().astype(dtype or np.uint8, copy=False)

    def read(self, what: str = "") -> np.ndarray:
        """All images, decoded by several threads; with `what`, under a progress bar of that name."""
        images = np.empty(self.shape, dtype=np.uint8)
        with ThreadPoolExecutor() as pool:  # pillow decodes outside the interpreter's lock
            decoded = pool.map(self.decode, self.paths, chunksize=64)
            for position, image in enumerate(track(decoded, what, len(self)) if what else decoded):
                images[position] = image
        return images

    def decode(self, path: str) -> np.ndarray:
        """One image as uint8 (height, width, channels)."""
        from PIL import Image  # noqa: PLC0415

        height, width = self.size
        try:
            with Image.open(path) as image:
                check_depth(path, image.mode)
                if image.size != (width, height) and not self.resize:
                    raise DataError(f"{path}: expected {height}x{width} pixels; got {image.height}x{image.width}")
                pixels = image.convert("L" if self.channels == 1 else "RGB")
        except DataError:
            raise
        except Exception as error:  # pillow's decoders raise OSError, SyntaxError, struct.error and more
            raise DataError(f"{path}: expected an image that pillow can decode; got {error}") from error
        if pixels.size != (width, height):
            pixels = pixels.resize((width, height), Image.Resampling.BILINEAR)
        return np.asarray(pixels, dtype=np.uint8).reshape(height, width, self.channels)


def check_depth(path: str | Path, mode: str) -> None:
    """Refuse pixels of more than 8 bits: pillow would clip them to 255 without a word."""
    if mode in DEEP:
        raise DataError(f"{path}: expected 8 bits per channel; got pillow mode {mode!r}: convert the images first")


def settled(files: ImageFiles, what: str) -> Inputs:
    """The images as an array where they fit comfortably into memory, as files where they do not."""
    return files.read(what) if files.nbytes <= IN_MEMORY else files


def survey(paths: Sequence[Path]) -> tuple[set[tuple[int, int]], int]:
    """From the files' headers alone: the sizes (height, width) there are, and the channels that hold them all (1 or 3)."""
    from PIL import Image  # noqa: PLC0415

    sizes, channels = set(), 1
    for path in track(paths, "looking at images", len(paths)):
        try:
            with Image.open(path) as image:
                check_depth(path, image.mode)
                sizes.add((image.height, image.width))
                channels = channels if image.mode in GRAY else 3
        except DataError:
            raise
        except Exception as error:
            raise DataError(f"{path}: expected an image that pillow can open; got {error}") from error
    return sizes, channels
