"""docs/results.md and the tables of the README and of docs/comparisons.md from what results/ holds: `make results`."""

from __future__ import annotations

import itertools
from pathlib import Path

from varclass.paper.catalogue import RECIPES
from varclass.paper.measured import read_measured
from varclass.paper.readme import readme_block, with_block
from varclass.paper.tables import results_page
from varclass.training.files import write_text

ROOT = Path(__file__).resolve().parents[1]


def rendered(root: Path = ROOT) -> dict[Path, str]:
    """What each file should hold, by its path, from the results under a root."""
    measured = {name: read_measured(root / "results" / "paper" / f"{name}.json", name) for name in RECIPES}
    readme, comparisons, minilm = root / "README.md", root / "docs" / "comparisons.md", root / "results" / "minilm.md"
    found = {
        root / "docs" / "results.md": results_page(RECIPES, measured),
        readme: with_block(readme.read_text(encoding="utf-8"), readme_block(RECIPES, measured)),
    }
    if minilm.is_file():
        table = first_table(minilm.read_text(encoding="utf-8"))
        found[comparisons] = with_block(comparisons.read_text(encoding="utf-8"), table)
    return found


def first_table(text: str) -> str:
    """The lines of the first table of a Markdown text."""
    lines = itertools.dropwhile(lambda line: not line.startswith("|"), text.splitlines())
    return "\n".join(itertools.takewhile(lambda line: line.startswith("|"), lines))


if __name__ == "__main__":
    for path, text in rendered().items():
        write_text(path, text)
        print(path.relative_to(ROOT))
