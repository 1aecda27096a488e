"""verify: is a set complete, unchanged and readable, and does it hold what the catalogue says?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from varclass.data.entry import Entry, Source
from varclass.data.errors import DataError
from varclass.data.getting import verdict
from varclass.data.images import ImageFiles
from varclass.data.loading import read_split
from varclass.data.progress import track
from varclass.data.split import Inputs


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: a file, or a split."""

    what: str
    state: str  # "ok", "unverified" (there is nothing published to compare with) or "wrong"
    detail: str


def verify(entry: Entry, root: Path) -> list[Finding]:
    """All findings, files first; a set is as it should be if none is "wrong"."""
    files = [_file(entry, source, root, file) for source in entry.sources for file in source.files]
    return files + [_split(entry, root, split) for split in entry.files]


def _file(entry: Entry, source: Source, root: Path, file: str) -> Finding:
    path = entry.find(root, file)
    if path is None:
        return Finding(file, "wrong", f"missing; published at {source.urls[0]}")
    name = str(path.relative_to(root))
    if source.holds:
        return Finding(name, "unverified", "part of an archive; no checksum of its own is published")
    state = verdict(source, path)
    size = path.stat().st_size
    if state == "changed":
        expected = f"{source.checksum}" + (f", {source.size} bytes" if source.size else "")
        return Finding(name, "wrong", f"not the published file: expected {expected}; got {size} bytes")
    if state == "verified":
        same = size == source.size or source.size is None
        return Finding(name, "ok", "as published" if same else "the published content, compressed anew")
    return Finding(name, "unverified", f"{size} bytes; no checksum is published")


def _split(entry: Entry, root: Path, split: str) -> Finding:
    if entry.missing(root, split):
        return Finding(split, "wrong", "cannot be read: files are missing")
    try:
        held = read_split(entry, root, split)
        _decode(held.inputs, f"{entry.name} {split}")
    except (DataError, OSError) as error:
        return Finding(split, "wrong", str(error))
    counts = f"{len(held)} samples, {len(held.classes)} classes"
    if len(held) != entry.samples[split] or len(held.classes) != entry.num_classes:
        return Finding(split, "wrong", f"expected {entry.samples[split]} samples, {entry.num_classes} classes; got {counts}")
    return Finding(split, "ok", counts)


def _decode(inputs: Inputs, what: str) -> None:
    """Read every image that the reader left in its file, a few at a time."""
    if isinstance(inputs, ImageFiles):
        starts = range(0, len(inputs), 1024)
        for start in track(starts, what, len(starts)):
            inputs[start : start + 1024].read()
