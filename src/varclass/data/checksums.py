"""Checksums of files, and of what is in a .gz file."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from pathlib import Path
from typing import IO

PIECE = 1 << 20


def matches(path: Path, checksum: str, *, unpack: bool = False) -> bool:
    """Whether a file, or with `unpack` the content of a .gz file, has a checksum like "md5:..." or "sha256:...".

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "empty"
    >>> _ = file.write_bytes(b"")
    >>> matches(file, "md5:d41d8cd98f00b204e9800998ecf8427e")
    True
    """
    algorithm, _, expected = checksum.partition(":")
    try:
        with gzip.open(path) if unpack and path.suffix == ".gz" else path.open("rb") as file:
            return _digest(file, algorithm) == expected
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return False


def _digest(file: IO[bytes] | gzip.GzipFile, algorithm: str) -> str:
    digest = hashlib.new(algorithm, usedforsecurity=False)  # against damage, not against forgery
    while piece := file.read(PIECE):
        digest.update(piece)
    return digest.hexdigest()
