"""The results in markdown: docs/results.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from varclass.paper import default
from varclass.paper.conclusions import Conclusion, conclude
from varclass.paper.findings import Cell, Finding
from varclass.paper.measured import Measured
from varclass.paper.picture import ALT, PICTURE, TOLD
from varclass.paper.recipe import Recipe
from varclass.paper.wording import (
    NOTHING,
    QUICK,
    all_cells,
    betas,
    command,
    forms,
    how_made,
    is_quick,
    made_with,
    not_run,
    ours,
    papers,
    spread_of,
)
from varclass.report.pooling import span

LONGEST = 60  # rows of a table here; pages have all of them
MODELS = 6  # side by side at most
SENTENCES = 12  # checks of a claim that are listed
HEAD = """# Results

The paper's tables and figures, its number beside ours. `make results` writes this file from `results/paper/*.json`; a test
fails when the two differ.

Ours: mean ± half the width of the 95% t-interval over seeds; a single seed has none. A claim holds where the interval of the
difference, seed by seed, lies on the claimed side of 0 in every place it was checked; it does not hold if in one place the
interval lies on the other side; anything else is undecided. "Comparable" is within one point, unless named.
"""
DEFAULT = """Not in the paper: `VariationalHead(in_features, num_classes)` as it comes, in the same runs as the tables above,
and with MiniLM, frozen or fine-tuned (`benchmarks/minilm.py`; `results/minilm.md` has what those rows were made with).
Temperature scaling is fitted on the samples that settle the default. Where none are held out (MNIST, Fashion-MNIST, CIFAR-10
and AG News from few samples, MiniLM from few) the default cross-fits, with five more models; "CE, settled" is softmax with
the same folds and the same settling, as is MiniLM's temperature scaling there, but for a covariance. The default's settings
were chosen on validation data (`results/default.md`); the test sets of MNIST, Fashion-MNIST, CIFAR-100, AG News and CLINC150
had shaped earlier forms of it, and that settling should change no decision was seen on PneumoniaMNIST's before it was checked
on validation data. NLI's had no part in it."""
TARGETS = """What the default was to reach against CE. "At least as good" is missed where the 95% interval of the difference
over seeds lies on the wrong side of 0; the others are judged by their means."""
CHANCE = "Where there is no difference at all, about one check in forty holds by chance, and as many fail."


def results_page(recipes: Mapping[str, Recipe], measured: Mapping[str, Measured]) -> str:
    """docs/results.md: a section for each recipe with runs, what was not run, and a verdict on each hypothesis."""
    ran = [(recipe, measured[name]) for name, recipe in recipes.items() if measured[name].runs]
    ran.sort(key=lambda each: not each[0].findings(each[1]))  # what claims nothing comes last
    left = [recipe for name, recipe in recipes.items() if not measured[name].runs]
    parts = [HEAD, *(recipe_section(*each) for each in ran)]
    if left:
        rows = [
            [escape(each.label), escape(each.title), f"`{command(each, False)}`", f"`{command(each, True)}`"] for each in left
        ]
        told = "No results are committed yet." if not ran else "No results of these are committed yet."
        parts.append(f"## Not run yet\n\n{told}\n\n{table(('in the paper', 'what', 'quick', 'full'), rows)}\n")
    return "\n".join([*parts, *default_section(measured), hypotheses(conclude(ran))])


def default_section(measured: Mapping[str, Measured]) -> list[str]:
    """The library's default beside CE in the same runs, and its targets; nothing where it was not measured."""
    rows, found = default.comparison(measured), default.targets(measured)
    if not rows:
        return []
    beside = table(("where", "score", *default.COLUMNS, "seeds"), [[escape_but_bold(value) for value in row] for row in rows])
    goals = table(default.HEADINGS, [[escape_but_bold(value) for value in each.row] for each in found])
    seen = f"{TOLD}\n\n![{ALT}]({PICTURE})"
    return [f"## The default beside CE\n\n{DEFAULT}\n\n{seen}\n\n{beside}\n\n{TARGETS}\n\n{goals}\n"]


def recipe_section(recipe: Recipe, measured: Measured) -> str:
    """A recipe: the claim, its verdict, the numbers, and what they were made with."""
    parts = [f"## {escape(recipe.title)}", f"{escape(recipe.label)}: {escape(recipe.claim)}."]
    for part in forms(measured):
        quick = is_quick(part)
        found = [_finding(finding) for finding in recipe.findings(part)]
        parts += [QUICK] if quick else []
        parts += ["\n".join(found)] if found else []
    parts += numbers(recipe, all_cells(recipe, measured))
    for part in forms(measured):
        parts += [f"`{command(recipe, not is_quick(part))}`: {escape(made_with(part))}", _made(recipe, part)]
        missing = not_run(recipe, part)
        parts += [f"Planned and not run: {escape('; '.join(missing))}."] if missing else []
    return "\n\n".join(parts) + "\n"


def numbers(recipe: Recipe, cells: Sequence[Cell]) -> list[str]:
    """The table, one number to a row while they are few; then models or scores side by side, and a pointer to the rest."""
    if not cells:
        return []
    if len(cells) <= LONGEST:
        names: tuple[str, ...] = ("where", "model", "score", "paper", "ours", "seeds", "n")
        rows = [[each.where, each.arm, each.measure.heading, papers(each), ours(each), str(len(each.values)), str(each.n)]
                for each in cells]  # fmt: skip
    else:
        names, rows = side_by_side(cells)
    spread = f"The paper's ±: {spread_of(cells)}. " if spread_of(cells) else ""
    note = f"{spread}n: samples it was measured on."
    if len(rows) > LONGEST:
        page = f"`varclass reproduce {recipe.name} --merge results/paper/{recipe.name}.json`"
        note += f" The first {LONGEST} of {len(rows)} rows; {page} writes a page with all of them, and trains nothing."
    return [table(names, [[escape(value) for value in row] for row in rows[:LONGEST]]), note]


def side_by_side(cells: Sequence[Cell]) -> tuple[tuple[str, ...], list[list[str]]]:
    """Columns and rows with a column for each model, or for each score where there are too many models."""
    arms, scores = dict.fromkeys(each.arm for each in cells), dict.fromkeys(each.measure.heading for each in cells)
    by_model = len(arms) <= MODELS
    lead = ("where", "score") if by_model else ("where", "model")
    at: dict[tuple[str, str], dict[str, Cell]] = {}
    for each in cells:
        key, column = (each.measure.heading, each.arm) if by_model else (each.arm, each.measure.heading)
        at.setdefault((each.where, key), {})[column] = each
    across = tuple(arms) if by_model else tuple(scores)
    rows = [
        [*key, *(_both(row.get(name)) for name in across), span(len(each.values) for each in row.values()),
         span(each.n for each in row.values())]
        for key, row in at.items()
    ]  # fmt: skip
    return (*lead, *across, "seeds", "n"), rows


def hypotheses(conclusions: Iterable[Conclusion]) -> str:
    """The closing section."""
    rows = [[each.hypothesis, escape(each.text), f"**{each.verdict}**", _counts(each), _from(each)] for each in conclusions]
    heading = "## The paper's hypotheses"
    return f"{heading}\n\n{table(('', 'hypothesis', 'verdict', 'checks', 'from'), rows)}\n\n{CHANCE}\n"


def escape_but_bold(text: str) -> str:
    """`escape`, and what is bold stays so."""
    inner = text.removeprefix("**").removesuffix("**")
    return f"**{escape(inner)}**" if inner != text else escape(text)


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts that are markdown already."""
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escape(text: str) -> str:
    r"""Text as markdown that shows it as it is, in a table too.

    >>> print(escape("p(y|x) < *1* on x86_64"))
    p(y\|x) \< \*1\* on x86_64
    """
    return re.sub(r"([\\`*\[\]<>|&]|(?<!\w)_|_(?!\w))", r"\\\1", re.sub(r"\s+", " ", text))


def _finding(finding: Finding) -> str:
    mark = f" ({finding.hypothesis})" if finding.hypothesis else ""
    counts = "" if finding.counts == finding.verdict else f" ({finding.counts})"
    lines = [f"- {escape(finding.claim)}{mark}: **{finding.verdict}**{counts}"]
    if len(finding.checks) <= SENTENCES:
        lines += [f"  - {escape(each.sentence)}" for each in finding.checks]
    return "\n".join(lines)


def _made(recipe: Recipe, part: Measured) -> str:
    return "\n".join(f"- {escape(each.sentence)}{escape(betas(part, experiment))}"
                     for each, experiment in zip(how_made(recipe, part), part.experiments, strict=True))  # fmt: skip


def _both(cell: Cell | None) -> str:
    if cell is None:
        return NOTHING
    return ours(cell) if cell.paper is None else f"{ours(cell)} (paper {papers(cell)})"


def _counts(each: Conclusion) -> str:
    return each.counts if each.verdicts else NOTHING


def _from(each: Conclusion) -> str:
    return ", ".join(each.recipes) + (" (quick form)" if each.quick else "") if each.recipes else NOTHING
