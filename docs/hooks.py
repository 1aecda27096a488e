"""Hooks of the build. A page that would fetch anything from elsewhere is a warning, and so fails a strict build."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio)\b[^>]*?\bsrc=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|<link\b(?![^>]*rel=["']?canonical)[^>]*?\bhref=["']?((?:https?:)?//[^"'\s>]+)"""
)


def outside_requests(page: str) -> list[str]:
    """Addresses that a browser would ask for by itself; links that a reader may follow are not among them.

    >>> outside_requests('<script src="https://cdn.example/a.js"></script> <a href="https://example.org">there</a>')
    ['https://cdn.example/a.js']
    """
    return [source or linked for source, linked in FETCHED.findall(page)]


def nest(markdown: str) -> str:
    """Lists inside lists indented by four, as Python-Markdown wants them, where two are enough elsewhere.

    >>> nest("- a\\n  - b")
    '- a\\n    - b'
    """
    return re.sub(r"^  - ", "    - ", markdown, flags=re.M)


def on_page_markdown(markdown: str, **kwargs: Any) -> str:
    """The page as it is built."""
    return nest(markdown)


def on_post_build(config: Any, **kwargs: Any) -> None:
    """Look through every page that was built."""
    for path in sorted(Path(config["site_dir"]).rglob("*.html")):
        for address in outside_requests(path.read_text()):
            logging.getLogger("mkdocs.hooks").warning("%s asks for %s: a page must need nothing from elsewhere", path, address)
