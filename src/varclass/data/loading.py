"""load: a set by its name, or a user's own by its path."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Collection
from pathlib import Path

from varclass.data.catalogue import CATALOGUE
from varclass.data.entry import Entry
from varclass.data.errors import DataError
from varclass.data.readers.arrays import read_own_arrays
from varclass.data.readers.image_folder import read_own_folder
from varclass.data.readers.text_table import FORMATS, has_tables, read_own_tables
from varclass.data.root import data_root
from varclass.data.split import Split, Splits

log = logging.getLogger(__name__)


def load(
    name_or_path: str | Path,
    root: str | Path | None = None,
    *,
    splits: Collection[str] | None = None,
    size: int | tuple[int, int] | None = None,
) -> Splits:
    """All splits of a set of the catalogue, or of a user's own folder, .npz, .csv or .jsonl file.

    `splits` asks for some only: then the files of the others need not be there. `size` (height and width) scales the
    images of a user's own folder. A copy that holds fewer samples than were published is read, and logged as such.

    >>> digits = load("digits")
    >>> {name: (len(split), split.inputs.shape[1:]) for name, split in digits.items()}
    {'train': (1197, (8, 8, 1)), 'test': (600, (8, 8, 1))}
    """
    if str(name_or_path) in CATALOGUE:
        if size is not None:
            raise DataError(f"size is for a folder of your own images; {name_or_path} has its own size")
        entry = CATALOGUE[str(name_or_path)]
        return load_entry(entry, data_root(root) if entry.sources else Path(), splits)
    path = Path(name_or_path).expanduser()
    if not path.exists():
        raise DataError(_unknown(str(name_or_path)))
    held = _load_own(path, size)
    chosen = _chosen(str(path), list(held), splits)
    return {split: held[split] for split in chosen}


def check_present(name: str, root: str | Path | None, splits: Collection[str] | None = None) -> None:
    """A DataError that names what is missing, unless the files of these splits are there; nothing is read."""
    entry = pick(name)
    _present(entry, data_root(root) if entry.sources else Path(), splits)


def load_entry(entry: Entry, root: Path, splits: Collection[str] | None = None) -> dict[str, Split]:
    """The splits of one set of the catalogue under a data root."""
    chosen = _present(entry, root, splits)
    held = {split: read_split(entry, root, split) for split in chosen}
    for split, part in held.items():
        if len(part) != entry.samples[split]:
            log.warning("%s %s: %d samples; %d are published", entry.name, split, len(part), entry.samples[split])
    return held


def read_split(entry: Entry, root: Path, split: str) -> Split:
    """One split whose files are there."""
    return entry.read(tuple(path for file in entry.files[split] if (path := entry.find(root, file))), split)


def pick(name: str) -> Entry:
    """The entry of that name, or a DataError that suggests the nearest."""
    if name not in CATALOGUE:
        raise DataError(_unknown(name))
    return CATALOGUE[name]


def _load_own(path: Path, size: int | tuple[int, int] | None) -> dict[str, Split]:
    if path.is_dir() and not has_tables(path):
        return read_own_folder(path, size)
    if size is not None:
        raise DataError(f"size is for a folder of images; {path} is none")
    if path.is_dir():
        return read_own_tables(path)
    if path.suffix == ".npz":
        return read_own_arrays(path)
    if path.suffix in FORMATS:
        return read_own_tables(path)
    raise DataError(f"{path}: expected a folder, or a file .npz, .csv or .jsonl; got {path.suffix or 'no suffix'!r}")


def _chosen(name: str, known: list[str], splits: Collection[str] | None) -> list[str]:
    if isinstance(splits, str):
        raise DataError(f"splits must be several names; got the text {splits!r}: write [{splits!r}]")
    unknown = [split for split in splits or () if split not in known]
    if unknown:
        raise DataError(f"{name}: expected splits among {', '.join(known)}; got {unknown[0]!r}")
    return [split for split in known if splits is None or split in splits]


def _present(entry: Entry, root: Path, splits: Collection[str] | None) -> list[str]:
    """The splits that were asked for, whose files are all there."""
    chosen = _chosen(entry.name, list(entry.files), splits)
    if any(entry.missing(root, split) for split in chosen):
        raise DataError(_missing(entry, root, chosen))
    return chosen


def _missing(entry: Entry, root: Path, chosen: list[str]) -> str:
    absent = {split: files for split in chosen if (files := entry.missing(root, split))}
    files = list(dict.fromkeys(file for held in absent.values() for file in held))
    here = entry.present(root)
    ask = f" (or ask for the splits that are there: {', '.join(here)})" if here else ""
    addresses = " ".join(source.urls[0] for source in entry.sources if set(source.files) & set(files))
    return (
        f"{entry.name}: no {', '.join(absent)} data: expected {', '.join(files)} under {root}; "
        f"get them with 'varclass data get {entry.name}' or by hand from {addresses}{ask}"
    )


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name.lower().replace("-", "_"), CATALOGUE, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"expected the name of a set or a path that exists; got {name!r}: {hint}The sets are {', '.join(CATALOGUE)}"
