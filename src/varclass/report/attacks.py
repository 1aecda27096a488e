"""Attacked test images: accuracy and NLL against the magnitude of FGSM, with PGD beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from varclass.report.axes import linear
from varclass.report.curves import lines_figure
from varclass.report.figure import section
from varclass.report.groups import Group, holding
from varclass.report.markup import Markup, tag
from varclass.report.measures import MEASURES
from varclass.report.pooling import counts, pooled, shared_keys
from varclass.report.score_table import Line, score_table

CAVEAT = (
    "FGSM alone is not robustness: one step along the gradient misses what a stronger attack finds, and a model whose "
    "gradients are small or masked looks safe. PGD, the same attack in many steps, is drawn beside it; neither bounds what an "
    "attack that knows the model could do."
)


def attacks(groups: Sequence[Group]) -> Markup | None:
    """The section, or None if nothing was measured."""
    held = holding(groups, "adversarial")
    keys = shared_keys([group for _, group in held], "adversarial")
    if not keys:
        return None
    order = sorted(keys, key=lambda key: (dict(key)["loss"] != "posterior", dict(key)["attack"], dict(key)["epsilon"]))
    lines = [Line((group.label, *_cells(key)), group, "adversarial", "raw", (key,)) for key in order for _, group in held]
    caption = (
        "Magnitude: the largest change of a pixel in [0, 1]. The gradient is that of -log p(y|x) unless another loss is named."
    )
    return section(
        "Attacked images",
        tag("p", CAVEAT, class_="caveat"),
        magnitudes(held, order),
        score_table("Scores under attack", ("model", "attack", "magnitude"), lines, ("accuracy", "nll", "ece"), caption),
    )


def magnitudes(held: Sequence[tuple[int, Group]], keys: Sequence[Any]) -> Markup:
    """A panel per attack, a line per group."""
    panels = []
    for score in ("accuracy", "nll"):
        measure = MEASURES[score]
        for attack, loss in dict.fromkeys((dict(key)["attack"], dict(key)["loss"]) for key in keys):
            at = {dict(key)["epsilon"]: key for key in keys if (dict(key)["attack"], dict(key)["loss"]) == (attack, loss)}
            heading = f"{measure.name}, {attack.upper()}" + (" on the training loss" if loss != "posterior" else "")
            curves = {
                position: [(epsilon, pooled(group, score, "adversarial", keys=[key])) for epsilon, key in at.items()]
                for position, group in held
            }
            panels.append((heading, measure, curves))
    every = [0.0, *(dict(key)["epsilon"] for key in keys)]
    n = counts(held[0][1], "adversarial")
    return lines_figure(
        "Accuracy against magnitude",
        linear("magnitude", every),
        panels,
        {position: group.label for position, group in held},
        f"Mean over seeds; bars: 95% t-intervals over seeds, where there are several. n = {n} test samples.",
    )


def _cells(key: Any) -> tuple[str, str]:
    given = dict(key)
    name = given["attack"].upper() + (f", {given['steps']} steps" if given.get("steps") else "")
    return name + (", training loss" if given["loss"] != "posterior" else ""), f"{given['epsilon']:g}"
