"""From recipes to results: every model they need is trained once, measured for all of them, and written down at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache

from varclass.data.errors import DataError
from varclass.data.loading import check_present, pick
from varclass.evaluation.subject import NOISE, Options
from varclass.paper.arms import ARMS, settings_of
from varclass.paper.measured import Measured, MeasuredRun, read_measured
from varclass.paper.measuring import Ask, Job, Place, Task, stamp_of, train_and_measure
from varclass.paper.parallel import at_once
from varclass.paper.recipe import Experiment, Recipe
from varclass.paper.schedules import make_spec
from varclass.training.defaults import complete
from varclass.training.reporting import Reporter
from varclass.training.spec import RunSpec, override


@dataclass(frozen=True)
class Request:
    """What was asked for: the form, and what a user changed of it."""

    full: bool = False
    seeds: int | None = None
    epochs: int | None = None
    arms: tuple[str, ...] = ()
    only: tuple[str, ...] = ()  # data sets; all if none is named
    encoders: tuple[str, ...] = ()


def plan(recipes: Sequence[Recipe], request: Request) -> list[Job]:
    """The models to train, one seed of everything before the next, so that what is stopped half-way is a fair comparison."""
    jobs: dict[str, Job] = {}
    for recipe in recipes:
        for experiment in chosen(recipe, request):
            for seed in range(experiment.seeds):
                for arm in experiment.arms:
                    spec = spec_of(experiment, arm, seed)
                    held = jobs.get(spec.id, Job(spec, experiment, arm, ()))
                    jobs[spec.id] = replace(held, wanted=(*held.wanted, (recipe, experiment)))
    return sorted(jobs.values(), key=lambda job: job.spec.seed)


def chosen(recipe: Recipe, request: Request) -> list[Experiment]:
    """The experiments of a recipe, as the request changes them."""
    found = []
    for experiment in recipe.experiments(request.full):
        arms = tuple(arm for arm in experiment.arms if not request.arms or arm in request.arms)
        wanted = (not request.only or experiment.data in request.only) and (
            not request.encoders or experiment.encoder in request.encoders
        )
        if arms and wanted:
            found.append(replace(experiment, arms=arms, seeds=request.seeds or experiment.seeds, epochs=request.epochs))
    return found


def spec_of(experiment: Experiment, arm: str, seed: int) -> RunSpec:
    """The spec of one model, complete: it names the run, and a later default cannot change what it was."""
    changes = dict(experiment.changes) | settings_of(
        arm, experiment.data, experiment.encoder, experiment.changes.get("data.limit")
    )
    spec = override(make_spec(experiment.data, experiment.encoder, changes, seed), {"training.epochs": experiment.epochs})
    return complete(spec, pick(experiment.data).kind)


def lacking(job: Job, data_root: str | None) -> str:
    """The message that says which files of its data are missing; empty if none is."""
    entry = pick(job.spec.data.name)
    wanted = [split for split in ("train", "test", *job.experiment.options.get("splits", ())) if split in entry.files]
    try:
        check_present(entry.name, data_root, wanted)
    except DataError as error:
        return str(error)
    return ""


def reproduce(
    recipes: Sequence[Recipe],
    request: Request,
    place: Place,
    *,
    reporter: Callable[[], Reporter] = Reporter,
    began: Callable[[int, int, Job], None] = lambda position, total, job: None,
    warn: Callable[[str], None] = lambda message: None,
) -> dict[str, Measured]:
    """Train and measure what the results files lack. Each model is written to them as soon as it is measured.

    `began` is told of each model when it begins; of several at once, when it has ended.
    """
    said: set[str] = set()

    def once(message: str) -> None:
        if message not in said:
            said.add(message)
            warn(message)

    jobs = available(plan(recipes, request), place, once)
    held = {recipe.name: read_measured(place.results / f"{recipe.name}.json", recipe.name) for recipe in recipes}
    asked = [(job, asks) for job in jobs if (asks := unmeasured(job, held, place, request.full, once))]
    left = [Task(replace(job, wanted=()), asks, request.full, place) for job, asks in asked]
    found = in_turn(left, reporter, began, warn) if place.processes == 1 else at_once(left, place.processes, began, warn)
    for name, run in found:
        held[name] = held[name].merged([run])
        held[name].save(place.results / f"{name}.json")
    return held


def in_turn(
    tasks: Sequence[Task], reporter: Callable[[], Reporter], began: Callable[[int, int, Job], None], warn: Callable[[str], None]
) -> Iterator[tuple[str, MeasuredRun]]:
    """One model after the other, by recipe as it is measured."""
    for position, task in enumerate(tasks):
        began(position, len(tasks), task.job)
        yield from train_and_measure(task, reporter(), warn)


def available(jobs: Sequence[Job], place: Place, warn: Callable[[str], None]) -> list[Job]:
    """The jobs whose data is there; what is missing is said once, and refused if nothing is left."""
    if not jobs:
        raise ValueError("nothing to do: expected data sets, encoders and objectives that a recipe has; got none of them")
    missing = {name: message for name, message in _lacking_by_data(jobs, place).items() if message}
    left = [job for job in jobs if job.spec.data.name not in missing]
    if not left:
        raise ValueError(next(iter(missing.values())))
    for message in missing.values():
        warn(f"left out: {message}")
    return left


def _lacking_by_data(jobs: Iterable[Job], place: Place) -> dict[str, str]:
    first = {job.spec.data.name: job for job in reversed(list(jobs))}
    return {name: lacking(job, place.data_root) for name, job in first.items()}


def unmeasured(
    job: Job, held: Mapping[str, Measured], place: Place, full: bool, warn: Callable[[str], None]
) -> tuple[Ask, ...]:
    """For whom this model is still to be measured, and with which options."""
    found = []
    for recipe, experiment in job.wanted:
        options = options_of(experiment, job.arm, place, warn)
        stamp = stamp_of(options)
        if not all(held[recipe.name].has(job.spec.id, suite, stamp, full) for suite in experiment.suites):
            found.append(Ask(recipe.name, experiment, options, recipe.suites))
    return tuple(found)


def options_of(experiment: Experiment, arm: str, place: Place, warn: Callable[[str], None]) -> Options:
    """The options of an evaluation; sets of outliers that are not there are left out, and said, and refused if none is left."""
    known = {each.name for each in fields(Options)}
    given = dict(experiment.options) | dict(ARMS[arm].options)
    assert given.keys() <= known, given
    options = Options(data_root=place.data_root, device=place.device, **given)
    missing = {name: message for name in options.outliers if (message := _lacking_outliers(name, place.data_root))}
    if missing and len(missing) == len(options.outliers):
        raise ValueError(next(iter(missing.values())))
    for message in missing.values():
        warn(f"left out: {message}")
    return replace(options, outliers=tuple(name for name in options.outliers if name not in missing))


@cache
def _lacking_outliers(name: str, data_root: str | None) -> str:
    try:
        if name != NOISE:
            check_present(name, data_root, ["test"])
    except DataError as error:
        return str(error)
    return ""
