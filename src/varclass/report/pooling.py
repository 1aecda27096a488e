"""Scores over seeds: one number per seed, from rows that every compared run has, then mean and interval."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from varclass.metrics.intervals import Interval, over_seeds, paired_difference
from varclass.report.groups import Group
from varclass.report.reading import Evaluated, Row

Key = tuple[tuple[str, Any], ...]


def rows_of(run: Evaluated, suite: str, method: str = "raw", /, **match: Any) -> list[Row]:
    """The rows of a run whose condition holds what is asked for."""
    found = (row for row in run.rows if row.suite == suite and row.method == method)
    return [row for row in found if all(row.condition.get(name) == value for name, value in match.items())]


def shared_keys(groups: Iterable[Group], suite: str, method: str = "raw", /, **match: Any) -> list[Key]:
    """The conditions that every run with any such row has, in the order of the first: only those make a fair mean."""
    held = [[row.key for row in rows_of(run, suite, method, **match)] for group in groups for run in group.runs.values()]
    held = [keys for keys in held if keys]
    if not held:
        return []
    return [key for key in dict.fromkeys(held[0]) if all(key in keys for keys in held)]


def by_seed(
    group: Group, score: str, suite: str, method: str = "raw", /, keys: Iterable[Key] | None = None, **match: Any
) -> dict[int, float]:
    """A score for each seed, averaged over the rows that match (and are among `keys`); seeds without a row are left out."""
    chosen = None if keys is None else set(keys)
    found = {}
    for seed, run in sorted(group.runs.items()):
        rows = [row for row in rows_of(run, suite, method, **match) if chosen is None or row.key in chosen]
        values = [row.scores[score] for row in rows if score in row.scores]
        if values:
            with np.errstate(invalid="ignore"):
                found[seed] = float(np.mean(values))
    return found


def pooled(
    group: Group, score: str, suite: str, method: str = "raw", /, keys: Iterable[Key] | None = None, **match: Any
) -> Interval:
    """The mean over seeds with its interval."""
    return over_seeds(list(by_seed(group, score, suite, method, keys=keys, **match).values()))


def paired(values: dict[int, float], others: dict[int, float]) -> tuple[Interval, Interval, Interval]:
    """Mean of each over the seeds they share, and their difference seed by seed."""
    seeds = sorted(values.keys() & others.keys())
    one, two = [values[seed] for seed in seeds], [others[seed] for seed in seeds]
    return over_seeds(one), over_seeds(two), paired_difference(one, two)


def counts(group: Group, suite: str, method: str = "raw", /, **match: Any) -> str:
    """n of the rows that match: one number, or the least and the most."""
    return span(row.n for run in group.runs.values() for row in rows_of(run, suite, method, **match))


def span(values: Iterable[float]) -> str:
    """One number, or the least and the most.

    >>> span([600, 600]), span([100, 150]), span([])
    ('600', '100 to 150', '0')
    """
    distinct = sorted(set(values)) or [0]
    ends = [distinct[0]] if len(distinct) == 1 else [distinct[0], distinct[-1]]
    return " to ".join(f"{end:g}" if abs(end) < 1e6 else str(end) for end in ends)
