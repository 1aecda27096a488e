"""The numbers of a model card, from the rows of a run's scores.json; what has no rows was not measured, and says so."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from varclass.evaluation.scorebook import Row
from varclass.exporting.markdown import table
from varclass.report.measures import MEASURES

COMMON = ("accuracy", "nll", "ece", "brier")
METHODS = {
    "raw": "as exported",
    "temperature": "temperature scaling",
    "vector": "vector scaling",
    "mc-dropout": "Monte-Carlo dropout",
}
FITTED = "Temperature and vector scaling are fitted on validation data and are not in the exported file."


def clean(rows: Sequence[Row]) -> str:
    """The test split."""
    held = [row for row in rows if row.method in METHODS]
    return _table(["split", "method"], [([_split(row), METHODS[row.method]], row) for row in held], COMMON) + f"\n\n{FITTED}"


def natural(rows: Sequence[Row]) -> str:
    """Splits gathered elsewhere."""
    held = [row for row in rows if row.method in METHODS]
    return _table(["split", "method"], [([_split(row), METHODS[row.method]], row) for row in held], COMMON)


def shift(rows: Sequence[Row]) -> str:
    """The mean over corruptions, by severity and method."""
    groups: dict[tuple[int, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((int(row.condition["severity"]), row.method), []).append(row)
    lines = []
    for (severity, method), held in sorted(groups.items()):
        numbers = [_mean(held, score) for score in COMMON]
        kinds = len({row.condition["type"] for row in held})
        lines.append([severity, kinds, METHODS.get(method, method), *numbers, min(row.n for row in held)])
    return table(["severity", "corruptions", "method", *_headings(COMMON), "n of each"], lines)


def ood(rows: Sequence[Row]) -> str:
    """How well each score tells outliers from test samples."""
    lines = [([row.condition["set"], row.condition["score"]], row) for row in rows]
    return _table(["outliers", "score"], lines, ("auroc", "fpr95"))


def adversarial(rows: Sequence[Row]) -> str:
    """Under attack."""
    lines = []
    for row in rows:
        steps = f", {row.condition['steps']} steps" if "steps" in row.condition else ""
        lines.append(
            (
                [f"{row.condition['attack'].upper()}{steps}", row.condition["epsilon"], row.condition.get("loss", "posterior")],
                row,
            )
        )
    return _table(["attack", "epsilon", "loss attacked"], lines, COMMON) + "\n\nFGSM alone is not robustness."


SECTIONS: dict[str, tuple[str, Callable[[Sequence[Row]], str]]] = {
    "clean": ("Test data", clean),
    "natural": ("Other splits", natural),
    "shift": ("Corrupted inputs", shift),
    "ood": ("Outliers", ood),
    "adversarial": ("Attacks", adversarial),
}


def sections(rows: Sequence[Row]) -> str:
    """Every section, with its numbers or "Not measured."."""
    parts = []
    for suite, (title, render) in SECTIONS.items():
        held = [row for row in rows if row.suite == suite]
        if suite == "natural" and not held:
            continue  # few sets have such splits
        parts.append(f"### {title}\n\n{render(held) if held else 'Not measured.'}")
    return "\n\n".join(parts)


def _table(leads: Sequence[str], lines: Sequence[tuple[Sequence[object], Row]], scores: Sequence[str]) -> str:
    cells = [[*lead, *(_mean([row], score) for score in scores), row.n] for lead, row in lines]
    return table([*leads, *_headings(scores), "n"], cells)


def _headings(scores: Sequence[str]) -> list[str]:
    return [MEASURES[score].heading for score in scores]


def _mean(rows: Sequence[Row], score: str) -> str:
    values = [float(row.scores.get(score, math.nan)) for row in rows]
    return MEASURES[score].bare(sum(values) / len(values))


def _split(row: Row) -> str:
    return str(row.condition.get("split", "test"))
