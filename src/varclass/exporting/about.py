"""About: what is known of a model that is exported, for its card and for the file's own metadata."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from torch import Tensor

import varclass
from varclass.evaluation.scorebook import Row
from varclass.exporting.outputs import INPUT, OUTPUTS

FORMAT = 1


@dataclass(frozen=True)
class About:
    """A model in words. `facts` are lines of the card's first table; `rows` are what was measured."""

    name: str
    classes: tuple[str, ...]
    input: str  # what goes in
    facts: tuple[tuple[str, str], ...] = ()
    head: str = ""
    settings: str = ""  # TOML
    rows: tuple[Row, ...] = ()
    tokenizer: dict[str, int] | None = None
    checked_on: str = "the example given"

    def labels(self, example: Tensor) -> dict[str, Any]:
        """What a program needs beside the file: class names, and what goes in and comes out."""
        shape = ["batch", *example.shape[1:]]
        kind = str(example.dtype).removeprefix("torch.")
        return {
            "format": FORMAT,
            "name": self.name,
            "varclass": varclass.__version__,
            "classes": list(self.classes),
            INPUT: {"name": INPUT, "dtype": kind, "shape": shape, "meaning": self.input},
            "outputs": OUTPUTS,
            **({"tokenizer": self.tokenizer} if self.tokenizer else {}),
        }

    def labels_text(self, example: Tensor) -> str:
        """`labels` as JSON."""
        return json.dumps(self.labels(example), indent=1, ensure_ascii=False) + "\n"
