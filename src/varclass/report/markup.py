"""HTML and SVG as values: whatever is not Markup is escaped on its way in, so that no name or text can become a tag."""

from __future__ import annotations

import json
import math
from html import escape
from typing import Any

VOID = {"br", "img", "input", "link", "meta"}


class Markup(str):
    """Text that may stand in a page as it is."""

    __slots__ = ()


def join(*children: Any) -> Markup:
    """Children after each other: Markup as it is, lists one by one, None not at all, everything else escaped.

    >>> join("a < b", None, [Markup("<br>"), 1])
    'a &lt; b<br>1'
    """
    parts: list[str] = []
    for child in children:
        if isinstance(child, Markup):
            parts.append(child)
        elif isinstance(child, (list, tuple)):
            parts.append(join(*child))
        elif child is not None:
            parts.append(escape(str(child)))
    return Markup("".join(parts))


def tag(name: str, /, *children: Any, **attributes: Any) -> Markup:
    """An element. `class_` is class, `aria_label` aria-label; None leaves an attribute out and True gives it no value.

    >>> tag("p", "1 < 2", class_="note", hidden=True, id=None)
    '<p class="note" hidden>1 &lt; 2</p>'
    """
    written = "".join(_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    if name in VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def number(value: float) -> str:
    """A coordinate: as few digits as a screen can show.

    >>> number(2.5049), number(-0.001), number(120.0)
    ('2.5', '0', '120')
    """
    return f"{round(float(value), 2) + 0.0:.2f}".rstrip("0").rstrip(".")


def data_block(name: str, value: Any) -> Markup:
    """JSON for the page's script to read. "<" is written as JSON can, so that no text in it ends the element."""
    text = json.dumps(finite(value), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return Markup(f'<script type="application/json" id="{escape(name)}">{text}</script>')


def finite(value: Any) -> Any:
    """The value with what JSON lacks, NaN and infinities, as None."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _attribute(key: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    if value is True:
        return f" {key}"
    return f' {key}="{escape(number(value) if isinstance(value, float) else str(value))}"'
