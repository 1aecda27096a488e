"""history.jsonl: a line per logged step and per epoch, appended as they happen and readable while the run goes on."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from varclass.atomic import naming
from varclass.training.files import write_text


def finite(row: dict[str, Any]) -> dict[str, Any]:
    """The row without the numbers that JSON cannot hold, such as the latent moments of a prior that has none.

    >>> finite({"step": 1, "score": {"nll": 0.5, "latent_mean": math.nan}})
    {'step': 1, 'score': {'nll': 0.5}}
    """
    kept = {name: finite(value) if isinstance(value, dict) else value for name, value in row.items()}
    return {name: value for name, value in kept.items() if not isinstance(value, float) or math.isfinite(value)}


class History:
    """The log of one run. A resumed run forgets what it logged after the checkpoint, since it will log it again."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, **row: Any) -> None:
        """Add a line; what is not a finite number is left out."""
        with naming(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(finite(row)) + "\n")

    def rewind(self, step: int) -> None:
        """Keep the lines up to this step. A last line cut short by a crash goes too."""
        rows = [row for row in self.rows() if row["step"] <= step]
        if self.path.exists():
            write_text(self.path, "".join(json.dumps(row) + "\n" for row in rows))

    def rows(self) -> list[dict[str, Any]]:
        """Every whole line, in order."""
        if not self.path.exists():
            return []
        found = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:  # cut short
                break
        return found
