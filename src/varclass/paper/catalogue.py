"""Every recipe, in the order of the paper; what chooses settings comes first, for the others rest on it."""

from __future__ import annotations

from varclass.core.options import check_choice
from varclass.paper.recipe import Recipe
from varclass.paper.recipes import (
    adversarial,
    ambiguous,
    calibration,
    choosing,
    corruptions,
    latents_2d,
    low_data,
    medmnist,
    natural_shift,
    ood,
)

PARTS = (
    choosing,
    latents_2d,
    calibration,
    corruptions,
    natural_shift,
    ood,
    adversarial,
    low_data,
    medmnist,
    ambiguous,
)
RECIPES: dict[str, Recipe] = {part.RECIPE.name: part.RECIPE for part in PARTS}


def pick_recipes(names: list[str]) -> list[Recipe]:
    """Recipes by name; "all" for every one that the paper has."""
    paper = [name for name in RECIPES if name != choosing.RECIPE.name]
    for name in names:
        check_choice("recipe", name, (*RECIPES, "all"))
    chosen = [each for name in names for each in (paper if name == "all" else [name])]
    return [RECIPES[name] for name in dict.fromkeys(chosen)]
