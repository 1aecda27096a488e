"""A run's progress in a terminal: a bar with rate and time left, a line per epoch where nobody watches."""

from __future__ import annotations

import logging
import os
import time
import warnings
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from varclass.core.consistency import FEWEST
from varclass.training.batches import Plan
from varclass.training.reporting import Reporter
from varclass.training.runs import Run
from varclass.training.task import TrainingData
from varclass.training.validation import Score


def quiet_libraries() -> None:
    """What libraries say about themselves does not interrupt the progress; what this one logs is a line of its own."""
    logging.basicConfig(format="note: %(message)s", level=logging.WARNING)
    for name in ("torch", "accelerate"):
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="accelerate|torch")


def described(head: str) -> str:
    r"""A head in a line: of what `repr` shows, what it was made with.

    >>> described("VariationalHead(\n  8, 2, latent_dim=2\n  (projection): Identity()\n)")
    'VariationalHead(8, 2, latent_dim=2)'
    """
    return f"VariationalHead({head.splitlines()[1].strip()})"


class Progress(Reporter):
    """Everything on stderr, and only in the main process. Where many runs follow each other it is `brief`: the bar alone."""

    def __init__(self, brief: bool = False) -> None:
        self.brief = brief
        self.watched = int(os.environ.get("RANK", "0")) == 0
        self.console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)  # paths are no markup
        self.bar: Bar | None = None
        self.path: Path | None = None
        self.trained = False

    def open(self, run: Run) -> None:
        self.path = run.path

    def begin(self, run: Run, plan: Plan, start: int, data: TrainingData) -> None:
        self.plan, self.trained = plan, True
        held_out = len(data.validation) if data.validation else 0
        where = f", from step {start}" if start else ""
        samples = f"{len(data.train)} training samples, {held_out} for validation"
        if not self.brief:
            self.console.print(f"{run.path}: {samples}, {plan.steps} steps{where}")
            if run.path == self.path:
                self.console.print(f"head: {described(run.record['head'])}")
        columns = (
            TextColumn("epoch {task.fields[epoch]}/" + str(plan.epochs)),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[said]}"),
        )
        self.bar = Bar(*columns, console=self.console, disable=not self.console.is_terminal, transient=self.brief)
        epoch = min(start // plan.steps_per_epoch + 1, plan.epochs)
        self.task = self.bar.add_task("", total=plan.steps, completed=start, epoch=epoch, rate="", said="")
        self.bar.start()
        self.began, self.first = time.monotonic(), start

    def step(self, step: int, row: dict[str, Any] | None) -> None:
        if self.bar is None:
            return
        rate = (step - self.first) * self.plan.batch_size / max(time.monotonic() - self.began, 1e-9)
        self.bar.update(self.task, completed=step, rate=f"{rate:,.0f} samples/s")
        if row is not None:
            self.bar.update(self.task, said=f"-log p(y|z) {row['posterior']:.3f}")

    def epoch(self, epoch: int, score: Score | None) -> None:
        if self.bar is None:
            return
        self.bar.update(self.task, epoch=min(epoch + 2, self.plan.epochs))
        if score is not None and not self.brief and (not self.console.is_terminal or epoch + 1 == self.plan.epochs):
            accuracy, latent = f"accuracy {score.accuracy:.2%}", f"latent variance {score.latent_variance:.2f}"
            self.console.print(f"epoch {epoch + 1}/{self.plan.epochs}: validation NLL {score.nll:.4f}, {accuracy}, {latent}")

    def message(self, text: str) -> None:
        if self.watched:
            self.console.print(f"note: {text}")

    def end(self) -> None:
        if self.bar is not None:
            self.bar.stop()

    def summary(self, run: Run) -> None:
        """The last lines: what came out, and where it lies."""
        if not self.watched:
            return
        record = run.record
        if not self.trained:
            self.console.print(f"already trained: {run.path}")
        score = record.get("validation")
        if score:
            settled = "separation" in score and "cross_fit" not in record and score["n"] >= FEWEST
            by_it = ", which it was settled by" if settled else ""
            text = f"validation (n={score['n']}{by_it}): accuracy {score['accuracy']:.2%}, NLL {score['nll']:.4f}"
            self.console.print(f"{text}; {record['seconds']:.1f} s, {record['epochs']} epochs")
        if crossed := record.get("cross_fit"):
            text = f"cross-fitted (n={crossed['n']}, {crossed['folds']} folds): accuracy {crossed['accuracy']:.2%}"
            self.console.print(f"{text}, NLL {crossed['nll']:.4f}; {record['seconds'] + crossed['seconds']:.1f} s in all")
        if self.trained and "separation=auto" in record["head"]:
            self.console.print(f"head: {described(record['head'])}")
        self.console.print(str(run.path))
