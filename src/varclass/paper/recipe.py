"""Recipe: one table or figure of the paper, as the models it needs, what is read off them, and what the paper claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from varclass.evaluation.scorebook import Row
from varclass.evaluation.subject import Subject
from varclass.paper.findings import Cell, Finding
from varclass.paper.measured import Measured
from varclass.report.markup import Markup

Suite = Callable[[Subject], Iterator[Row]]


@dataclass(frozen=True)
class Experiment:
    """Models on one data set with one encoder: which arms, on how many seeds, and what is measured of each.

    `changes` are settings of the runs and `options` of the evaluation, by name; `stands_for` is the paper's encoder where
    this one is smaller.
    """

    data: str
    encoder: str
    arms: tuple[str, ...] = ("ce", "gm", "vc")
    seeds: int = 5
    suites: tuple[str, ...] = ("clean",)
    options: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    stands_for: str = ""
    epochs: int | None = None  # instead of the schedule's

    @property
    def key(self) -> str:
        """What names it in results: data and encoder, other epochs than the schedule's, and the number of samples if few."""
        size = self.changes.get("data.limit") or self.changes.get("data.per_class")
        encoder = self.encoder if self.epochs is None else f"{self.encoder}, {self.epochs} epochs"
        return "/".join(str(part) for part in (self.data, encoder, size) if part)


@dataclass(frozen=True)
class Recipe:
    """How to make one table or figure, and how to read it.

    cells       the numbers of the table, each with the paper's beside it
    findings    the paper's claims, each with the intervals that decide it
    figures     what the page shows below the table
    suites      what is measured beyond the suites of `varclass evaluate`
    """

    name: str
    label: str  # in the paper's source
    title: str
    claim: str
    quick: tuple[Experiment, ...]
    full: tuple[Experiment, ...]
    cells: Callable[[Measured], list[Cell]]
    findings: Callable[[Measured], list[Finding]]
    figures: Callable[[Measured], Sequence[Markup | None]] = lambda measured: ()
    suites: Mapping[str, Suite] = field(default_factory=dict)

    def experiments(self, full: bool) -> tuple[Experiment, ...]:
        """Those of the full or of the quick form."""
        return self.full if full else self.quick
