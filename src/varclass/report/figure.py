"""Figures and tables with their heading, caption, legend and numbers to download."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from varclass.report.markup import Markup, join, tag
from varclass.report.palette import swatch

LONG = 24  # characters: a cell with more may break into lines


@dataclass(frozen=True)
class Sheet:
    """Numbers behind a figure or a table: columns, and rows of plain values."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    @property
    def text(self) -> str:
        """As CSV. A text that a spreadsheet would run as a formula starts with an apostrophe."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([[_guarded(value) for value in row] for row in self.rows])
        return file.getvalue()

    def link(self, name: str) -> Markup:
        """A link that saves it. The text is in the link itself: it needs no script, no server and no other file."""
        address = "data:text/csv;charset=utf-8," + quote(self.text, safe=",.:;()/+-_ ").replace(" ", "%20")
        return tag("a", "CSV", href=address, download=f"{name}.csv", class_="csv", aria_label=f"Download {name}.csv")


def slug(text: str) -> str:
    """A text as part of a file's name or of an id.

    >>> slug("ROC curves: svhn/test")
    'roc-curves-svhn-test'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "data"


def figure(
    title: str,
    panels: Iterable[tuple[str, Markup]],
    sheet: Sheet,
    caption: str,
    legend: Markup | None = None,
    columns: int = 0,
) -> Markup:
    """Panels side by side where there is room, in so many columns if it matters, each under its own heading."""
    drawn = [tag("div", tag("h4", heading) if heading else None, drawing, class_="panel") for heading, drawing in panels]
    return tag(
        "figure",
        tag("figcaption", tag("h3", title), sheet.link(slug(title)), class_="head"),
        legend,
        tag("div", drawn, class_=f"panels of-{columns}" if columns else "panels"),
        tag("p", caption, class_="caption"),
        id=f"figure-{slug(title)}",
    )


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], sheet: Sheet, caption: str = "") -> Markup:
    """A table that scrolls by itself where a page is narrow; the first cell of a row is its heading."""
    numeric = [_numeric(value) for value in rows[0]] if rows else [False] * len(columns)
    names = [
        tag("th", name, scope="col", class_="number" if right else None) for name, right in zip(columns, numeric, strict=True)
    ]
    head = tag("thead", tag("tr", names))
    body = tag("tbody", [tag("tr", tag("th", row[0], scope="row"), [_cell(value) for value in row[1:]]) for row in rows])
    return tag(
        "figure",
        tag("figcaption", tag("h3", title), sheet.link(slug(title)), class_="head"),
        tag("div", tag("table", head, body), class_="scroll", tabindex=0, role="region", aria_label=title),
        tag("p", caption, class_="caption") if caption else None,
        id=f"table-{slug(title)}",
    )


def legend(series: Iterable[tuple[int, str]], line: bool = True) -> Markup:
    """What each series is, by its position in the palette."""
    return tag("ul", [tag("li", swatch(position, line), label) for position, label in series], class_="legend")


def columns_for(series: int) -> int:
    """How many panels stand side by side so that those of the same series stand under each other.

    >>> columns_for(3), columns_for(6), columns_for(5)
    (3, 3, 4)
    """
    return next((columns for columns in (4, 3, 2) if series % columns == 0), 4 if series > 1 else 0)


def section(title: str, *children: Any) -> Markup:
    """A part of the page."""
    return tag("section", tag("h2", title), join(*children), id=slug(title))


def _cell(value: Any) -> Markup:
    text, numeric = str(value), _numeric(value)
    kind = ("number ends" if "(" in text else "number") if numeric else "long" if len(text) > LONG else None
    return tag("td", value, class_=kind)


def _numeric(value: Any) -> bool:
    """Numbers, intervals, differences, and what stands for a number that there is not."""
    marks = r"[-\d.,:±%e tof()\xa0]*"
    return bool(re.fullmatch(rf"{marks}\d{marks}( points)?", str(value))) or str(value) in ("no data", "infinite")


def _guarded(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return value
