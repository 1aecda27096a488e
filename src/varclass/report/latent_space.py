"""The latent space: test samples in a plane with the class priors' contours, and how well q(z|y) fits p(z|y)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from varclass.report.figure import Sheet, figure, section, slug
from varclass.report.groups import Group, holding
from varclass.report.markup import Markup, data_block, number, tag
from varclass.report.mistakes import named
from varclass.report.palette import class_color, class_marker, class_swatch
from varclass.report.pooling import rows_of
from varclass.report.score_table import Line, score_table

SIZE, EDGE = 380, 14
NAMED = 20  # classes: with more, names and contours in the plane would only cover it
NEAR = 10.0  # where two names would hide each other, in the drawing
View = tuple[Group, Mapping[str, Any]]
FIT = ("mean_rms", "variance", "skewness_rms", "kurtosis", "rejected", "kl")


def latents(groups: Sequence[Group]) -> Markup | None:
    """The section, or None if neither a view nor a score was made."""
    lines = [_line(group) for _, group in holding(groups, "latents")]
    caption = (
        "Test latents standardized by their class's prior, mean over classes: mean, skewness, kurtosis and KL 0, variance 1 "
        "where q(z|y) is p(z|y). Rejected: dimensions that a Kolmogorov-Smirnov test tells from N(0, 1)."
    )
    fit = score_table("Fit of the class priors", ("model",), lines, FIT, caption)
    sets: dict[tuple[str, ...], list[View]] = {}
    for group in groups:
        view = group.first.view if group.runs else None
        if view is not None and view.get("points"):
            sets.setdefault(tuple(classes_of(group, view)), []).append((group, view))
    several = len(sets) > 1  # models of different classes cannot share a filter
    drawn = [scatter(views, f"Latents {place}" if several else "Latents") for place, views in enumerate(sets.values(), start=1)]
    return section("Latent space", drawn, fit) if drawn or fit else None


def _line(group: Group) -> Line:
    match = {"class": "all"}
    dims = {int(row.condition["dim"]) for row in rows_of(group.first, "latents", **match) if "dim" in row.condition}
    return Line((group.label,), group, "latents", "raw", None, match, {"rejected": max(dims)} if dims else {})


def classes_of(group: Group, view: Mapping[str, Any]) -> list[str]:
    """The names of the classes."""
    return [str(name) for name in view.get("classes", group.first.classes)]


def scatter(views: Sequence[View], name: str) -> Markup:
    """A panel per group, at its lowest seed, and the filter by class that works on all of them."""
    samples: dict[str, int] = {}
    panels, data, rows = [], [], []
    for place, (group, view) in enumerate(views):
        classes = classes_of(group, view)
        drawn, points = plane(view, classes, f"Latent space of {group.label}")
        label = f"Latent space of {group.label}: arrow keys step through the samples"
        box = tag("div", drawn, class_="latents", tabindex=0, role="application", aria_label=label, data_panel=place)
        panels.append((f"{group.label}, seed {group.first.seed}", box))
        held = list(zip(view["index"], view["label"], view["predicted"], view["confidence"], view["log_evidence"], strict=True))
        shown = [view.get("samples", {}).get(str(each[0])) for each in held]
        refer = [None if sample is None else samples.setdefault(sample, len(samples)) for sample in shown]
        data.append([[*at, *each, ref] for at, each, ref in zip(points, held, refer, strict=True)])
        rows += [
            [group.label, group.first.seed, i, *xy, named(y, classes), named(to, classes), confidence, evidence]
            for xy, (i, y, to, confidence, evidence) in zip(view["points"], held, strict=True)
        ]
    columns = ("model", "seed", "index", "z1", "z2", "label", "predicted", "confidence", "log p(z)")
    drawn = figure(name, panels, Sheet(columns, rows), _caption(views), _filter(views))
    held_out = {"classes": classes_of(*views[0]), "panels": data, "samples": list(samples)}
    return tag("div", drawn, data_block(f"data-{slug(name)}", held_out), class_="explorer")


def plane(view: Mapping[str, Any], classes: Sequence[str], title: str) -> tuple[Markup, list[tuple[float, float]]]:
    """The drawing, and where each sample lies in it. Both axes have the same scale, so that distances are true."""
    points = np.array(view["points"], dtype=float).reshape(-1, 2)
    priors = [_ellipse(prior) for prior in view.get("priors", [])] if len(classes) <= NAMED else []
    corners = [mean + sign * 2 * radii.max() for mean, radii, _ in priors for sign in (-1, 1)]
    cloud = np.concatenate([points, *(corner[None] for corner in corners)])
    low, high = cloud.min(0), cloud.max(0)
    scale = (SIZE - 2 * EDGE) / max(float((high - low).max()), 1e-12)
    center = (low + high) / 2
    places = np.array([SIZE / 2, SIZE / 2]) + (points - center) * scale * np.array([1, -1])
    contours = [_contour(mean, radii, angle, center, scale, series) for series, (mean, radii, angle) in enumerate(priors)]
    names = _names(priors, center, scale, classes)
    dots = [
        tag(
            "path",
            d=f"M{number(x)} {number(y)}{class_marker(_series(label, classes))}",
            class_=f"point {class_color(_series(label, classes))}" + ("" if label == to else " wrong"),
            data_class=label,
        )
        for (x, y), label, to in zip(places, view["label"], view["predicted"], strict=True)
    ]
    right = sum(label == to for label, to in zip(view["label"], view["predicted"], strict=True))
    alt = f"{len(points)} test samples of {len(classes)} classes, {right} of them predicted correctly"
    alt += (
        f", with the contours of {len(priors)} class priors at 1 and 2 sigma."
        if priors
        else "; without contours of the class priors."
    )
    body = tag("desc", alt), contours, tag("g", dots, class_="points"), names
    drawn = tag("svg", *body, viewBox=f"0 0 {SIZE} {SIZE}", role="img", aria_label=f"{title}. {alt}", class_="plot plane")
    return drawn, [(round(float(x), 2), round(float(y), 2)) for x, y in places]


def _ellipse(prior: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, float]:
    values, vectors = np.linalg.eigh(np.array(prior["covariance"], dtype=float))
    angle = math.degrees(math.atan2(vectors[1, 1], vectors[0, 1]))
    return np.array(prior["mean"], dtype=float), np.sqrt(np.maximum(values, 0))[::-1], angle


def _contour(mean: np.ndarray, radii: np.ndarray, angle: float, center: np.ndarray, scale: float, series: int) -> Markup:
    x, y = SIZE / 2 + (mean - center) * scale * np.array([1, -1])
    turn = f"rotate({number(-angle)} {number(x)} {number(y)})"  # the page's y runs down
    rings = [
        tag("ellipse", cx=float(x), cy=float(y), rx=float(k * radii[0] * scale), ry=float(k * radii[1] * scale), transform=turn)
        for k in (1, 2)
    ]
    return tag("g", rings, class_=f"contour {class_color(series)}", data_class=series)


def _names(priors: Sequence[Any], center: np.ndarray, scale: float, classes: Sequence[str]) -> list[Markup]:
    """A name at each mean; where means coincide, one text for all of them."""
    places: list[tuple[np.ndarray, list[int]]] = []
    for series, (mean, _, _) in enumerate(priors):
        place = SIZE / 2 + (mean - center) * scale * np.array([1, -1])
        held = next((held for other, held in places if np.linalg.norm(place - other) < NEAR), None)
        if held is None:
            places.append((place, [series]))
        else:
            held.append(series)
    return [
        tag(
            "text",
            f"{len(held)} classes" if len(held) > 1 else _short(classes[held[0]]),
            x=float(x),
            y=float(y) + 4,
            text_anchor="middle",
            class_="name",
            data_class=" ".join(map(str, held)),
        )
        for (x, y), held in places
    ]


def _short(name: str) -> str:
    return name if len(name) <= 14 else name[:13] + "…"


def _series(label: int, classes: Sequence[str]) -> int:
    return label if label >= 0 else len(classes)


def _filter(views: Sequence[View]) -> Markup:
    classes = classes_of(*views[0])
    names = list(enumerate(classes))
    if any(label < 0 for _, view in views for label in view["label"]):
        names.append((-1, "no class"))
    tick = {"type": "checkbox", "checked": True, "class_": "class-filter", "autocomplete": "off"}
    boxes = [tag("label", tag("input", value=i, **tick), class_swatch(_series(i, classes)), name) for i, name in names]
    buttons = [tag("button", text, type="button", data_classes=what) for text, what in (("All", "all"), ("None", "none"))]
    wrong = tag("label", tag("input", type="checkbox", class_="only-wrong", autocomplete="off"), "mistakes only")
    return tag(
        "fieldset", tag("legend", "Classes"), tag("div", boxes, class_="boxes"), tag("p", buttons, wrong), class_="filter"
    )


def _caption(views: Sequence[View]) -> str:
    pca = any(view.get("projection") == "pca" for _, view in views)
    with_priors = [group.label for group, view in views if view.get("priors")]
    how = "The first two principal axes of latents and class means, of each model its own" if pca else "Both latent dimensions"
    n = " or ".join(str(n) for n in sorted({len(view["points"]) for _, view in views}))
    text = f"{how}; n = {n} of the test split. Mistakes have a strong edge. Point at a sample, touch it, or use the arrow keys."
    if not with_priors:
        return text + " These priors are not Gaussian: they have no contours here."
    if len(classes_of(*views[0])) > NAMED:
        return text + f" More than {NAMED} classes: without the ellipses of p(z|y), which would cover the samples."
    missing = [group.label for group, view in views if not view.get("priors")]
    text += " Ellipses: p(z|y) at 1 and 2 sigma, projected."
    return text + (f" {', '.join(missing)}: not Gaussian, no contours." if missing else "")
