"""What the catalogue knows of a set: what it is, where it is published, which files hold which split, how to read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from varclass.data.split import Split

Reader = Callable[[tuple[Path, ...], str], Split]  # the files of one split, the split's name


@dataclass(frozen=True)
class Source:
    """One download: a file, or an archive with the files that are wanted from it. Paths are relative to the data root."""

    path: str
    urls: tuple[str, ...]  # the publisher's first, mirrors after it
    size: int | None = None  # bytes, to show; None where it is not published. It is the checksum that decides
    checksum: str | None = None  # "md5:..." or "sha256:..."; None where none is published: such a file is "unverified"
    content: str | None = None  # checksum of a .gz file's content: the same data may be compressed by another program
    holds: tuple[str, ...] = ()  # of an archive: what it leaves behind
    into: str = ""  # of an archive: the folder it is extracted to

    @property
    def files(self) -> tuple[str, ...]:
        """What must be there for this download to count as done."""
        return self.holds or (self.path,)


@dataclass(frozen=True)
class Entry:
    """One set of the catalogue."""

    name: str
    about: str
    kind: str
    num_classes: int
    samples: Mapping[str, int]  # split -> how many the published files hold
    license: str
    homepage: str
    read: Reader
    files: Mapping[str, tuple[str, ...]]  # split -> the files (or folders) that hold it, in the order the reader takes them
    sources: tuple[Source, ...] = ()
    instead: Mapping[str, str] = field(default_factory=dict)  # file -> another one that serves as well

    @property
    def size(self) -> int | None:
        """Bytes to download in all, where every source's size is published."""
        sizes = [source.size for source in self.sources]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    def find(self, root: Path, file: str) -> Path | None:
        """Where a wanted file is: itself, unpacked from its .gz, or the one that serves instead."""
        candidates = [file, file.removesuffix(".gz"), self.instead.get(file, file)]
        return next((root / name for name in candidates if (root / name).exists()), None)

    def missing(self, root: Path, split: str) -> list[str]:
        """The files of a split that are not there."""
        return [file for file in self.files[split] if self.find(root, file) is None]

    def present(self, root: Path) -> list[str]:
        """The splits whose files are all there."""
        return [split for split in self.files if not self.missing(root, split)]
