"""Numbers, runs and schedules in words, the same on a page and in markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from varclass.paper.arms import GRID
from varclass.paper.findings import Cell
from varclass.paper.measured import Measured, MeasuredRun
from varclass.paper.reading import label_of, name_of, place_of
from varclass.paper.recipe import Experiment, Recipe
from varclass.report.groups import settings_of
from varclass.report.measures import Measure, short
from varclass.report.pooling import span

NOTHING = "-"
KINDS = {"sd": "standard deviation", "se": "standard error"}
QUICK = (
    "Quick form: small encoders, few training samples and few seeds, for a CPU. It shows that the recipe works; "
    "it is no measurement of the paper's models."
)
SHOWN = ("head.beta",)  # of every model that has it, whether or not the others differ


def forms(measured: Measured) -> list[Measured]:
    """The runs of the full form, then of the quick one, where there are any: the two are never pooled."""
    return [part for part in (measured.only(True), measured.only(False)) if part.runs]


def is_quick(part: Measured) -> bool:
    """Whether these are runs of the quick form."""
    return not all(run.full for run in part)


def all_cells(recipe: Recipe, measured: Measured) -> list[Cell]:
    """The numbers of every form."""
    return [cell for part in forms(measured) for cell in recipe.cells(part)]


def command(recipe: Recipe, full: bool) -> str:
    """What runs a form of a recipe."""
    return f"varclass reproduce {recipe.name}{' --full' if full else ''}"


def papers(cell: Cell) -> str:
    """The paper's number with its spread, in as many digits as the paper has."""
    if cell.paper is None:
        return NOTHING
    measure, paper = cell.measure, cell.paper
    if math.isnan(paper.spread):
        return _written(measure, paper.value, 0)
    return f"{_written(measure, paper.value, 1)} ± {_written(measure, paper.spread, 1)}"


def ours(cell: Cell) -> str:
    """Our mean over seeds with its interval; one seed has none."""
    return cell.measure.interval(cell.ours)


def spread_of(cells: Iterable[Cell]) -> str:
    """What the paper's spread is; empty if it has none."""
    kinds = dict.fromkeys(cell.paper.kind for cell in cells if cell.paper and not math.isnan(cell.paper.spread))
    return " or ".join(KINDS.get(kind, kind) for kind in kinds)


def _written(measure: Measure, value: float, least: int) -> str:
    if not math.isfinite(value):
        return measure.bare(value)
    text = f"{100 * value if measure.percent else value:.6g}"
    digits = max(len(text.partition(".")[2]), least if measure.percent else measure.digits)
    return f"{100 * value:.{digits}f}" if measure.percent else short(value, digits)


@dataclass(frozen=True)
class Made:
    """How the numbers of one experiment were made."""

    place: str
    models: str
    seeds: str
    training: str  # samples
    held_out: str
    epochs: str
    batch: str
    optimizer: str
    lr: str
    schedule: str
    precision: str
    stands_for: str  # the paper's encoder, where ours is another

    @property
    def sentence(self) -> str:
        """All of it in one line."""
        instead = f" in the place of {self.stands_for}" if self.stands_for else ""
        noun = "seed" if self.seeds == "1" else "seeds"
        return (
            f"{self.place}{instead}: {self.models}; {self.seeds} {noun}, {self.training} training samples and {self.held_out} "
            f"held out, {self.epochs} epochs, batches of {self.batch}, {self.optimizer}, lr {self.lr}, {self.schedule}, "
            f"{self.precision}"
        )


def how_made(recipe: Recipe, part: Measured) -> list[Made]:
    """Each experiment of one form, as its runs were: from their specs and records, not from what the recipe plans."""
    planned = {each.key: each for each in recipe.experiments(not is_quick(part))}
    return [_made(part, experiment, planned.get(experiment)) for experiment in part.experiments]


def _made(part: Measured, experiment: str, planned: Experiment | None) -> Made:
    held = part.of(experiment)
    samples = [run.record.get("samples", {}) for run in held]
    return Made(
        place=place_of(part, experiment),
        models=" / ".join(label_of(arm) for arm in held.arms),
        seeds=_seeds(held, planned),
        training=span(each.get("train", 0) for each in samples),
        held_out=span(each.get("validation", 0) for each in samples),
        epochs=_setting(held, "training.epochs"),
        batch=_setting(held, "training.batch_size"),
        optimizer=_setting(held, "training.optimizer"),
        lr=_setting(held, "training.lr"),
        schedule=_setting(held, "training.schedule"),
        precision=_setting(held, "training.precision"),
        stands_for=planned.stands_for if planned else "",
    )


def _seeds(held: Measured, planned: Experiment | None) -> str:
    counts = {arm: len({run.seed for run in held if run.arm == arm}) for arm in held.arms}
    most = max(counts.values())
    named = f" of {planned.seeds}" if planned and planned.seeds > most else ""
    fewer = [f"{label_of(arm)} {count}" for arm, count in counts.items() if count < most]
    return f"{most}{named}" + (f" ({', '.join(fewer)})" if fewer else "")


def _setting(runs: Iterable[MeasuredRun], name: str) -> str:
    found = dict.fromkeys(_plain(settings_of(run.evaluated).get(name)) for run in runs)
    return " or ".join(found)


def own_settings(part: Measured, experiment: str) -> dict[str, str]:
    """Of each arm of an experiment, by its label, the settings in which the arms differ."""
    flat = {run.id: settings_of(run.evaluated) for run in part.of(experiment)}
    names = list(dict.fromkeys(name for settings in flat.values() for name in settings))
    differ = [name for name in names if name in SHOWN or len({str(each.get(name)) for each in flat.values()}) > 1]
    found = {}
    for arm in part.of(experiment).arms:
        own = flat[next(run.id for run in part.of(experiment, arm))]
        found[label_of(arm)] = ", ".join(f"{name} {_plain(own[name])}" for name in differ if own.get(name) is not None)
    return found


def betas(part: Measured, experiment: str) -> str:
    """beta of each arm that has one; empty if none has, or if they are a grid of it."""
    found: dict[str, str] = {}
    for arm in part.of(experiment).arms:
        beta = settings_of(next(iter(part.of(experiment, arm))).evaluated).get("head.beta")
        if beta is not None and arm not in GRID:
            found[label_of(arm)] = _plain(beta)
    return f"; beta: {', '.join(f'{label} {beta}' for label, beta in found.items())}" if found else ""


def not_run(recipe: Recipe, part: Measured) -> list[str]:
    """What the recipe plans in this form, and no run is there of."""
    held = {(run.experiment, run.arm) for run in part}
    found = []
    for each in recipe.experiments(not is_quick(part)):
        arms = [label_of(arm) for arm in each.arms if (each.key, arm) not in held]
        if arms:
            place = f"{name_of(each.data)}, {each.encoder}" + "".join(f", {size} samples" for size in each.key.split("/")[2:])
            found.append(place if len(arms) == len(each.arms) else f"{place} with {' / '.join(arms)}")
    return found


def made_with(part: Measured) -> str:
    """Devices, versions, commits and the time that training took."""
    devices = dict.fromkeys(str(run.provenance.get("device", {}).get("name", "unknown device")) for run in part)
    versions = dict.fromkeys(versions_of(run) for run in part)
    commits = dict.fromkeys(commit_of(run) for run in part)
    seconds = sum(float(run.record.get("seconds", 0)) for run in part)
    runs = f"{len(part.runs)} model" + ("s" if len(part.runs) > 1 else "")
    made = f"{runs}, trained in {_time(seconds)} on {_listed(devices)}; {_listed(versions)}; commit {_listed(commits)}."
    return " ".join([made, *diverged(part)])


def diverged(part: Measured) -> list[str]:
    """A sentence on the runs whose loss became infinite or NaN, if there are any."""
    found = [f"{place_of(part, run.experiment)} with {label_of(run.arm)} (seed {run.seed})" for run in part if run.diverged]
    return [f"Training diverged, so that there are no numbers: {'; '.join(found)}."] if found else []


def versions_of(run: MeasuredRun) -> str:
    """Of what computed a run."""
    held = run.provenance.get("versions", {})
    return ", ".join(f"{name} {version}" for name, version in held.items()) or "unknown versions"


def commit_of(run: MeasuredRun) -> str:
    """The commit a run was measured at, short; and whether files differed from it."""
    commit = str(run.provenance.get("commit") or "unknown")
    return commit[:12].rstrip("+") + (" with changes" if commit.endswith("+") else "")


def _listed(values: Iterable[str]) -> str:
    return " and ".join(values)


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return " ".join(map(str, value)) or "none"
    return str(value)
