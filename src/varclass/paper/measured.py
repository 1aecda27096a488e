"""Measured: the results of a recipe, one file that grows: what several invocations and machines measured, run by run."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from varclass.evaluation.scorebook import plain
from varclass.paper.arms import ARMS
from varclass.report.reading import Evaluated, Row
from varclass.training.files import write_text

FORMAT = 1
DIGITS = 6  # of a score, significant: what a file of thousands of rows need not carry further
KEPT = ("task", "samples", "steps", "epochs", "validation", "best_epoch", "head", "seconds", "device", "processes", "error")


@dataclass(frozen=True)
class MeasuredRun:
    """One trained model: what it is, and the rows that were measured of it."""

    id: str
    experiment: str  # Experiment.key
    arm: str
    seed: int
    full: bool
    spec: dict[str, Any]
    record: dict[str, Any]
    provenance: dict[str, Any]
    rows: tuple[Row, ...] = ()
    stamps: dict[str, str] = field(default_factory=dict)  # by suite: a digest of the options it was measured with
    view: dict[str, Any] | None = None

    @property
    def place(self) -> tuple[str, str, int, bool]:
        """Where it stands among the results: there is one run in each place."""
        return self.experiment, self.arm, self.seed, self.full

    @property
    def diverged(self) -> bool:
        """Whether its loss became infinite or NaN: it was run, and there is nothing to measure."""
        return bool(self.record.get("error"))

    @property
    def evaluated(self) -> Evaluated:
        """As the sections of a report take it."""
        return Evaluated(Path(self.id), self.spec, self.record, [], list(self.rows), self.provenance, self.view)

    def joined(self, other: MeasuredRun) -> MeasuredRun:
        """This run with the suites that the other has measured, in the place of its own where both have."""
        rows = [row for row in self.rows if row.suite not in other.stamps]
        return replace(other, rows=(*rows, *other.rows), stamps=self.stamps | other.stamps, view=other.view or self.view)


@dataclass(frozen=True)
class Measured:
    """The runs of one recipe."""

    recipe: str
    runs: tuple[MeasuredRun, ...] = ()

    def __iter__(self) -> Iterator[MeasuredRun]:
        return iter(self.runs)

    @property
    def experiments(self) -> list[str]:
        """What was measured, that with the most runs first: tables may be cut short."""
        counted = Counter(run.experiment for run in self.runs)
        return [experiment for experiment, _ in counted.most_common()]

    @property
    def arms(self) -> list[str]:
        """Those that were measured, in the order of `ARMS`."""
        found = dict.fromkeys(run.arm for run in self.runs)
        return [*(arm for arm in ARMS if arm in found), *(arm for arm in found if arm not in ARMS)]

    def of(self, experiment: str, arm: str | None = None) -> Measured:
        """The runs of one experiment, or of one arm of it."""
        return replace(self, runs=tuple(run for run in self.runs if run.experiment == experiment and arm in (None, run.arm)))

    def only(self, full: bool) -> Measured:
        """The runs of the full or of the quick form."""
        return replace(self, runs=tuple(run for run in self.runs if run.full == full))

    def rows(self, experiment: str, arm: str, suite: str, method: str = "raw", /, **match: Any) -> list[tuple[int, Row]]:
        """(seed, row) of every row whose condition holds what is asked for."""
        return [
            (run.seed, row)
            for run in self.of(experiment, arm)
            for row in run.rows
            if (row.suite, row.method) == (suite, method)
            and all(row.condition.get(name) == value for name, value in match.items())
        ]

    def values(
        self, experiment: str, arm: str, score: str, suite: str = "clean", method: str = "raw", /, **match: Any
    ) -> dict[int, float]:
        """A score by seed, averaged over the rows that match."""
        found: dict[int, list[float]] = {}
        for seed, row in self.rows(experiment, arm, suite, method, **match):
            if score in row.scores:
                found.setdefault(seed, []).append(row.scores[score])
        return {seed: float(np.mean(each)) for seed, each in sorted(found.items())}

    def n(self, experiment: str, arm: str, suite: str = "clean", method: str = "raw", /, **match: Any) -> int:
        """Test samples of the rows that match; the fewest if they differ, 0 without a row."""
        return min((row.n for _, row in self.rows(experiment, arm, suite, method, **match)), default=0)

    def has(self, run_id: str, suite: str, stamp: str, full: bool) -> bool:
        """Whether a suite of a run was measured with these options, for this form."""
        return any((run.id, run.full, run.stamps.get(suite)) == (run_id, full, stamp) for run in self.runs)

    def merged(self, runs: Iterable[MeasuredRun]) -> Measured:
        """With these runs beside those there are. One that has the place of another but other settings takes it over."""
        held = {run.place: run for run in self.runs}
        for run in runs:
            there = held.get(run.place)
            held[run.place] = there.joined(run) if there and there.id == run.id else run
        return replace(self, runs=tuple(held.values()))

    def save(self, path: Path) -> None:
        """Write it, a run to a line, so that a version control system can show what was added."""
        lines = ",\n".join(json.dumps(_packed(run), separators=(",", ":"), allow_nan=False) for run in self.runs)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, f'{{"format":{FORMAT},"recipe":{json.dumps(self.recipe)},"runs":[\n{lines}\n]}}\n')


def read_measured(path: Path, recipe: str) -> Measured:
    """The results in a file; none if there is no file."""
    if not path.is_file():
        return Measured(recipe)
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        if (held["format"], held["recipe"]) != (FORMAT, recipe):
            raise ValueError(f"expected format {FORMAT} and recipe {recipe!r}; got {held['format']!r} and {held['recipe']!r}")
        return Measured(recipe, tuple(_unpacked(run) for run in held["runs"]))
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: expected the results of a recipe; got {error!r}: move it away to begin anew") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _packed(run: MeasuredRun) -> dict[str, Any]:
    held = dict(vars(run))
    held["record"] = {name: value for name, value in run.record.items() if name in KEPT}
    held["rows"] = [
        [row.suite, row.method, row.condition, row.n, row.scores] + ([row.curves] if row.curves else []) for row in run.rows
    ]
    return plain(_rounded(held))


def _unpacked(held: dict[str, Any]) -> MeasuredRun:
    rows = []
    for suite, method, condition, n, scores, *curves in held["rows"]:
        numbers = {name: math.nan if value is None else float(value) for name, value in scores.items()}
        rows.append(Row(suite, method, condition, int(n), numbers, curves[0] if curves else {}))
    return MeasuredRun(**held | {"rows": tuple(rows)})


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(each) for each in value]
    if isinstance(value, np.ndarray):
        return _rounded(value.tolist())
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else math.nan
    return value
