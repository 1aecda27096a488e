"""A progress bar where a person is watching, nothing where nobody is."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def track(items: Iterable[T], what: str, total: int) -> Iterator[T]:
    """The items again, with a bar on stderr if it is a terminal.

    >>> list(track("ab", "letters", 2))
    ['a', 'b']
    """
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import track as bar  # noqa: PLC0415

    yield from bar(items, description=what, total=total, console=Console(stderr=True), transient=True)
