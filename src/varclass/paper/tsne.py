"""Latents in a plane by t-SNE, test samples beside outliers: a suite that measures nothing and is there to be drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from varclass.evaluation.scorebook import Row
from varclass.evaluation.subject import Subject, some_of
from varclass.paper.reading import name_of
from varclass.report.axes import Axis
from varclass.report.figure import Sheet, figure, legend
from varclass.report.groups import Group, holding
from varclass.report.markup import Markup
from varclass.report.palette import SERIES
from varclass.report.panel import BOTTOM, LEFT, RIGHT, TOP, Panel
from varclass.report.pooling import rows_of

TEST, OUTLIERS = 500, 250  # samples shown, of the test split and of each set of outliers
PERPLEXITY = 30.0
DRAWN_SEED = 0  # a picture needs one model
SIDE = 440
BLACK = SERIES - 1  # a color that no class has


def tsne(subject: Subject) -> Iterator[Row]:
    """One row whose curves hold the points; of seeds but the first, a row without.

    points   x, y of each sample
    label    of a test sample, -1 of an outlier
    set      0 for the test split, k for the k-th of `sets`
    """
    sets, where = subject.options.outliers, {"seed": subject.seed}
    if subject.seed != DRAWN_SEED:
        yield Row("tsne", "raw", where, 0, {})
        return
    splits = [some_of(subject.test, TEST), *(some_of(subject.outliers(name), OUTLIERS) for name in sets)]
    z = np.concatenate([subject.predictor.latents(split) for split in splits])
    outlying = [np.full(len(split), -1) for split in splits[1:]]
    curves = {
        "points": np.round(embedded(z, subject.seed), 2),
        "label": np.concatenate([splits[0].labels, *outlying]),
        "set": np.repeat(np.arange(len(splits)), [len(split) for split in splits]),
        "sets": list(sets),
    }
    yield Row("tsne", "raw", where, len(z), {}, curves)


def embedded(z: np.ndarray, seed: int) -> np.ndarray:
    """Latents (N, D) in the plane, (N, 2)."""
    from sklearn.manifold import TSNE  # noqa: PLC0415

    perplexity = min(PERPLEXITY, (len(z) - 1) / 3)  # neighbors that there are
    return TSNE(2, perplexity=perplexity, init="pca", random_state=seed).fit_transform(z.astype(np.float64))


def draw_tsne(groups: Sequence[Group]) -> Markup | None:
    """A panel for each model of the first seed, with the classes in color and the outliers in black."""
    drawn = [(group, row) for _, group in holding(groups, "tsne") for row in rows_of(group.first, "tsne") if row.curves]
    if not drawn:
        return None
    classes, sets = drawn[0][0].first.classes, drawn[0][1].curves["sets"]
    panels = [(group.label, plane(row.curves, f"t-SNE of {group.label}")) for group, row in drawn]
    rows = [
        [group.label, *point, classes[label] if label >= 0 else "", sets[kind - 1] if kind else "test"]
        for group, row in drawn
        for point, label, kind in zip(row.curves["points"], row.curves["label"], row.curves["set"], strict=True)
    ]
    names = [(class_series(label), name) for label, name in enumerate(classes)]
    names += [(set_series(kind), name_of(name)) for kind, name in enumerate(sets, start=1)]
    counts = [sum(kind == each for kind in drawn[0][1].curves["set"]) for each in range(len(sets) + 1)]
    held = [f"{counts[0]} test samples", *(f"{n} of {name_of(name)}" for n, name in zip(counts[1:], sets, strict=True))]
    return figure(
        "t-SNE of the latents",
        panels,
        Sheet(("model", "x", "y", "label", "set"), rows),
        f"{', '.join(held)}; seed {DRAWN_SEED}. Outliers are black. t-SNE keeps neighbors together: distances between groups, "
        "and the axes, mean nothing.",
        legend(names, line=False),
        columns=2,
    )


def plane(curves: Mapping[str, Any], title: str) -> Markup:
    """The points of one model."""
    points, labels, kinds = (np.array(curves[name]) for name in ("points", "label", "set"))
    middle, half = (points.max(0) + points.min(0)) / 2, max(float(np.ptp(points, axis=0).max()) / 2, 1e-9) * 1.03
    across, up = (Axis(f"t-SNE {i + 1}", middle[i] - half, middle[i] + half, ()) for i in range(2))
    panel = Panel(across, up, SIDE + LEFT + RIGHT, SIDE + TOP + BOTTOM)
    for label in np.unique(labels[kinds == 0]):
        panel.dots(points[(kinds == 0) & (labels == label)].tolist(), class_series(int(label)))
    for kind in np.unique(kinds[kinds > 0]):
        panel.dots(points[kinds == kind].tolist(), set_series(int(kind)))
    inside = int((kinds == 0).sum())
    return panel.svg(title, f"{inside} test samples and {len(kinds) - inside} outliers.")


def class_series(label: int) -> int:
    """The place of a class in the palette, which leaves out black."""
    return label + label // BLACK


def set_series(kind: int) -> int:
    """The place of the k-th set of outliers, from 1: black, each with a marker of its own."""
    return BLACK + SERIES * (kind - 1)
