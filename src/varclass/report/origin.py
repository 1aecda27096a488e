"""Where the numbers come from: runs, versions, commands, settings; and what was not measured."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from varclass.report.figure import Sheet, section, table
from varclass.report.groups import Group, settings_of
from varclass.report.markup import Markup, tag
from varclass.report.reading import Evaluated

MORE = {"ood": " --ood svhn,cifar100"}  # what a suite cannot do without
IMAGES = ("shift", "adversarial")


def origin(groups: Sequence[Group], command: str) -> Markup:
    """The last section: every run with its provenance, its settings and the commands that made it."""
    runs = [(group.label, run) for group in groups for size in group.sizes for _, run in sorted(size.items())]
    shown = [[run.path.name, label, run.seed, *_about(run)] for label, run in runs]
    columns = ("run", "model", "seed", "training n", "status", "seconds", "device", "commit")
    full = [[*row, versions(run), run.path, *_commands(run)] for row, (_, run) in zip(shown, runs, strict=True)]
    names = (*columns, "versions", "folder", "trained by", "last evaluated by")
    every = [settings_of(run) for _, run in runs]
    common = {name: value for name, value in every[0].items() if all(each.get(name) == value for each in every)}
    return section(
        "Origin",
        tag("p", "This page was made by ", tag("code", command)),
        [tag("p", note) for note in missing(groups)],
        [tag("p", f"Trained with {each}.") for each in dict.fromkeys(versions(run) for _, run in runs)],
        table("Runs", columns, shown, Sheet(names, full)),
        tag("h3", "Settings"),
        tag("p", "In all runs:"),
        tag("pre", "\n".join(f"{name} = {value}" for name, value in common.items())),
        [_details(run, common) for _, run in runs],
    )


def missing(groups: Sequence[Group]) -> Iterator[Markup]:
    """A line for each suite that some run lacks, with the command to run it; and for runs that stand in no other section."""
    every = [run for group in groups for size in group.sizes for run in size.values()]
    largest = [run for group in groups for run in group.runs.values()]
    for suite in ("clean", "shift", "ood", "adversarial", "latents"):
        wanted = [run for run in (every if suite == "clean" else largest) if _possible(run, suite)]
        lacking = [run for run in wanted if suite not in run.suites]
        if lacking:
            how = "not run" if len(lacking) == len(wanted) else f"not run for {len(lacking)} of {len(wanted)} runs"
            paths = " ".join(shlex.quote(str(run.path)) for run in lacking)
            line = f"varclass evaluate {paths} --suite {suite}{MORE.get(suite, '')}"
            yield tag("span", f"Suite {suite}: {how}. ", tag("code", line), class_="missing")
    for group in groups:
        if not group.runs:
            yield tag("span", f"{group.label}: no run at the largest training set; only among few training samples.")


def _possible(run: Evaluated, suite: str) -> bool:
    if suite in IMAGES:
        return run.kind == "image"
    return suite != "latents" or run.spec.get("head", {}).get("prior", "gaussian") == "gaussian"


def versions(run: Evaluated) -> str:
    """Of what computed the run."""
    held = run.record.get("provenance", {}).get("versions", {})
    return ", ".join(f"{name} {version}" for name, version in held.items()) or "unknown versions"


def _about(run: Evaluated) -> list[Any]:
    made, seconds = run.record.get("provenance", {}), run.record.get("seconds")
    commit = str(made.get("commit") or "none")
    device = made.get("device", {}).get("name", "unknown")
    return [run.samples, run.record.get("status", "unknown"), "" if seconds is None else f"{seconds:.1f}", device, commit[:12]]


def _commands(run: Evaluated) -> list[str]:
    made = (run.record.get("provenance", {}), run.provenance)
    return [shlex.join(map(str, each.get("command") or [])) for each in made]


def _details(run: Evaluated, common: dict[str, Any]) -> Markup:
    own = {"seed": run.seed} | {name: value for name, value in settings_of(run).items() if name not in common}
    lines = zip(("Folder", "Trained by", "Last evaluated by"), (str(run.path), *_commands(run)), strict=True)
    return tag(
        "details",
        tag("summary", run.path.name),
        [tag("p", f"{what}: ", tag("code", text)) for what, text in lines if text],
        tag("pre", "\n".join(f"{name} = {value}" for name, value in own.items())),
    )
