"""One model of a recipe: trained, measured for all who ask, its rows made light for a file of thousands."""

from __future__ import annotations

import hashlib
import json
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from varclass.evaluation.evaluate import Suite, evaluate
from varclass.evaluation.subject import Options
from varclass.paper.measured import KEPT, MeasuredRun
from varclass.paper.recipe import Experiment, Recipe
from varclass.report.reading import Evaluated, Row, read_run
from varclass.training.launch import Launch
from varclass.training.loop import DEFAULT_LAUNCH, fit
from varclass.training.reporting import Reporter
from varclass.training.runs import Run
from varclass.training.spec import RunSpec
from varclass.training.trainer import NonFinite

HEAVY = ("shift", "adversarial", "ood")  # suites whose rows carry no curves into the results: there are too many


@dataclass(frozen=True)
class Place:
    """Where data, runs and results lie, and where to compute."""

    results: Path
    runs: Path
    data_root: str | None = None
    launch: Launch = DEFAULT_LAUNCH
    device: str = "cpu"
    keep_runs: bool = True  # without, a model's weights are removed once all is measured
    processes: int = 1  # models at once, on the same device


@dataclass(frozen=True)
class Job:
    """One model, and who wants what of it."""

    spec: RunSpec
    experiment: Experiment
    arm: str
    wanted: tuple[tuple[Recipe, Experiment], ...]


@dataclass(frozen=True)
class Ask:
    """What one recipe still wants of a model."""

    recipe: str
    experiment: Experiment
    options: Options
    suites: Mapping[str, Suite]  # the recipe's own


@dataclass(frozen=True)
class Task:
    """One model to train and measure: all that another process needs to know."""

    job: Job
    asks: tuple[Ask, ...]
    full: bool
    place: Place


def train_and_measure(task: Task, reporter: Reporter, warn: Callable[[str], None]) -> Iterator[tuple[str, MeasuredRun]]:
    """What each recipe that asks gets of one model, as soon as it is measured."""
    job, place = task.job, task.place
    try:
        run = fit(job.spec, place.runs, data_root=place.data_root, launch=place.launch, reporter=reporter)
    except NonFinite as error:
        run = Run.open(place.runs / job.spec.id)
        warn(f"{job.experiment.key}, {job.arm}, seed {job.spec.seed} has no numbers: {error}")
    for ask in task.asks:
        if run.finished:
            evaluate(run, ask.experiment.suites, ask.options, again=False, suites_beside=ask.suites)
        yield ask.recipe, measured_run(run, job, ask.experiment, ask.options, task.full)
    if not place.keep_runs:
        shutil.rmtree(run.path)


def stamp_of(options: Options) -> str:
    """A digest of every option a score can depend on."""
    held = asdict(options) | {"data_root": None, "device": None}
    return hashlib.sha256(json.dumps(held, sort_keys=True).encode()).hexdigest()[:16]


def measured_run(run: Run, job: Job, experiment: Experiment, options: Options, full: bool) -> MeasuredRun:
    """What a run's folder holds of some suites, as results keep it."""
    found = read_run(run.path) if run.finished else unevaluated(run)
    rows = [row for row in found.rows if row.suite in experiment.suites]
    return MeasuredRun(
        id=job.spec.id,
        experiment=experiment.key,
        arm=job.arm,
        seed=job.spec.seed,
        full=full,
        spec=found.spec,
        record={name: found.record[name] for name in KEPT if found.record.get(name) is not None},
        provenance={name: value for name, value in found.provenance.items() if name != "command"},  # it may name a home
        rows=tuple(_light(row) for row in rows),
        stamps=dict.fromkeys(experiment.suites, stamp_of(options)),
        view=_light_view(found.view) if "latents" in experiment.suites and job.spec.seed == 0 else None,  # one is drawn
    )


def unevaluated(run: Run) -> Evaluated:
    """A run that diverged: what it is, without a number."""
    spec = tomllib.loads((run.path / "spec.toml").read_text(encoding="utf-8"))
    return Evaluated(run.path, spec, run.record, [], [], run.record.get("provenance", {}), None)


def _light(row: Row) -> Row:
    return replace(row, curves={}) if row.suite in HEAVY else row


def _light_view(view: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if view is None else view | {"samples": {}, "mistakes": []}
