"""What is compared: every group with its baseline, in each score that matters, wherever both were measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from varclass.report.figure import Sheet, table
from varclass.report.groups import Group, baseline_of
from varclass.report.markup import Markup, join, tag
from varclass.report.measures import MEASURES
from varclass.report.pooling import by_seed, pooled, shared_keys
from varclass.report.words import Comparison, overview

MAIN = ("accuracy", "nll", "ece")
SCORES = {
    "max_probability": "max p(y|x)",
    "entropy": "entropy",
    "log_evidence": "log p(z)",
    "mahalanobis": "Mahalanobis distance",
    "energy": "energy",
}
MEASURED = {  # what the numbers of a score are: turned so that higher is more in-distribution
    "max_probability": "log max p(y|x)",
    "entropy": "-entropy, nats",
    "log_evidence": "log p(z)",
    "mahalanobis": "-squared Mahalanobis distance",
    "energy": "-energy",
}


def compare(groups: Sequence[Group]) -> list[tuple[Group, Group, list[Comparison]]]:
    """Each group that has a baseline, the baseline, and what came out."""
    pairs = ((group, baseline_of(group, groups)) for group in groups)
    return [(group, base, list(_comparisons(group, base))) for group, base in pairs if base is not None]


def in_words(found: Sequence[tuple[Group, Group, list[Comparison]]]) -> Markup:
    """The comparisons as text: for each group one sentence over all, then one for each score."""
    parts = []
    for group, base, comparisons in found:
        if not comparisons:
            continue
        seeds = max(len(each.seeds) for each in comparisons)
        start = f"{group.label} against {base.label}, {seeds} seed{'' if seeds == 1 else 's'}: "
        each = [tag("li", line.sentence, class_=line.verdict.replace(" ", "-")) for line in comparisons]
        parts.append(tag("p", tag("strong", start), overview(comparisons)) + tag("ul", each, class_="verdicts"))
    return join(*(Markup(part) for part in parts))


def differences(found: Sequence[tuple[Group, Group, list[Comparison]]]) -> Markup | None:
    """The same as a table."""
    lines = [each for _, _, comparisons in found for each in comparisons]
    if not lines:
        return None
    shown, long = [], []
    for each in lines:
        measure, gap = each.measure, each.difference
        ends = "none" if gap.n < 2 else f"{measure.change(gap.low)} to {measure.change(gap.high)}"
        seeds = ", ".join(map(str, each.seeds)) or "none in common"
        values = [measure.text(each.value.mean), measure.text(each.other.mean), f"{measure.change(gap.mean)}{measure.unit}"]
        shown.append([each.label, each.against, measure.name, each.where, *values, ends, seeds, each.verdict])
        numbers = [each.value.mean, each.other.mean, gap.mean, gap.low, gap.high, gap.sd, gap.n]
        long.append([each.label, each.against, measure.key, each.where, *numbers, seeds, each.verdict])
    columns = ["model", "against", "score", "where", "model's", "other's", "difference", "95% interval", "seeds", "verdict"]
    names = ["model", "against", "score", "where", "value", "other", "difference", "low", "high", "sd", "n", "seeds", "verdict"]
    caption = (
        "Model minus other, seed by seed, on the seeds both have. Better or worse only where the t-interval leaves out 0; "
        f"of {len(lines)} comparisons about one in twenty would do so by chance alone."
    )
    return table("Paired differences", columns, shown, Sheet(names, long), caption)


def listed(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """The same for a script: numbers, verdict and sentence of each comparison."""
    lines = [each for _, _, comparisons in compare(groups) for each in comparisons]
    return [
        {
            "model": each.label,
            "against": each.against,
            "score": each.measure.key,
            "where": each.where,
            "seeds": list(each.seeds),
        }
        | {"value": each.value.mean, "other": each.other.mean, "difference": each.difference.mean}
        | {"low": each.difference.low, "high": each.difference.high, "verdict": each.verdict, "sentence": each.sentence}
        for each in lines
    ]


def middle(magnitudes: Sequence[float]) -> float:
    """The middle one; of an even number the lower of the two.

    >>> middle([0.01, 0.02, 0.05, 0.1, 0.2]), middle([0.1, 0.3])
    (0.05, 0.1)
    """
    return sorted(magnitudes)[(len(magnitudes) - 1) // 2]


def _comparisons(group: Group, base: Group) -> Iterator[Comparison]:
    both = [group, base]
    for score in MAIN:
        yield from _one(both, score, "clean", "clean")
    for score in ("nll", "ece"):
        values, others = by_seed(group, score, "clean"), by_seed(base, score, "clean", "temperature")
        if values and others:
            where = f"clean, against {base.label} after temperature scaling"
            yield Comparison.of(group.label, base.label, where, MEASURES[score], values, others)
    keys = shared_keys(both, "shift")
    if keys:
        types, severities = ({dict(key)[name] for key in keys} for name in ("type", "severity"))
        where = f"mean over {len(types)} corruptions at severities {', '.join(map(str, sorted(severities)))}"
        for score in MAIN:
            yield from _one(both, score, "shift", where, keys=keys)
    for attack in ("fgsm", "pgd"):
        keys = shared_keys(both, "adversarial", attack=attack, loss="posterior")
        if keys:
            epsilon = middle([dict(key)["epsilon"] for key in keys])
            chosen = [key for key in keys if dict(key)["epsilon"] == epsilon]
            yield from _one(both, "accuracy", "adversarial", f"{attack.upper()} at {epsilon:g}", keys=chosen)
    measured = all(shared_keys([each], "ood") for each in both)
    for name in dict.fromkeys(dict(key)["set"] for key in shared_keys(both, "ood") if measured):
        best = [best_score(each, name) for each in both]
        values, others = (by_seed(each, "auroc", "ood", set=name, score=score) for each, score in zip(both, best, strict=True))
        how = " and ".join(dict.fromkeys(SCORES.get(each, each) for each in best))
        where = f"outliers {outlier_name(name)}, each by its best score, {how}"
        yield Comparison.of(group.label, base.label, where, MEASURES["auroc"], values, others)


def best_score(group: Group, name: str) -> str:
    """The detection score with the highest mean AUROC on a set of outliers."""
    scores = dict.fromkeys(dict(key)["score"] for key in shared_keys([group], "ood", set=name))
    found = {score: pooled(group, "auroc", "ood", set=name, score=score).mean for score in scores}
    return max(found, key=lambda score: (found[score] == found[score], found[score]))  # NaN, unequal to itself, last


def outlier_name(name: str) -> str:
    """A data set as a reader would call it: a path by its last part."""
    return name.replace("\\", "/").rstrip("/").rpartition("/")[2]


def _one(both: Sequence[Group], score: str, suite: str, where: str, **match: Any) -> Iterator[Comparison]:
    values, others = (by_seed(each, score, suite, **match) for each in both)
    if values and others:
        yield Comparison.of(both[0].label, both[1].label, where, MEASURES[score], values, others)
