"""report: from evaluated runs to one page that needs nothing else."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from varclass.report.attacks import attacks
from varclass.report.clean import clean
from varclass.report.comparing import compare, differences, in_words
from varclass.report.figure import section
from varclass.report.frame import frame
from varclass.report.groups import Group, group_runs
from varclass.report.latent_space import latents
from varclass.report.low_data import low_data
from varclass.report.markup import Markup, tag
from varclass.report.measures import MEASURES
from varclass.report.mistakes import mistakes
from varclass.report.origin import origin
from varclass.report.outliers import outliers
from varclass.report.pooling import counts, pooled, span
from varclass.report.reading import read_runs
from varclass.report.shift import shift
from varclass.report.training_curves import training
from varclass.training.files import write_text

SECTIONS: tuple[Callable[[Sequence[Group]], Markup | None], ...] = (
    clean,
    shift,
    attacks,
    outliers,
    low_data,
    latents,
    training,
    mistakes,
)


def report(runs: Iterable[str | Path], output: str | Path = "report.html") -> Path:
    """Write the page of these runs: a summary in words, tables, figures, settings. It is whole, or not written at all."""
    paths, path = [Path(run) for run in runs], Path(output)
    if path.is_dir():
        raise ValueError(f"output must be a file; got the folder {path}")
    command = shlex.join(["varclass", "report", *map(str, paths), "-o", str(path)])
    text = page(group_runs(read_runs(paths)), command)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    return path


def page(groups: Sequence[Group], command: str) -> str:
    """The page as text; the same for the same scores."""
    parts = [summary(groups), *(make(groups) for make in SECTIONS), origin(groups, command)]
    return frame(f"varclass: {', '.join(dict.fromkeys(_data(group) for group in groups))}", parts)


def summary(groups: Sequence[Group]) -> Markup:
    """What was compared, and what came out, in words; then as a table."""
    found = compare(groups)
    seeds = [len(group.runs) for group in groups if group.runs]
    trained = [run.samples for group in groups for run in group.runs.values()]
    n = span(float(each) for group in groups for each in counts(group, "clean").split(" to ") if each != "0")
    facts = (
        f"{'; '.join(group.label for group in groups if group.runs)} on {', '.join(dict.fromkeys(map(_data, groups)))}: "
        f"{span(trained)} training samples, n = {n} test samples, {span(seeds)} seed{'s' if max(seeds) > 1 else ''} each."
    )
    few = [each.difference.n for _, _, comparisons in found for each in comparisons if 1 < each.difference.n < 5]
    note = f"With {span(few)} seeds an interval rests on normality, which so few cannot show." if few else ""
    alone = [tag("p", tag("strong", f"{group.label}: "), _alone(group)) for group in groups if group.runs and not found]
    return section("Summary", tag("p", facts), in_words(found), alone, tag("p", note) if note else None, differences(found))


def _alone(group: Group) -> str:
    parts = []
    for score in ("accuracy", "nll", "ece"):
        found, measure = pooled(group, score, "clean"), MEASURES[score]
        low, high = map(measure.bare, measure.ends(found))
        ends = "" if math.isnan(found.low) else f" (95% interval {low} to {high})"
        parts.append(f"{measure.name} {measure.text(found.mean)}{ends}")
    seeds = f"{len(group.runs)} seeds" if len(group.runs) > 1 else "one seed: no interval"
    return f"{', '.join(parts)}; {seeds}. There is nothing to compare it with."


def _data(group: Group) -> str:
    spec = group.sizes[0][min(group.sizes[0])].spec
    return str(spec.get("data", {}).get("name", "data")).replace("\\", "/").rstrip("/").rpartition("/")[2]
