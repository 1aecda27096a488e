"""Markdown from values: names that users chose are text, whatever characters they hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# What has a meaning inside a line. "&" would begin an entity, "<" a tag, "|" a cell; "://" and "@" make links of addresses.
SPECIAL = re.compile(r"([\\`*_\[\]<>|&~#$!@]|:(?=//))")


def text(value: object) -> str:
    r"""A value as one line of plain text.

    >>> print(text("a|b <img>\n# c"))
    a\|b \<img\> \# c
    """
    return SPECIAL.sub(r"\\\1", " ".join(str(value).split()))


def table(columns: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A table; cells are escaped, columns are ours."""
    rows = ["| " + " | ".join(text(cell) for cell in line) + " |" for line in lines]
    return "\n".join(["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns), *rows])


def fenced(content: str, language: str = "") -> str:
    """A block of code, whose fence is longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`+", content)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{content.rstrip()}\n{fence}"
