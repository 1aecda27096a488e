"""The paper's hypotheses, H1 to H4: one verdict each, over every recipe that bears on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from varclass.paper.findings import HYPOTHESES, count_verdicts, overall
from varclass.paper.measured import Measured
from varclass.paper.recipe import Recipe
from varclass.paper.wording import forms, is_quick

Results = Iterable[tuple[Recipe, Measured]]


@dataclass(frozen=True)
class Conclusion:
    """A hypothesis, and how the checks of it came out: those of full runs, or of quick ones where no full run has any."""

    hypothesis: str
    verdicts: tuple[str, ...]
    recipes: tuple[str, ...]
    quick: bool = False

    @property
    def text(self) -> str:
        return HYPOTHESES[self.hypothesis]

    @property
    def verdict(self) -> str:
        return overall(self.verdicts)

    @property
    def counts(self) -> str:
        return count_verdicts(self.verdicts)


def conclude(results: Results) -> list[Conclusion]:
    """A conclusion for each hypothesis."""
    held = [(recipe.name, part, finding) for recipe, measured in results for part in forms(measured)
            for finding in recipe.findings(part)]  # fmt: skip
    found = []
    for name in HYPOTHESES:
        every = [(recipe, is_quick(part), finding) for recipe, part, finding in held if finding.hypothesis == name]
        checked = [each for each in every if each[2].checks]
        chosen = [each for each in checked if not each[1]] or checked
        verdicts = tuple(check.verdict for _, _, finding in chosen for check in finding.checks)
        recipes = tuple(dict.fromkeys(recipe for recipe, _, _ in chosen))
        found.append(Conclusion(name, verdicts, recipes, any(quick for _, quick, _ in chosen)))
    return found
