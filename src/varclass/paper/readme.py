"""The block of the README that results write: the default beside softmax, and a line for each of the paper's hypotheses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from varclass.paper import default
from varclass.paper.conclusions import Conclusion, conclude
from varclass.paper.findings import NO_DATA
from varclass.paper.measured import Measured
from varclass.paper.picture import ALT, PICTURE, TOLD
from varclass.paper.recipe import Recipe
from varclass.paper.tables import escape, escape_but_bold, table
from varclass.paper.wording import NOTHING

START, END = "<!-- results -->", "<!-- /results -->"
BESIDE = {  # columns of the README, each the first of these models that was run
    "CE": ("CE",),
    "CE, calibrated": ("CE after temperature scaling", "CE, settled"),
    "VC": ("VC",),
    "default": ("default",),
}
NONE = "`varclass reproduce --list` names a recipe for each table and figure of the paper; none has committed results yet."


def readme_block(recipes: Mapping[str, Recipe], measured: Mapping[str, Measured]) -> str:
    """What stands between the marks."""
    ran = [(recipe, measured[name]) for name, recipe in recipes.items() if measured[name].runs]
    if not ran:
        return NONE
    lines = [f"- {each.hypothesis}, {escape(each.text)}: **{each.verdict}**{_why(each)}" for each in conclude(ran)]
    closing = "`docs/results.md` has the numbers and the paper's beside ours, `results/paper/*.json` every one."
    return "\n\n".join([*default_numbers(measured), "The paper's hypotheses, checked here:", "\n".join(lines), closing])


def default_numbers(measured: Mapping[str, Measured]) -> list[str]:
    """The default's picture, its numbers in a row for each place of several seeds, and how many of its targets it reached."""
    rows, found = default.comparison(measured), default.targets(measured)
    if not rows:
        return []
    places = [place for place, seeds in {row[0]: row[-1] for row in rows}.items() if seeds != "1"]
    shown = [[escape(place), *_side_by_side([row[2:] for row in rows if row[0] == place])] for place in places]
    numbers = (
        "Accuracy % / NLL / ECE %, mean ± half the width of the 95% t-interval over seeds, the best mean of all models in "
        "bold; CE is softmax."
    )
    reached = sum(each.verdict == "reached" for each in found)
    goals = (
        f"Of {len(found)} targets against CE the default reached {reached}; `docs/results.md` lists the others with their "
        "margins, and has GM, label smoothing and what was run with one seed."
    )
    beside = table(("where", *BESIDE, "seeds"), shown)
    folded = f"<details><summary>The same in numbers, with VC by Algorithm 1</summary>\n\n{numbers}\n\n{beside}\n\n</details>"
    return [TOLD, f"![{ALT}](docs/{PICTURE})", folded, goals]


def _side_by_side(rows: Sequence[list[str]]) -> list[str]:
    """The rows of one place, a row for each score, as one: for each column the first of its models that was run."""
    held = dict(zip((*default.COLUMNS, "seeds"), zip(*rows, strict=True), strict=True))
    cells = []
    for models in BESIDE.values():
        ran = [held[model] for model in models if set(held[model]) != {NOTHING}]
        cells.append(" / ".join(escape_but_bold(each).replace(" ± ", "±") for each in ran[0]) if ran else NOTHING)
    return [*cells, held["seeds"][0]]


def with_block(text: str, block: str) -> str:
    r"""A text with this between its marks, and nothing else changed.

    >>> with_block("a\n<!-- results -->\nold\n<!-- /results -->\nb", "new")
    'a\n<!-- results -->\nnew\n<!-- /results -->\nb'
    """
    if (text.count(START), text.count(END)) != (1, 1) or text.index(START) > text.index(END):
        raise ValueError(f"expected one {START} and then one {END}; got {text.count(START)} and {text.count(END)}")
    before, _, rest = text.partition(START)
    return f"{before}{START}\n{block}\n{END}{rest.partition(END)[2]}"


def _why(each: Conclusion) -> str:
    if each.verdict == NO_DATA:
        return ""
    return f" ({each.counts}{'; quick form' if each.quick else ''})"
