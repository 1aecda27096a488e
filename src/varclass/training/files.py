"""Files that are whole or not there: written beside their place, flushed to disk, then renamed into it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from varclass.atomic import PARTIAL, replacing

if TYPE_CHECKING:
    from torch import Tensor


def write_text(path: Path, text: str) -> None:
    """Replace a file by this text, or leave it as it was."""
    with replacing(path) as file:
        file.write(text.encode())


def write_json(path: Path, values: Any) -> None:
    """`write_text` of JSON."""
    write_text(path, json.dumps(values, indent=1) + "\n")


def save_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """safetensors' `save_file`, on disk once it returns; a disk that is full is an OSError, as everywhere else."""
    from safetensors import SafetensorError  # noqa: PLC0415
    from safetensors.torch import save_file  # noqa: PLC0415

    try:
        save_file(tensors, path)
    except SafetensorError as error:
        raise OSError(f"{path}: {error}") from error
    with path.open("rb") as file:
        os.fsync(file.fileno())


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill with `save_tensors` and `write_json`; it appears under its name once it is whole, or not at all."""
    partial = path.with_name(path.name + PARTIAL)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        _sync_folder(partial)
        if path.exists():
            shutil.rmtree(path)
        partial.replace(path)
        _sync_folder(path.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def sha256(path: Path) -> str:
    """The digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync_folder(path: Path) -> None:
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
