"""scores.json beside a run: rows of numbers, each saying what it is of. A suite that runs again replaces its own rows."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from varclass.training.files import write_json
from varclass.training.runs import Run

FORMAT = 1


@dataclass(frozen=True)
class Row:
    """One measurement: the suite, how p(y|x) was made, under which condition, on how many samples, and the numbers.

    `curves` holds what a figure needs: bins, histograms, ROC points.
    """

    suite: str
    method: str
    condition: dict[str, Any]
    n: int
    scores: dict[str, Any]
    curves: dict[str, Any] = field(default_factory=dict)


def read_rows(run: Run) -> list[Row]:
    """Every row that was measured for a run."""
    path = _path(run)
    if not path.exists():
        return []
    try:
        held = json.loads(path.read_text())
        if held["format"] != FORMAT:
            raise ValueError(f"expected format {FORMAT}; got {held['format']!r}")
        return [Row(**_numbers(row)) for row in held["rows"]]
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: expected the scores of a run; got {error!r}: evaluate it again") from None


def write_rows(run: Run, suite: str, rows: list[Row], stamp: str, provenance: dict[str, Any]) -> None:
    """Put the rows of one suite in the place of its earlier ones; `stamp` says of which model and options they are."""
    kept = [row for row in read_rows(run) if row.suite != suite]
    spec, stamps = run.spec, read_stamps(run) | {suite: stamp}
    about = {"data": spec.data.name, "encoder": spec.encoder.name, "objective": spec.head.objective, "seed": spec.seed}
    held = {"format": FORMAT, "run": run.path.name, **about, "provenance": provenance, "stamps": stamps}
    write_json(_path(run), held | {"rows": [plain(asdict(row)) for row in kept + rows]})


def read_stamps(run: Run) -> dict[str, str]:
    """The stamp of every suite that was measured."""
    return dict(json.loads(_path(run).read_text()).get("stamps", {})) if _path(run).exists() else {}


def _path(run: Run) -> Path:
    return run.path / "scores.json"


def plain(value: Any) -> Any:
    """Values as JSON has them; NaN, which it lacks, as null."""
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    return None if isinstance(value, float) and math.isnan(value) else value


def _numbers(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"scores": {name: math.nan if value is None else value for name, value in row["scores"].items()}}
