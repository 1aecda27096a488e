"""compare: every objective on every seed (and training-set size), trained and evaluated alike; stopped, it goes on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from varclass.evaluation.evaluate import check_asked, evaluate
from varclass.evaluation.scorebook import Row
from varclass.evaluation.subject import Options
from varclass.training.launch import Launch
from varclass.training.loop import fit
from varclass.training.reporting import Reporter
from varclass.training.runs import Run
from varclass.training.spec import RunSpec
from varclass.training.task import prepare


def plan(spec: RunSpec, objectives: Sequence[str], seeds: Sequence[int], limits: Sequence[int | None]) -> list[RunSpec]:
    """The specs to train: what differs between them is the objective, the seed and the number of training samples.

    The order takes one seed of everything before the next, so that a comparison that is stopped half-way is fair.
    """
    for name, given in (("objectives", objectives), ("seeds", seeds), ("limits", limits)):
        if not given or len(set(given)) != len(given):
            raise ValueError(f"{name} must be some different values; got {list(given)}")
    return [
        replace(spec, seed=seed, head=replace(spec.head, objective=objective), data=replace(spec.data, limit=limit))
        for seed, limit, objective in itertools.product(seeds, limits, objectives)
    ]


def compare(
    specs: Sequence[RunSpec],
    suites: Sequence[str],
    options: Options,
    runs_dir: str | Path = "runs",
    *,
    launch: Launch | None = None,
    reporter: Callable[[], Reporter] = Reporter,
    began: Callable[[int, RunSpec], None] = lambda position, spec: None,
    watch: Callable[[Row], None] = lambda row: None,
) -> list[Run]:
    """Train and evaluate every spec; what is finished already is not done again."""
    check_asked(suites, options, prepare(specs[0].data, options.data_root, specs[0].seed).task.kind)
    found = []
    for position, spec in enumerate(specs):
        began(position, spec)
        run = fit(spec, runs_dir, data_root=options.data_root, launch=launch or Launch(), reporter=reporter())
        evaluate(run, suites, options, watch, again=False)
        found.append(run)
    return found
