"""Doctests in docstrings, fenced for the reference: without it Markdown reads >>> as three quotations."""

from __future__ import annotations

from typing import Any

import griffe


def fence(text: str) -> str:
    """Each run of lines from a prompt to the next blank line, between fences.

    >>> fence("Adds.\\n\\n>>> 1 + 1\\n2\\n\\nMore.").splitlines()
    ['Adds.', '', '```pycon', '>>> 1 + 1', '2', '```', '', 'More.']
    """
    out: list[str] = []
    inside = False
    for line in [*text.splitlines(), ""]:
        if not inside and line.startswith(">>> "):
            out.append("```pycon")
            inside = True
        elif inside and not line.strip():
            out.append("```")
            inside = False
        out.append(line)
    return "\n".join(out[:-1])


class Doctests(griffe.Extension):  # type: ignore[misc]
    """What mkdocstrings loads: every docstring passes through `fence`."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fence(obj.docstring.value)
