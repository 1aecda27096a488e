"""Runs in groups: those that differ in the seed alone belong together, and what else differs is their name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from varclass.report.reading import Evaluated

SIZES = ("data.limit", "data.per_class")  # of the training set: a curve, not a name
# what an objective chooses for itself: a name only within an objective
IMPLIED = ("head.beta", "head.label_prior", "head.covariance", "head.means", "head.separation", "head.posterior")
FOLDS = "data.cross_fit"  # the default settles by them where little is held out; the data are the same
BASELINE = "ce"


@dataclass(frozen=True)
class Group:
    """Runs of one configuration: `runs` by seed, at the largest training set; `sizes` at every one, smallest first."""

    label: str
    settings: dict[str, Any]
    runs: dict[int, Evaluated]
    sizes: tuple[dict[int, Evaluated], ...]

    @property
    def first(self) -> Evaluated:
        """The run of the lowest seed, where one must stand for all."""
        return self.runs[min(self.runs)]

    @property
    def context(self) -> tuple[tuple[str, str], ...]:
        """What a fair comparison holds fixed: data and encoder."""
        fixed = {
            name: value for name, value in self.settings.items() if name.startswith(("data.", "encoder.")) and name != FOLDS
        }
        return tuple((name, str(value)) for name, value in fixed.items())


def group_runs(runs: Iterable[Evaluated]) -> list[Group]:
    """Groups, the baseline's objective first and otherwise in the order given.

    All groups of a context stand at the largest training set that one of them has; a group without it has no `runs`.
    """
    runs = list(runs)
    flat = [settings_of(run) for run in runs]
    if not _tells_apart(FOLDS, runs, flat):
        flat = [{name: value for name, value in settings.items() if name != FOLDS} for settings in flat]
    names = _differing(flat)
    members: dict[tuple[tuple[str, str], ...], dict[tuple[Any, ...], dict[int, Evaluated]]] = {}
    chosen: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    for run, settings in zip(runs, flat, strict=True):
        named = {name: settings.get(name) for name in names}
        key = tuple((name, str(value)) for name, value in named.items())
        chosen[key] = named
        at_size = members.setdefault(key, {}).setdefault(tuple(settings.get(name) for name in SIZES), {})
        if run.seed in at_size:
            raise ValueError(f"{at_size[run.seed].path} and {run.path} are the same run: settings and seed {run.seed} agree")
        at_size[run.seed] = run
    groups = [_group(chosen[key], by_size, flat) for key, by_size in members.items()]
    groups.sort(key=lambda group: group.settings["head.objective"] != BASELINE)
    return [_at_largest(group, [other for other in groups if other.context == group.context]) for group in groups]


def baseline_of(group: Group, groups: Iterable[Group]) -> Group | None:
    """What a group is compared with: CE with the same data and encoder that is most like it, or else the first such group."""
    others = [other for other in groups if other.context == group.context and other.runs]
    plain = [other for other in others if other.settings["head.objective"] == BASELINE] or others[:1]
    if not group.runs or group in plain or not plain:
        return None
    return max(plain, key=lambda other: sum(other.settings[name] == value for name, value in group.settings.items()))


def holding(groups: Iterable[Group], suite: str) -> list[tuple[int, Group]]:
    """The groups with rows of a suite, each with its position among all: its color wherever it is drawn."""
    return [(i, group) for i, group in enumerate(groups) if any(suite in run.suites for run in group.runs.values())]


def settings_of(run: Evaluated) -> dict[str, Any]:
    """Every setting by its dotted name, without the seed; an empty table is no setting."""
    flat: dict[str, Any] = {"head.objective": None}
    _flatten(run.spec, "", flat)
    flat.pop("seed", None)
    return flat


def _tells_apart(name: str, runs: list[Evaluated], flat: list[dict[str, Any]]) -> bool:
    """Whether two runs differ in this setting alone."""
    rest = {
        (run.seed, str(sorted((each, str(v)) for each, v in s.items() if each != name)))
        for run, s in zip(runs, flat, strict=True)
    }
    return len(rest) < len(runs)


def _flatten(values: Mapping[str, Any], prefix: str, into: dict[str, Any]) -> None:
    for name, value in values.items():
        if isinstance(value, dict):
            _flatten(value, f"{prefix}{name}.", into)
        else:
            into[prefix + name] = value


def _differing(flat: list[dict[str, Any]]) -> list[str]:
    names = list(dict.fromkeys(name for settings in flat for name in settings if name not in SIZES))
    objectives = {settings["head.objective"] for settings in flat}
    found = ["head.objective"]
    for name in names:
        parts = [flat]
        if name in IMPLIED:
            parts = [[each for each in flat if each["head.objective"] == objective] for objective in objectives]
        if name not in found and any(len({str(each.get(name)) for each in part}) > 1 for part in parts):
            found.append(name)
    return found


def _group(settings: dict[str, Any], by_size: dict[tuple[Any, ...], dict[int, Evaluated]], flat: list[dict[str, Any]]) -> Group:
    objective = settings["head.objective"]
    title = {"ce": "CE", "gm": "GM", "vc": "VC", "pull": "default (pull)"}.get(objective, str(objective))
    within = [each for each in flat if each["head.objective"] == objective]
    shown = [
        _named(name, value) for name, value in settings.items() if name != "head.objective" and _telling(name, within, flat)
    ]
    sizes = sorted(by_size.values(), key=lambda runs: max(run.samples for run in runs.values()))
    return Group(", ".join([title, *(each for each in shown if each)]), settings, sizes[-1], tuple(sizes))


def _telling(name: str, within: list[dict[str, Any]], flat: list[dict[str, Any]]) -> bool:
    held = within if name in IMPLIED else flat
    return len({str(each.get(name)) for each in held}) > 1


def _named(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name in ("data.name", "encoder.name"):
        return PurePath(value).stem if "/" in str(value) else str(value)
    return f"{name.rpartition('.')[2].replace('_', ' ')} {value}"


def _at_largest(group: Group, rivals: list[Group]) -> Group:
    most = max(run.samples for rival in rivals for run in rival.runs.values())
    kept = group.runs if max(run.samples for run in group.runs.values()) == most else {}
    return Group(group.label, group.settings, kept, group.sizes)
