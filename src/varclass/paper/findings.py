"""What came out: a number beside the paper's, and a claim of the paper with the intervals that decide it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from varclass.metrics.intervals import Interval, over_seeds, paired_difference
from varclass.report.measures import MEASURES, Measure

HOLDS, FAILS, UNDECIDED, ONE_SEED, NO_DATA = "holds", "does not hold", "undecided", "one seed", "not measured"
LOWER, HIGHER, COMPARABLE = "lower", "higher", "comparable"
MARGIN = 0.01  # shares: accuracies within one point of each other are comparable

HYPOTHESES = {
    "H1": "VC improves uncertainty estimation: the model is better calibrated",
    "H2": "VC is more robust to changes of the data distribution",
    "H3": "VC resists adversarial perturbations better",
    "H4": "VC learns better from few samples",
}

Values = dict[int, float]  # by seed


@dataclass(frozen=True)
class Published:
    """A number of the paper, as a share where it is a percentage, with its spread."""

    value: float
    spread: float = math.nan
    kind: str = ""  # of spread: "sd" or "se"


@dataclass(frozen=True)
class Cell:
    """One number of a table: ours over seeds, and the paper's."""

    where: str
    arm: str  # as a reader knows it
    score: str  # a key of MEASURES
    values: Values
    paper: Published | None = None
    n: int = 0  # test samples

    @property
    def ours(self) -> Interval:
        return over_seeds(list(self.values.values()))

    @property
    def measure(self) -> Measure:
        return MEASURES[self.score]


@dataclass(frozen=True)
class Check:
    """A claim in one place: whether one model's score is lower than another's, higher, or comparable.

    Lower or higher holds if the 95% interval of the paired difference over seeds lies on that side of 0, and does not if it
    lies on the other. Comparable holds if the interval lies within the margin, and does not if it lies outside.
    """

    where: str
    score: str
    arm: str
    against: str
    says: str
    values: Values
    others: Values
    margin: float = MARGIN

    @property
    def seeds(self) -> list[int]:
        return sorted(self.values.keys() & self.others.keys())

    @property
    def difference(self) -> Interval:
        return paired_difference([self.values[seed] for seed in self.seeds], [self.others[seed] for seed in self.seeds])

    @property
    def verdict(self) -> str:
        found = self.difference
        if found.n < 2 or math.isnan(found.mean):
            return NO_DATA if found.n == 0 or math.isnan(found.mean) else ONE_SEED
        low, high = found.low, found.high
        if self.says == COMPARABLE:
            holds, fails = -self.margin < low and high < self.margin, high < -self.margin or low > self.margin
        else:
            holds, fails = (high < 0, low > 0) if self.says == LOWER else (low > 0, high < 0)
        return HOLDS if holds else FAILS if fails else UNDECIDED

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        measure, found = MEASURES[self.score], self.difference
        start = f"{self.where}: {measure.name} of {self.arm} {self.says}"
        start += f" {'to' if self.says == COMPARABLE else 'than'} {whose(self.against)}"
        if found.n == 0 or math.isnan(found.mean):
            return f"{start}: {NO_DATA}"
        amount = f"{measure.change(found.mean)}{measure.unit}"
        if found.n == 1:
            return f"{start}: {amount}; one seed has no interval"
        ends = f"{measure.change(found.low)} to {measure.change(found.high)}"
        return f"{start}: {self.verdict}, {amount} ({ends}, n = {found.n} seeds)"


@dataclass(frozen=True)
class Finding:
    """A claim of the paper, and every place where it was checked."""

    claim: str
    checks: Sequence[Check]
    hypothesis: str = ""  # of HYPOTHESES, or none

    @property
    def verdict(self) -> str:
        """The verdict of all its checks: it holds if each does, and does not if one does not."""
        return overall([check.verdict for check in self.checks])

    @property
    def counts(self) -> str:
        """How many checks came out how."""
        return count_verdicts([check.verdict for check in self.checks])


def whose(model: str) -> str:
    """Of a model.

    >>> whose("CE"), whose("CE after temperature scaling"), whose("GM less one point")
    ("CE's", "CE's after temperature scaling", "GM's less one point")
    """
    word = next((word for word in (" after ", " less ") if word in model), " ")
    name, joined, rest = model.partition(word)
    return f"{name}'s{joined}{rest}" if word.strip() else f"{model}'s"


def overall(verdicts: Sequence[str]) -> str:
    """One verdict from several: what was not measured does not count, one that does not hold decides.

    >>> overall([HOLDS, HOLDS]), overall([HOLDS, UNDECIDED]), overall([HOLDS, FAILS]), overall([])
    ('holds', 'undecided', 'does not hold', 'not measured')
    """
    held = [verdict for verdict in verdicts if verdict != NO_DATA]
    for decisive in (FAILS, UNDECIDED, ONE_SEED):
        if decisive in held:
            return decisive
    return HOLDS if held else NO_DATA


def count_verdicts(verdicts: Sequence[str]) -> str:
    """How many of each.

    >>> count_verdicts([HOLDS, UNDECIDED, HOLDS])
    'holds in 2 of 3, undecided in 1'
    """
    found = Counter(verdicts)
    order = [verdict for verdict in (HOLDS, FAILS, UNDECIDED, ONE_SEED, NO_DATA) if found[verdict]]
    total = f" of {len(verdicts)}" if verdicts else ""
    return ", ".join(f"{verdict} in {found[verdict]}{total if i == 0 else ''}" for i, verdict in enumerate(order)) or NO_DATA
