"""tab:natural, H2: tested on data gathered elsewhere, VC is better calibrated than CE.

It is as accurate on NLI (trained on SNLI, tested on MultiNLI), and more accurate on Camelyon17 (trained on 1000 patches of
three hospitals, tested on another one's). The paper names no encoder for either; that of NLI is a small Transformer from
scratch here ("text"). SICK stands beside MultiNLI.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from varclass.data.catalogue import CATALOGUE
from varclass.paper.findings import COMPARABLE, HIGHER, LOWER, Cell, Check, Finding, Published
from varclass.paper.measured import Measured
from varclass.paper.reading import checks_of, label_of, place_of
from varclass.paper.recipe import Experiment, Recipe
from varclass.report.clean import BINS, diagram
from varclass.report.figure import Sheet, columns_for, figure, section
from varclass.report.markup import Markup, tag
from varclass.report.measures import MEASURES
from varclass.report.pooling import span

CLAIM = "Under natural shift VC's ECE is lower than CE's, its accuracy comparable on NLI and higher on Camelyon17"
ARMS = ("ce", "gm", "vc")
NLI = {"accuracy": {"ce": (0.712, 0.001), "vc": (0.712, 0.001)}, "ece": {"ce": (0.073, 0.002), "vc": (0.034, 0.002)}}
CAMELYON = {"accuracy": {"ce": (0.792, 0.028), "vc": (0.845, 0.040)}, "ece": {"ce": (0.084, 0.025), "vc": (0.018, 0.013)}}
PAPER = {("nli", "mnli"): NLI, ("nli_dev", "mnli"): NLI, ("camelyon17", "test"): CAMELYON}  # standard errors, 5 runs
SPLITS = {"mnli": "MultiNLI", "sick": "SICK"}
OTHERS = {"splits": tuple(SPLITS)}
SUITES = ("clean", "natural")
# all 1000 are trained on: the validation patches are a fourth hospital's
PATCHES = {"data.limit": 1000, "data.validation": 0.0}
Place = tuple[str, str, str, str]  # experiment, suite, split, as a reader knows it


def places(measured: Measured) -> Iterator[Place]:
    """Where the test data was gathered in another way than the training data."""
    for experiment in measured.experiments:
        if experiment.startswith("camelyon17/"):
            yield experiment, "clean", "test", f"{place_of(measured, experiment)}, another hospital"
        else:
            for split, name in SPLITS.items():
                yield experiment, "natural", split, f"{place_of(measured, experiment)}, tested on {name}"


def published(experiment: str, split: str, score: str, arm: str) -> Published | None:
    """The paper's number of a model."""
    found = PAPER.get((experiment.partition("/")[0], split), {}).get(score, {}).get(arm)
    return None if found is None else Published(*found, "se")


def cells(measured: Measured) -> list[Cell]:
    return [
        Cell(
            where,
            label_of(arm),
            score,
            measured.values(experiment, arm, score, suite, split=split),
            published(experiment, split, score, arm),
            measured.n(experiment, arm, suite, split=split),
        )
        for experiment, suite, split, where in places(measured)
        for score in ("accuracy", "ece", "nll")
        for arm in measured.of(experiment).arms
    ]


def findings(measured: Measured) -> list[Finding]:
    def checks(score: str, says: str, among: Sequence[str]) -> list[Check]:
        return [
            check
            for experiment, suite, split, where in places(measured)
            if split in among
            for check in checks_of(measured, experiment, score, says, suite, where=where.rpartition(", ")[2], split=split)
        ]

    return [
        Finding("VC is better calibrated than CE under natural shift", checks("ece", LOWER, ("mnli", "test")), "H2"),
        Finding("VC's accuracy is comparable to CE's from SNLI to MultiNLI", checks("accuracy", COMPARABLE, ("mnli",))),
        Finding(
            "VC is more accurate than CE at another hospital, from 1000 samples", checks("accuracy", HIGHER, ("test",)), "H4"
        ),
        Finding("VC is better calibrated on SICK too, which the paper did not try", checks("ece", LOWER, ("sick",))),
    ]


def figures(measured: Measured) -> Sequence[Markup | None]:
    """What the training data was, where it is not the paper's; then the reliability of each model in each place."""
    return [_note(measured), *(_reliability(measured, place) for place in places(measured))]


def _note(measured: Measured) -> Markup | None:
    if not any(experiment.startswith("nli_dev/") for experiment in measured.experiments):
        return None
    ours, whole = (f"{CATALOGUE[name].samples['train']:,}" for name in ("nli_dev", "nli"))
    text = (
        f"NLI from SNLI dev is for where SNLI's training file is not at hand: it trains on SNLI's {ours} dev pairs, or on as "
        f"many of them as its name says, instead of {whole} training pairs; a tenth of them is held out. Its encoder "
        "learns from scratch, without pretraining."
    )
    return section("Training data", tag("p", text, class_="caveat"))


def _reliability(measured: Measured, place: Place) -> Markup | None:
    experiment, suite, split, where = place
    panels, rows = [], []
    for series, arm in enumerate(measured.of(experiment).arms):
        for seed, row in sorted(measured.rows(experiment, arm, suite, split=split), key=lambda each: each[0])[:1]:
            found = row.curves["reliability"]
            bins = [dict(zip(BINS, each, strict=True)) for each in zip(*(found[column] for column in BINS), strict=True)]
            rows += [[label_of(arm), seed, row.n, *each.values()] for each in bins]
            label, ece = f"{label_of(arm)}, seed {seed}", f"ECE {MEASURES['ece'].text(row.scores['ece'])}"
            panels.append((f"{label}: {ece}", diagram(bins, series, label, row.n, f"{ece} over n = {row.n} samples")))
    if not rows:
        return None
    caption = (
        "Accuracy against confidence in bins of equal width, with Wilson's 95% intervals; on the dashed diagonal confidence is "
        f"honest. Bars: the samples' share in each bin. n = {span(row[2] for row in rows)} samples."
    )
    drawn = figure("Reliability", panels, Sheet(("model", "seed", "n", *BINS), rows), caption, columns=columns_for(len(panels)))
    return section(where, drawn)


RECIPE = Recipe(
    name="natural-shift",
    label="tab:natural",
    title="Natural shift",
    claim=CLAIM,
    quick=(Experiment("nli_dev", "text", ("ce", "vc"), 2, SUITES, OTHERS, {"data.limit": 3000, "training.epochs": 3}),),
    full=(
        Experiment("nli", "text", (*ARMS, "authors"), 5, SUITES, OTHERS),
        Experiment("nli_dev", "text", (*ARMS, "authors", "pull", "smoothing"), 5, SUITES, OTHERS),
        Experiment("camelyon17", "resnet-50", (*ARMS, "authors"), 5, changes=PATCHES),
    ),
    cells=cells,
    findings=findings,
    figures=figures,
)
