"""The most confident mistakes, as pictures or texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from varclass.report.figure import Sheet, figure, section
from varclass.report.groups import Group
from varclass.report.markup import Markup, tag

SHOWN = 12


def mistakes(groups: Sequence[Group]) -> Markup | None:
    """The section, or None if no run has a view. One run stands for each group."""
    galleries, rows = [], []
    for group in groups:
        if not group.runs or group.first.view is None:
            continue
        run, view = group.first, group.first.view
        classes = [str(name) for name in view.get("classes", run.classes)]
        for each in view.get("mistakes", []):
            numbers = [each["confidence"], each["log_evidence"]]
            rows.append(
                [
                    group.label,
                    run.seed,
                    each["index"],
                    named(each["label"], classes),
                    named(each["predicted"], classes),
                    *numbers,
                ]
            )
        cards = [_card(each, classes, view.get("samples", {})) for each in view.get("mistakes", [])[:SHOWN]]
        found = tag("ol", cards, class_="cards") if cards else tag("p", "None: every test sample was classified correctly.")
        galleries.append((f"{group.label}, seed {run.seed}", found))
    if not galleries:
        return None
    drawn = figure(
        "Most confident mistakes",
        galleries,
        Sheet(("model", "seed", "index", "label", "predicted", "confidence", "log p(z)"), rows),
        f"Errors on the test split by falling confidence, at most {SHOWN} of each model (the CSV has up to 24), with log p(z).",
    )
    return section("Mistakes", drawn)


def named(label: int, classes: Sequence[str]) -> str:
    """A class by its name; a sample of none has none."""
    return classes[label] if 0 <= label < len(classes) else "no class"


def picture(sample: str | None, alt: str) -> Markup:
    """A sample: an image if it is one, else its text."""
    if sample is None:
        return tag("p", "not kept", class_="text")
    if sample.startswith("data:image/png;base64,"):
        return tag("img", src=sample, alt=alt, width=64, height=64)
    return tag("p", sample, class_="text")


def _card(each: Mapping[str, Any], classes: Sequence[str], samples: Mapping[str, str]) -> Markup:
    label, predicted = named(each["label"], classes), named(each["predicted"], classes)
    evidence = "no data" if each["log_evidence"] is None else f"{each['log_evidence']:.1f}"
    text = tag(
        "p",
        "predicted ",
        tag("strong", predicted),
        f" ({100 * each['confidence']:.1f}%)",
        tag("br"),
        "label ",
        tag("strong", label),
    )
    alt = f"Test sample {each['index']}, labeled {label}, predicted {predicted}"
    return tag(
        "li",
        picture(samples.get(str(each["index"])), alt),
        text,
        tag("p", f"log p(z) {evidence}, #{each['index']}", class_="quiet"),
    )
