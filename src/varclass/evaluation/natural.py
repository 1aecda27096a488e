"""The natural suite: labelled splits of the same task that were gathered in another way, such as MultiNLI for SNLI."""

from __future__ import annotations

from collections.abc import Iterator

from varclass.evaluation.clean import RAW, TEMPERATURE, repairs, scored
from varclass.evaluation.scorebook import Row
from varclass.evaluation.subject import Subject


def natural(subject: Subject) -> Iterator[Row]:
    """Every clean metric on each split, raw and with the temperature fitted on the run's own validation data."""
    scaling = repairs(subject).get(TEMPERATURE)
    for name in subject.options.splits:
        predictions = subject.keep(f"split-{name}", subject.predictor.predict(subject.own(name)))
        condition = {"split": name, "seed": subject.seed}
        yield scored("natural", RAW, condition, predictions)
        if scaling is not None:
            yield scored("natural", TEMPERATURE, condition, scaling.apply(predictions))
