"""What every page has around its parts: style, script, the policy that allows nothing else, contents, footer."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from importlib import resources

import varclass
from varclass.report.markup import Markup, tag
from varclass.report.palette import variables


def frame(title: str, parts: Sequence[Markup | None]) -> str:
    """A whole page as text. Each part is a section, or whatever else has an id and then a heading of the second level."""
    held = [part for part in parts if part]
    style, script = variables() + _file("page.css"), _file("page.js")
    policy = f"default-src 'none'; img-src data:; style-src {_digest(style)}; script-src {_digest(script)}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        tag("style", Markup(style)),
    )
    top = tag("header", tag("h1", title), tag("button", "Theme", type="button", id="theme", hidden=True), _contents(held))
    tip = tag("div", id="tip", role="status", hidden=True)
    foot = tag("footer", tag("p", f"varclass {varclass.__version__}"))
    body = tag("body", top, tag("main", held), foot, tip, tag("script", Markup(script)))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def heading(part: Markup) -> Markup:
    """The first heading of the second level in a part; empty if there is none."""
    return Markup(part.partition("<h2>")[2].partition("</h2>")[0])


def under(prefix: str, part: Markup) -> Markup:
    """A part whose ids and downloads start with a prefix, so that two of a kind can stand in one page.

    >>> under("mnist", tag("p", tag("a", "id=1", download="scores.csv"), id="scores"))
    '<p id="mnist-scores"><a download="mnist-scores.csv">id=1</a></p>'
    """
    # texts cannot match: a quote is escaped in them, and one that ends a text of a data block is followed by , : ] or }
    return Markup(re.sub(r'( (?:id|download)="| aria-label="Download )(?=[a-z0-9])', rf"\1{prefix}-", part))


def _contents(parts: Sequence[Markup]) -> Markup:
    links = [tag("a", heading(part), href=f"#{_first_id(part)}") for part in parts]
    return tag("nav", links, aria_label="Contents")


def _first_id(part: Markup) -> str:
    return part.partition(' id="')[2].partition('"')[0]


def _file(name: str) -> str:
    return (resources.files("varclass.report") / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """The one script and the one style that the page allows: whatever else got in would do nothing."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
