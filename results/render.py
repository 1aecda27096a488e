"""docs/results.md, its picture, the README's block and the table of docs/comparisons.md from results/: `make results`."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

from varclass.paper.catalogue import RECIPES
from varclass.paper.default import TEXTS
from varclass.paper.measured import Measured, MeasuredRun, read_measured
from varclass.paper.picture import PICTURE, picture
from varclass.paper.readme import readme_block, with_block
from varclass.paper.tables import results_page
from varclass.report.reading import Row
from varclass.training.files import write_text

ROOT = Path(__file__).resolve().parents[1]
FORMS = {  # of benchmarks/minilm.py: the arm that each is, and how its p(y|x) was made
    "softmax": ("ce", "raw"),
    "temperature": ("ce", "temperature"),
    "smoothing": ("smoothing", "raw"),
    "default": ("pull", "raw"),
    "gm": ("gm", "raw"),
    "vc": ("vc", "raw"),
}


def rendered(root: Path = ROOT) -> dict[Path, str]:
    """What each file should hold, by its path, from the results under a root."""
    measured = {name: read_measured(root / "results" / "paper" / f"{name}.json", name) for name in RECIPES}
    readme, comparisons, minilm = root / "README.md", root / "docs" / "comparisons.md", root / "results" / "minilm.md"
    measured[TEXTS] = read_texts(minilm.with_suffix(".json"))
    found = {
        root / "docs" / "results.md": results_page(RECIPES, measured),
        root / "docs" / PICTURE: picture(measured),
        readme: with_block(readme.read_text(encoding="utf-8"), readme_block(RECIPES, measured)),
    }
    if minilm.is_file():
        table = first_table(minilm.read_text(encoding="utf-8"))
        found[comparisons] = with_block(comparisons.read_text(encoding="utf-8"), table)
    return found


def read_texts(path: Path) -> Measured:
    """The rows of benchmarks/minilm.py as the runs of a recipe, so that they are judged as all others are."""
    held: dict[tuple[str, str, int], list[Row]] = {}
    for row in json.loads(path.read_text(encoding="utf-8"))["rows"] if path.is_file() else []:
        name, _, size = row["setting"].partition(":")
        experiment = f"{name}/MiniLM {row['mode']}" + ("" if size == "all" else f"/{row['n_train']}")
        arm, method = FORMS[row["form"]]
        scores = {score: row[score] for score in ("accuracy", "nll", "ece")}
        held.setdefault((experiment, arm, row["seed"]), []).append(Row("clean", method, {}, row["n"], scores, {}))
    return Measured(
        TEXTS, tuple(MeasuredRun("-".join(map(str, key)), *key, True, {}, {}, {}, tuple(rows)) for key, rows in held.items())
    )


def first_table(text: str) -> str:
    """The lines of the first table of a Markdown text."""
    lines = itertools.dropwhile(lambda line: not line.startswith("|"), text.splitlines())
    return "\n".join(itertools.takewhile(lambda line: line.startswith("|"), lines))


if __name__ == "__main__":
    for path, text in rendered().items():
        write_text(path, text)
        print(path.relative_to(ROOT))
