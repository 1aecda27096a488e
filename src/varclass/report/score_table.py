"""Tables of scores: a line per group and condition, mean and interval over seeds, and n, bins, split and seeds with each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from varclass.report.figure import Sheet, table
from varclass.report.groups import Group
from varclass.report.markup import Markup
from varclass.report.measures import MEASURES
from varclass.report.pooling import Key, by_seed, pooled, rows_of, span
from varclass.report.reading import Row

INTERVAL = "Mean ± half the width of the 95% t-interval over seeds; a single seed has none."


@dataclass(frozen=True)
class Line:
    """One line of a table: the cells it starts with, and the rows its scores are made of."""

    cells: tuple[str, ...]
    group: Group
    suite: str
    method: str = "raw"
    keys: tuple[Key, ...] | None = None
    match: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> list[Row]:
        """Every row behind it, of all seeds."""
        found = [row for run in self.group.runs.values() for row in rows_of(run, self.suite, self.method, **self.match)]
        return found if self.keys is None else [row for row in found if row.key in self.keys]

    @property
    def about(self) -> tuple[str, str, str, str]:
        """n, bins, split and seeds."""
        rows = self.rows
        bins = [row.scores["bins"] for row in rows if "bins" in row.scores]
        splits = sorted({str(row.condition.get("split", "test")) for row in rows})
        seeds = sorted(seed for seed, run in self.group.runs.items() if rows_of(run, self.suite, self.method, **self.match))
        return span(row.n for row in rows), span(bins) if bins else "", ", ".join(splits), ", ".join(map(str, seeds))


def score_table(
    title: str, leads: Sequence[str], lines: Iterable[Line], scores: Sequence[str], caption: str = ""
) -> Markup | None:
    """A table of these scores; None if no line has a row. The CSV has every number of it, and each seed's."""
    held = [line for line in lines if line.rows]
    if not held:
        return None
    binned = any(line.about[1] for line in held)
    shown, long = [], []
    for line in held:
        n, bins, split, seeds = line.about
        found = {score: pooled(line.group, score, line.suite, line.method, keys=line.keys, **line.match) for score in scores}
        cells = [MEASURES[score].interval(interval) for score, interval in found.items()]
        shown.append([*line.cells, *cells, n, *([bins] if binned else []), split, seeds])
        for score, interval in found.items():
            each = by_seed(line.group, score, line.suite, line.method, keys=line.keys, **line.match)
            numbers = [interval.mean, interval.low, interval.high, interval.sd, interval.n, interval.note]
            values = " ".join(f"{seed}:{value!r}" for seed, value in each.items())
            long.append([*line.cells, score, *numbers, n, bins, split, values])
    columns = [*leads, *(MEASURES[score].heading for score in scores), "n", *(["bins"] if binned else []), "split", "seeds"]
    names = [*leads, "score", "mean", "low", "high", "sd", "seeds", "note", "n", "bins", "split", "seed:value"]
    return table(title, columns, shown, Sheet(names, long), f"{caption} {INTERVAL}".strip())
