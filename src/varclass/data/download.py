"""Downloads that go on where they stopped, and are checked before they count."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from varclass.data.errors import DataError

CHUNK = 1 << 14  # bytes; of a piece that does not arrive whole nothing is kept
TIMEOUT = (15, 60)  # seconds to connect, and between two pieces
Report = Callable[[int, int | None], None]  # bytes so far, bytes in all where the server says


def download(urls: tuple[str, ...], path: Path, checksum: str | None, report: Report) -> None:
    """Bring a file to `path` from the first address that gives it; what fails the checksum is deleted.

    What came before a connection broke waits in `<path>.part`, for the next attempt or the next run. A file that is there
    already gives way only to one that has arrived whole.
    """
    resume = Resume(path.with_name(path.name + ".part"), trusted=checksum is not None, report=report)
    problems = []
    with _made(path.parent), _set_aside(path):
        for url in urls:
            problem = _attempt(url, path, checksum, resume)
            if problem is None:
                return
            problems.append(f"{url}: {problem}")
        had = resume.length()
        kept = f" ({had} bytes are kept: the same command goes on from there)" if had else ""
        raise DataError(f"{path.name}: could not be downloaded{kept}: {'; '.join(problems)}")


def _attempt(url: str, path: Path, checksum: str | None, resume: Resume) -> str | None:
    """Download from one address for as long as it moves on; the reason if it does not arrive."""
    import pooch  # type: ignore[import-untyped]  # noqa: PLC0415
    import requests  # noqa: PLC0415

    pooch.get_logger().setLevel("ERROR")
    while True:
        had = resume.length()
        try:
            pooch.retrieve(url, checksum, fname=path.name, path=path.parent, downloader=resume)
            return None
        except requests.RequestException as error:
            if resume.length() <= had:
                return _reason(error)
        except ValueError as error:
            message = f"{path.name}: what {url} gave is not the published file: expected {checksum}; deleted"
            raise DataError(message) from error


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """A folder made where there is none, and gone again with its parents if nothing came into it."""
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        with suppress(OSError):  # not empty
            for each in new:
                each.rmdir()


@contextmanager
def _set_aside(path: Path) -> Iterator[None]:
    """Out of the way while another is fetched (pooch keeps what is there), back again if none comes."""
    old = path.with_name(path.name + ".old")
    if path.exists():
        os.replace(path, old)
    try:
        yield
    finally:
        if path.exists():
            old.unlink(missing_ok=True)
        elif old.exists():
            os.replace(old, path)


@dataclass
class Resume:
    """A downloader for pooch: appends to a .part file by HTTP Range, then hands the whole over."""

    part: Path
    trusted: bool  # a checksum follows: a part of unknown age may be continued
    report: Report

    @property
    def mark(self) -> Path:
        """Holds what the server called this version of the file, so that two versions are never joined."""
        return self.part.with_name(self.part.name + ".version")

    def length(self) -> int:
        """Bytes that are there already."""
        return self.part.stat().st_size if self.part.exists() else 0

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        """Download `url` to `output_file`."""
        import requests  # noqa: PLC0415

        have = self._usable()
        headers = {"Accept-Encoding": "identity"}  # byte ranges count the file's bytes, not those of a compressed transfer
        if have:
            headers["Range"] = f"bytes={have}-"
            if self.mark.exists():
                headers["If-Range"] = self.mark.read_text()
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
            partial = answer.status_code == requests.codes.partial_content
            elsewhere = partial and not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
            if have and (elsewhere or answer.status_code == requests.codes.requested_range_not_satisfiable):
                self._discard()  # the part is all of the file, or longer, or not this file's: a fresh start settles which
                return self(url, output_file, pooch)
            answer.raise_for_status()
            self._append(answer, have if partial else 0)
        os.replace(self.part, output_file)
        self._discard()
        return None

    def _usable(self) -> int:
        """Bytes to go on from: none where nothing would notice that the file has changed meanwhile."""
        return self.length() if self.trusted or self.mark.exists() else 0

    def _append(self, answer: Any, start: int) -> None:
        version = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
        if version and not version.startswith("W/"):  # a weak tag does not promise the same bytes
            self.mark.write_text(version)
        else:
            self.mark.unlink(missing_ok=True)
        length = answer.headers.get("Content-Length")
        total = start + int(length) if length else None
        with self.part.open("ab") as file:
            file.truncate(start)
            for piece in answer.iter_content(CHUNK):
                file.write(piece)
                self.report(file.tell(), total)

    def _discard(self) -> None:
        self.part.unlink(missing_ok=True)
        self.mark.unlink(missing_ok=True)


def _reason(error: Any) -> str:
    """What went wrong, in a few words: requests wraps its reasons into one another."""
    if error.response is not None:
        return f"{error.response.status_code} {error.response.reason}"
    if "IncompleteRead" in str(error):
        return "the connection broke"
    while inner := [each for each in (getattr(error, "reason", None), *error.args) if isinstance(each, Exception)]:
        error = inner[0]
    return str(error).rsplit(": ", 1)[-1] or type(error).__name__
