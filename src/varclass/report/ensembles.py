"""Deep ensembles over the seeds of a group, from the predictions kept beside each run."""

from __future__ import annotations

from collections.abc import Sequence

from varclass.metrics.ensemble import ensemble
from varclass.metrics.predictions import Predictions
from varclass.metrics.summary import score
from varclass.report.figure import Sheet, table
from varclass.report.groups import Group
from varclass.report.markup import Markup
from varclass.report.measures import MEASURES

SCORES = ("accuracy", "nll", "ece", "brier", "aurc")


def ensembles(groups: Sequence[Group]) -> Markup | None:
    """A line per group of several seeds whose predictions are at hand; None if there is none."""
    shown, sheet = [], []
    for group in groups:
        files = [(seed, run.path / "predictions" / "test.npz") for seed, run in sorted(group.runs.items())]
        held = [(seed, Predictions.load(file)) for seed, file in files if file.is_file()]
        if len(held) < 2:
            continue
        found = score(ensemble([predictions for _, predictions in held]))
        seeds = ", ".join(str(seed) for seed, _ in held)
        numbers = [found[name] for name in SCORES]
        cells = [MEASURES[name].text(value) for name, value in zip(SCORES, numbers, strict=True)]
        shown.append([group.label, *cells, str(found["n"]), str(found["bins"]), "test", seeds])
        sheet.append([group.label, *numbers, found["n"], found["bins"], "test", seeds])
    if not shown:
        return None
    columns = ["model", *(MEASURES[name].heading for name in SCORES), "n", "bins", "split", "seeds"]
    names = ["model", *SCORES, "n", "bins", "split", "seeds"]
    caption = (
        "The average of p(y|x) over the models of all seeds: one number each, at that many times the cost of a prediction."
    )
    return table("Deep ensembles", columns, shown, Sheet(names, sheet), caption)
