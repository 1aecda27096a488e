"""evaluate: suites on a trained run, their predictions and scores written beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import torch

from varclass.core.options import check_choice
from varclass.evaluation.adversarial import adversarial
from varclass.evaluation.clean import clean
from varclass.evaluation.latents import latents
from varclass.evaluation.outliers import ood
from varclass.evaluation.scorebook import Row, write_rows
from varclass.evaluation.shift import shift
from varclass.evaluation.subject import Options, Subject
from varclass.evaluation.view import write_view
from varclass.training.provenance import provenance
from varclass.training.runs import Run

SUITES: dict[str, Callable[[Subject], Iterator[Row]]] = {
    "clean": clean,
    "shift": shift,
    "ood": ood,
    "adversarial": adversarial,
    "latents": latents,
}


def evaluate(
    run: Run | str | Path,
    suites: Iterable[str] = ("clean",),
    options: Options | None = None,
    watch: Callable[[Row], None] = lambda row: None,
) -> list[Row]:
    """Run suites on a trained run and write its scores.json; `watch` is told of each row as it comes.

    A suite's rows are written when all of it is done, in the place of its earlier ones; other suites' are kept.
    """
    subject = Subject(run if isinstance(run, Run) else Run.open(run), options or Options())
    chosen = list(dict.fromkeys(suites))
    for name in chosen:
        check_choice("suite", name, SUITES)
    found = []
    for name in chosen:
        rows = []
        for row in SUITES[name](subject):
            rows.append(row)
            watch(row)
        write_rows(subject.run, name, rows, provenance(torch.device(subject.options.device)))
        if name == "latents":
            write_view(subject)
        found += rows
    return found
