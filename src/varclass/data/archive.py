"""Taking a publisher's archive apart without letting it write anywhere else."""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from varclass.data.errors import DataError

DAMAGE = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
Member = tuple[str, IO[bytes]]


def extract(archive: Path, into: Path) -> None:
    """Unpack a .zip or .tar.gz into a folder; a member that would leave it, or is no plain file, refuses the whole.

    Everything goes to a folder beside the goal first: an interrupted extraction leaves nothing that looks complete.
    """
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into, prefix=".extracting-") as held:
        try:
            for name, stream in _zip(archive) if archive.suffix == ".zip" else _tar(archive):
                goal = Path(held) / inside(archive, name)
                goal.parent.mkdir(parents=True, exist_ok=True)
                with goal.open("wb") as file:
                    shutil.copyfileobj(stream, file, 1 << 20)
        except DAMAGE as error:
            raise DataError(f"{archive}: expected an archive; got {error}: it is damaged, get it again") from error
        for entry in Path(held).iterdir():
            _move(entry, into / entry.name)


def inside(archive: Path, name: str) -> PurePosixPath:
    """The member's path, if it stays inside the folder it is extracted to.

    >>> inside(Path("set.zip"), "set/train/1.png")
    PurePosixPath('set/train/1.png')
    >>> inside(Path("set.zip"), "../elsewhere")
    Traceback (most recent call last):
    varclass.data.errors.DataError: set.zip: its member '../elsewhere' would be written outside: nothing was extracted
    """
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or ":" in name or not path.parts:
        raise DataError(f"{archive}: its member {name!r} would be written outside: nothing was extracted")
    return path


def _move(source: Path, goal: Path) -> None:
    """Put a file or a whole folder in its place at once; merge into a folder that is there already."""
    if source.is_dir() and goal.is_dir():
        for entry in source.iterdir():
            _move(entry, goal / entry.name)
    else:
        os.replace(source, goal)


def _zip(archive: Path) -> Iterator[Member]:
    with zipfile.ZipFile(archive) as held:
        for member in held.infolist():
            if not member.is_dir() and not member.filename.startswith("__MACOSX/"):
                with held.open(member) as stream:
                    yield member.filename, stream


def _tar(archive: Path) -> Iterator[Member]:
    with tarfile.open(archive) as held:
        for member in held:
            if member.isdir():
                continue
            stream = held.extractfile(member) if member.isfile() else None
            if stream is None:
                raise DataError(f"{archive}: its member {member.name!r} is a link or a device: nothing was extracted")
            yield member.name, stream
