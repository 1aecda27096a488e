"""What a run tells whoever watches it."""

from __future__ import annotations

from typing import Any

from varclass.training.batches import Plan
from varclass.training.runs import Run
from varclass.training.task import TrainingData
from varclass.training.validation import Score


class Reporter:
    """Says nothing; the command line has one that does."""

    def open(self, run: Run) -> None:
        """This is the run that was asked for; what begins may be a model that only helps to settle it."""

    def begin(self, run: Run, plan: Plan, start: int, data: TrainingData) -> None:
        """Training starts, at this step."""

    def step(self, step: int, row: dict[str, Any] | None) -> None:
        """A step is done; every so often with what was logged."""

    def epoch(self, epoch: int, score: Score | None) -> None:
        """An epoch is done; with the validation score, if there is validation data."""

    def message(self, text: str) -> None:
        """Something a user should know."""

    def end(self) -> None:
        """Training is over, one way or another."""
