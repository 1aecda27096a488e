"""Tables of scores: a line per group and condition, mean and interval over seeds, and n, bins, split and seeds with each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from varclass.metrics.intervals import Interval
from varclass.report.figure import Sheet, table
from varclass.report.groups import Group
from varclass.report.markup import Markup
from varclass.report.measures import MEASURES
from varclass.report.pooling import Key, by_seed, pooled, rows_of, span
from varclass.report.reading import Row

INTERVAL = "Mean ± half the width of the 95% t-interval over seeds; a single seed has none."
ABOUT = ("n", "bins", "split", "seeds")
CUT = "In parentheses: its ends, where impossible values are cut off."


@dataclass(frozen=True)
class Line:
    """One line of a table: the cells it starts with, and the rows its scores are made of."""

    cells: tuple[str, ...]
    group: Group
    suite: str
    method: str = "raw"
    keys: tuple[Key, ...] | None = None
    match: dict[str, Any] = field(default_factory=dict)
    of: dict[str, int] = field(default_factory=dict)  # by score: out of how many

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
    """A table of these scores; None if no line has a row. The CSV has every number of it, and each seed's.

    Bins and split stand in the caption where all lines have the same.
    """
    held = [line for line in lines if line.rows]
    if not held:
        return None
    abouts = [line.about for line in held]
    told = {name: {about[place] for about in abouts} for place, name in enumerate(ABOUT)}
    kept = [name for name in ABOUT if name in ("n", "seeds") or len(told[name]) > 1]
    shown, long = [], []
    for line, (n, bins, split, seeds) in zip(held, abouts, strict=True):
        found = {score: pooled(line.group, score, line.suite, line.method, keys=line.keys, **line.match) for score in scores}
        beside = dict(zip(ABOUT, (n, bins, split, seeds), strict=True))
        shown.append([*line.cells, *(_cell(line, *each) for each in found.items()), *(beside[name] for name in kept)])
        for score, interval in found.items():
            each = by_seed(line.group, score, line.suite, line.method, keys=line.keys, **line.match)
            numbers = [interval.mean, interval.low, interval.high, interval.sd, interval.n, interval.note]
            values = " ".join(f"{seed}:{value!r}" for seed, value in each.items())
            long.append([*line.cells, score, *numbers, n, bins, split, values])
    columns = [*leads, *(MEASURES[score].heading for score in scores), *kept]
    names = [*leads, "score", "mean", "low", "high", "sd", "seeds", "note", "n", "bins", "split", "seed:value"]
    alike = [f"{each} {name}" for name in ("bins", "split") for each in told[name] if each and name not in kept]
    cut = CUT if any("(" in cell for row in shown for cell in row[len(leads) :]) else ""
    text = (caption, f"{', '.join(alike).capitalize()}." if alike else "", INTERVAL, cut)
    return table(title, columns, shown, Sheet(names, long), " ".join(each for each in text if each))


def _cell(line: Line, score: str, found: Interval) -> str:
    most = line.of.get(score)
    text = MEASURES[score].cut(found, most)
    return text if most is None else f"{text} of {most}"
