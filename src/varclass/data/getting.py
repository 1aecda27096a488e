"""get: download what a set needs, check it, unpack it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from varclass.data.archive import extract
from varclass.data.checksums import matches
from varclass.data.download import Report, download
from varclass.data.entry import Entry, Source
from varclass.data.errors import DataError

Watch = Callable[[Source], Report]  # a progress bar for one download


def unwatched(source: Source) -> Report:
    """Progress that nobody looks at."""
    return lambda have, total: None


def get(entry: Entry, root: Path, watch: Watch = unwatched, *, force: bool = False) -> dict[str, str]:
    """Bring a set's files under the data root, and say of each download what was done.

    | present    | it was there, and as published where a checksum says so              |
    | verified   | it was downloaded, and has the published checksum                    |
    | unverified | it was downloaded, and there is no published checksum to compare to  |
    """
    try:
        return {
            source.path: "present" if not force and is_there(entry, source, root) else _get(source, root, watch(source))
            for source in entry.sources
        }
    except OSError as error:
        came = f"expected a place to write data to; got {error.strerror or error}"
        raise DataError(f"{error.filename or root}: {came}: name another with --data-root or $VARCLASS_DATA") from error


def is_there(entry: Entry, source: Source, root: Path) -> bool:
    """Whether a download is done: its files are there, and a plain file has its checksum."""
    found = [entry.find(root, file) for file in source.files]
    if not all(found):
        return False
    return bool(source.holds) or verdict(source, found[0]) != "changed"  # type: ignore[arg-type]


def verdict(source: Source, path: Path) -> str:
    """How a file compares with what is published: "verified", "changed", or "unverified" where nothing can be compared."""
    if source.holds or source.checksum is None:
        return "unverified"
    if path.name == Path(source.path).name and matches(path, source.checksum):
        return "verified"
    if source.content is not None:
        return "verified" if matches(path, source.content, unpack=True) else "changed"
    return "changed" if path.name == Path(source.path).name else "unverified"


def _get(source: Source, root: Path, report: Report) -> str:
    path = root / source.path
    if not (source.holds and _is_whole(source, path)):  # an archive stays behind only when its extraction was interrupted
        download(source.urls, path, source.checksum, report)
    if source.holds:
        extract(path, root / source.into)
        absent = [file for file in source.holds if not (root / file).exists()]
        if absent:
            raise DataError(f"{path}: expected it to hold {absent[0]}; it does not")
        path.unlink()  # the data are there; the archive would double their room
    return "verified" if source.checksum else "unverified"


def _is_whole(source: Source, path: Path) -> bool:
    """Whether an archive is there: it has its name only once it has arrived, and the checksum says whether it is the one."""
    return path.exists() and (source.checksum is None or matches(path, source.checksum))
