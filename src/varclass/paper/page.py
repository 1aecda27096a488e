"""The page of a recipe: what the paper claims, whether it holds here, its numbers beside ours, and how ours were made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from html import unescape
from pathlib import Path

from varclass.paper.findings import FAILS, HOLDS, NO_DATA, ONE_SEED, UNDECIDED, Cell, Check, Finding
from varclass.paper.measured import Measured
from varclass.paper.reading import label_of, place_of
from varclass.paper.recipe import Recipe
from varclass.paper.wording import (
    QUICK,
    all_cells,
    command,
    commit_of,
    forms,
    how_made,
    is_quick,
    made_with,
    not_run,
    ours,
    own_settings,
    papers,
    spread_of,
    versions_of,
)
from varclass.report.figure import Sheet, section, slug, table
from varclass.report.frame import frame, heading, under
from varclass.report.groups import settings_of
from varclass.report.markup import Markup, join, tag
from varclass.report.score_table import INTERVAL
from varclass.training.files import write_text

FOLDED = 12  # checks, and rows of a table five times as many: with more they are behind a heading to open
CLASSES = {HOLDS: "holds", FAILS: "fails", UNDECIDED: "undecided", ONE_SEED: "no-data", NO_DATA: "no-data"}
RULE = (
    "Lower or higher holds where the 95% interval of the difference, seed by seed, lies on that side of 0, and does not hold "
    "where it lies on the other; comparable holds where it lies within a margin, one point unless named. Anything else is "
    "undecided. A claim holds if it does wherever it was checked, and does not if it fails anywhere. Where there is no "
    "difference at all, about one check in forty holds by chance, and as many fail."
)


def write_page(recipe: Recipe, measured: Measured, path: Path) -> Path:
    """Write the page. It is whole, or not written at all."""
    if path.is_dir():
        raise ValueError(f"the page must be a file; got the folder {path}")
    text = page(recipe, measured)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    return path


def page(recipe: Recipe, measured: Measured) -> str:
    """The page as text; the same for the same results."""
    parts = [claim(recipe, measured), *verdicts(recipe, measured), numbers(recipe, measured), *figures(recipe, measured)]
    return frame(recipe.title, [*parts, origin(recipe, measured)])


def claim(recipe: Recipe, measured: Measured) -> Markup:
    """What the paper says, and what this page can say of it."""
    held = forms(measured)
    notes = [tag("p", QUICK, class_="caveat")] if any(map(is_quick, held)) else []
    if not held:
        notes = [tag("p", "Nothing has been run yet: neither the quick form nor the full one.", class_="caveat")]
    return section(
        "Claim",
        tag("p", tag("strong", recipe.claim)),
        tag("p", recipe.label, class_="quiet"),
        notes,
    )


def verdicts(recipe: Recipe, measured: Measured) -> Iterator[Markup]:
    """A section for each form that was run: every claim, whether it holds, and each place where it was checked."""
    held = forms(measured)
    for part in held:
        title = "Verdict, quick form" if is_quick(part) else "Verdict"
        found = [_finding(finding, f"{slug(title)}-{i}") for i, finding in enumerate(recipe.findings(part), start=1)]
        note = RULE if found else "Nothing is claimed that could hold or not."
        yield section(title, found, tag("p", note, class_="caption") if part is held[-1] else None)


def _finding(finding: Finding, name: str) -> Markup:
    lines = tag("ul", [tag("li", each.sentence, class_=CLASSES[each.verdict]) for each in finding.checks], class_="verdicts")
    if len(finding.checks) > FOLDED:
        lines = tag("details", tag("summary", f"All {len(finding.checks)} checks"), lines)
    hypothesis = f" ({finding.hypothesis})" if finding.hypothesis else ""
    counts = "" if finding.counts == finding.verdict else f": {finding.counts}"
    return tag(
        "div",
        tag("div", tag("h3", finding.claim, hypothesis), _sheet(finding).link(name) if finding.checks else None, class_="head"),
        tag("p", tag("strong", finding.verdict), counts, class_=CLASSES[finding.verdict]),
        lines if finding.checks else None,
        class_="finding",
    )


def _sheet(finding: Finding) -> Sheet:
    columns = ("claim", "hypothesis", "where", "score", "model", "says", "against", "verdict", "difference", "low", "high")
    return Sheet(
        (*columns, "seeds", "model, seed:value", "against, seed:value"), [_line(finding, each) for each in finding.checks]
    )


def _line(finding: Finding, check: Check) -> list[object]:
    found = check.difference
    start = [finding.claim, finding.hypothesis, check.where, check.score, check.arm, check.says, check.against, check.verdict]
    return [*start, found.mean, found.low, found.high, found.n, _by_seed(check.values), _by_seed(check.others)]


def _by_seed(values: dict[int, float]) -> str:
    return " ".join(f"{seed}:{value!r}" for seed, value in values.items())


def numbers(recipe: Recipe, measured: Measured) -> Markup | None:
    """The paper's numbers and ours; None if there are none."""
    cells = all_cells(recipe, measured)
    if not cells:
        return None
    shown = [[each.where, each.arm, each.measure.heading, papers(each), ours(each), len(each.values), each.n] for each in cells]
    spread = f" The paper's ±: {spread_of(cells)}." if spread_of(cells) else ""
    columns = ("where", "model", "score", "paper", "ours", "seeds", "n")
    kinds = ("paper's spread", "kind of spread", "ours", "low", "high", "sd", "seeds", "n", "note", "seed:value")
    sheet = Sheet((*columns[:4], *kinds), [_numbers(each) for each in cells])
    caption = f"Ours: {INTERVAL[0].lower()}{INTERVAL[1:]}{spread} n: samples it was measured on."
    drawn = table("The paper and ours", columns, shown, sheet, caption)
    folded = len(cells) > 5 * FOLDED
    return section("Numbers", tag("details", tag("summary", f"All {len(cells)} numbers"), drawn) if folded else drawn)


def _numbers(cell: Cell) -> list[object]:
    paper = ["", "", ""] if cell.paper is None else [cell.paper.value, cell.paper.spread, cell.paper.kind]
    found = cell.ours
    mine = [found.mean, found.low, found.high, found.sd, found.n, cell.n, found.note]
    return [cell.where, cell.arm, cell.score, *paper, *mine, _by_seed(cell.values)]


def figures(recipe: Recipe, measured: Measured) -> list[Markup]:
    """What the recipe draws, each part with ids and downloads of its own, for two experiments have figures of one name."""
    drawn = [each for part in forms(measured) for each in recipe.figures(part) if each]
    found: dict[str, Markup] = {}
    for each in drawn:
        titled = each if heading(each) else section("Figure", each)
        name = start = "see-" + slug(unescape(heading(titled)))
        count = 1
        while name in found:
            count += 1
            name = f"{start}-{count}"
        found[name] = tag("div", under(name.removeprefix("see-"), titled), id=name)
    return list(found.values())


def origin(recipe: Recipe, measured: Measured) -> Markup:
    """How it was made: the commands, schedules, settings of each model, and every run."""
    held = forms(measured)
    commands = [
        tag("p", f"The {form} form: ", tag("code", command(recipe, form == "full")), None if ran else " (not run yet)")
        for form, ran in (("full", any(not is_quick(part) for part in held)), ("quick", any(map(is_quick, held))))
    ]
    tables = join(_schedules(recipe, held), _models(held), _runs(held)) if held else None
    return section("How it was made", commands, [_made(recipe, part) for part in held], tables)


def _made(recipe: Recipe, part: Measured) -> Markup:
    missing = not_run(recipe, part)
    form = "Quick" if is_quick(part) else "Full"
    planned = f"Planned and not run: {'; '.join(missing)}." if missing else ""
    return join(tag("p", f"{form} form: {made_with(part)}"), tag("p", planned, class_="missing") if planned else None)


def _schedules(recipe: Recipe, held: Sequence[Measured]) -> Markup:
    columns = ["where", "models", "seeds", "training n", "held out n", "epochs", "batch", "optimizer", "lr", "schedule"]
    columns += ["precision", "the paper's encoder"]
    rows = [list(astuple(each)) for part in held for each in how_made(recipe, part)]
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    caption = "Held out: for validation, from the training samples."
    return table("Schedules", columns, rows, Sheet(columns, rows), caption)


def _models(held: Sequence[Measured]) -> Markup:
    rows = [
        [place_of(part, experiment), label, settings]
        for part in held
        for experiment in part.experiments
        for label, settings in own_settings(part, experiment).items()
    ]
    names = ("run", "where", "model", "seed", "setting", "value")
    long = [
        [run.id, place_of(part, run.experiment), label_of(run.arm), run.seed, name, value]
        for part in held
        for run in part
        for name, value in settings_of(run.evaluated).items()
    ]
    caption = "In what the models of a place differ; the CSV has every setting of every run."
    return table("Settings of each model", ("where", "model", "its own"), rows, Sheet(names, long), caption)


def _runs(held: Sequence[Measured]) -> Markup:
    columns = ("run", "where", "model", "seed", "form", "steps", "best epoch", "seconds", "device", "commit", "versions")
    rows = [
        [
            run.id,
            place_of(part, run.experiment),
            label_of(run.arm),
            run.seed,
            "full" if run.full else "quick",
            run.record.get("steps", ""),
            run.record.get("best_epoch", ""),
            f"{float(run.record.get('seconds', 'nan')):.1f}",
            run.provenance.get("device", {}).get("name", "unknown"),
            commit_of(run),
            versions_of(run),
        ]
        for part in held
        for run in part
    ]
    return tag("details", tag("summary", f"All {len(rows)} runs"), table("Runs", columns, rows, Sheet(columns, rows)))
