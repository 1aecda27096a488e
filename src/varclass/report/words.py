"""Comparison: two groups in one score, as a verdict and a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from varclass.metrics.intervals import Interval
from varclass.report.measures import Measure
from varclass.report.pooling import paired

BETTER, WORSE, UNDECIDED, SAME, ONE_SEED, NO_DATA = "better", "worse", "undecided", "same", "one seed", "no data"


@dataclass(frozen=True)
class Comparison:
    """A group against its baseline in one score: means over the seeds both have, and the paired difference."""

    label: str
    against: str
    where: str
    measure: Measure
    value: Interval
    other: Interval
    difference: Interval
    seeds: tuple[int, ...]

    @classmethod
    def of(
        cls, label: str, against: str, where: str, measure: Measure, values: dict[int, float], others: dict[int, float]
    ) -> Comparison:
        """From one number per seed of each."""
        seeds = tuple(sorted(values.keys() & others.keys()))
        return cls(label, against, where, measure, *paired(values, others), seeds)

    @property
    def verdict(self) -> str:
        """Better or worse only where the interval of the difference leaves out 0."""
        found = self.difference
        if math.isnan(found.mean) or found.n == 0:
            return NO_DATA
        if found.n == 1:
            return ONE_SEED
        if found.mean == 0 and found.sd == 0:
            return SAME
        if not (found.low > 0 or found.high < 0):
            return UNDECIDED
        return BETTER if found.mean * self.measure.better > 0 else WORSE

    @property
    def sentence(self) -> str:
        """What came out, by how much, and how sure that is."""
        measure = self.measure
        if not self.difference.n:
            return f"{measure.name} ({self.where}): no data to compare, for no seed has both."
        values = f"{measure.text(self.value.mean)} against {measure.text(self.other.mean)}"
        return f"{measure.name} {values} ({self.where}): {self._outcome()}."

    def _outcome(self) -> str:
        found, verdict = self.difference, self.verdict
        amount = f"{self.measure.change(abs(found.mean))}{self.measure.unit}"
        if verdict == NO_DATA:
            return "no data to compare"
        if verdict == ONE_SEED:
            word = BETTER if found.mean * self.measure.better > 0 else WORSE
            return f"{f'{word} by {amount}' if found.mean else 'the same'}; one seed: no interval"
        if verdict == SAME:
            return f"the same in all {found.n} seeds"
        if not math.isfinite(found.low):
            return f"no interval over {found.n} seeds, for not every value is finite"
        if verdict == UNDECIDED:
            return f"no difference that {found.n} seeds can show (95% interval {self._ends(found.low, found.high)})"
        return f"{verdict} by {amount} (95% interval {self._ends(*sorted((abs(found.low), abs(found.high))))})"

    def _ends(self, low: float, high: float) -> str:
        return f"{self.measure.change(low)} to {self.measure.change(high)}{self.measure.unit}"


def overview(comparisons: Iterable[Comparison]) -> str:
    """One sentence over all scores of a group: in what it is better, worse, and where nothing can be said."""
    found = list(comparisons)
    seeds = max((len(each.seeds) for each in found), default=0)
    starts = {
        BETTER: "better in",
        WORSE: "worse in",
        SAME: "the same in",
        UNDECIDED: f"no difference that {seeds} seeds can show in",
        ONE_SEED: "one seed, which says nothing of the next: no intervals for",
        NO_DATA: "no data for",
    }
    parts = []
    for verdict, start in starts.items():
        held = [each for each in found if each.verdict == verdict]
        if len(held) == len(found) > 3:
            parts.append(f"{start} any of {len(held)} comparisons")
        elif held:
            places = dict.fromkeys(each.where for each in held)
            names = [(", ".join(each.measure.name for each in held if each.where == place), place) for place in places]
            parts.append(f"{start} " + ", ".join(f"{name} ({place})" for name, place in names))
    return "; ".join(parts) + "."
