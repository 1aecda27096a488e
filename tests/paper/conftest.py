"""Results made by hand, with numbers that a test can work out; a recipe that reads them; pages taken apart."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from varclass.paper.findings import COMPARABLE, LOWER, Cell, Finding, Published
from varclass.paper.measured import Measured, MeasuredRun
from varclass.paper.page import write_page
from varclass.paper.reading import checks_of, label_of, place_of, sections
from varclass.paper.recipe import Experiment, Recipe
from varclass.report.clean import clean
from varclass.report.reading import Row

TESTS = Path(__file__).parents[1]
MADE = {"versions": {"varclass": "0.1.0", "torch": "2.13.0"}, "commit": "0123456789abcdef+", "device": {"name": "a CPU"}}
MADE["command"] = ["/home/somebody/secret.py"]


def make_run(experiment="mnist/lenet", arm="ce", seed=0, *, full=False, n=100, provenance=MADE, **scores):
    """A run with one row of the clean suite; `scores` in the place of accuracy .9, ECE .04 and NLL .3."""
    data, encoder, *size = experiment.split("/")
    head = {"objective": arm} | ({"beta": 0.25} if arm == "vc" else {})
    training = {"epochs": 3, "batch_size": 64, "optimizer": "adamw", "lr": 0.001, "schedule": "cosine", "precision": "fp32"}
    spec = {"seed": seed, "data": {"name": data, **({"limit": int(size[0])} if size else {})}, "encoder": {"name": encoder}}
    record = {"task": {"kind": "image", "classes": ["a", "b"]}, "samples": {"train": 900, "validation": 50}, "seconds": 1.5}
    held = dict.fromkeys(("ece_15", "adaptive_ece", "classwise_ece", "brier", "aurc"), 0.05)
    held |= {"bins": 20.0, "accuracy": 0.9, "ece": 0.04, "nll": 0.3} | scores
    ends = {"lower": [0.0, 0.5], "upper": [0.5, 1.0], "count": [0, n], "confidence": [None, 0.9]}
    ends |= {"accuracy": [None, 0.9], "low": [None, 0.8], "high": [None, 0.95]}
    row = Row("clean", "raw", {"split": "test", "seed": seed}, n, held, {"reliability": ends})
    return MeasuredRun(
        id=f"{experiment.replace('/', '-')}-{arm}-s{seed}{'-full' if full else ''}",
        experiment=experiment,
        arm=arm,
        seed=seed,
        full=full,
        spec=spec | {"head": head, "training": training},
        record=record | {"steps": 10, "best_epoch": 2},
        provenance=provenance,
        rows=(row,),
        stamps={"clean": "same"},
    )


def make_measured(recipe="toy", experiments=("mnist/lenet",), seeds=3, *, full=False, better=0.01):
    """CE and VC: VC's ECE is lower by `better`, a little more in later seeds; accuracies are equal."""
    runs = []
    for experiment in experiments:
        for seed in range(seeds):
            accuracy, ece = 0.9 + 0.01 * seed, 0.04 + 0.001 * seed
            runs.append(make_run(experiment, "ce", seed, full=full, accuracy=accuracy, ece=ece))
            less = better + 0.0001 * seed
            runs.append(make_run(experiment, "vc", seed, full=full, accuracy=accuracy, ece=ece - less))
    return Measured(recipe, tuple(runs))


def cells(measured):
    paper = {"ce": Published(0.6994, 0.002, "sd"), "vc": Published(0.92)}
    return [
        Cell(
            place_of(measured, experiment),
            label_of(arm),
            score,
            measured.values(experiment, arm, score),
            paper[arm] if score == "accuracy" else None,
            measured.n(experiment, arm),
        )
        for experiment in measured.experiments
        for arm in measured.of(experiment).arms
        for score in ("accuracy", "ece", "nll")
    ]


def findings(measured):
    each = measured.experiments
    return [
        Finding("VC's ECE is below CE's", [c for name in each for c in checks_of(measured, name, "ece", LOWER)], "H1"),
        Finding("Accuracies are alike", [c for name in each for c in checks_of(measured, name, "accuracy", COMPARABLE)]),
    ]


TOY = Recipe(
    name="toy",
    label="tab:toy",
    title="A toy",
    claim="VC's ECE is below CE's",
    quick=(Experiment("mnist", "lenet", ("ce", "vc"), 3),),
    full=(Experiment("mnist", "lenet", ("ce", "vc", "gm"), 5, stands_for="a larger one"), Experiment("svhn", "lenet", ("ce",))),
    cells=cells,
    findings=findings,
    figures=lambda measured: sections(measured, clean),
)


@pytest.fixture
def toy():
    """A recipe that reads accuracy, ECE and NLL of CE and VC."""
    return TOY


@pytest.fixture
def other():
    """The same under another name, whose finding bears on H2."""

    def found(measured):
        return [replace(each, hypothesis="H2" if each.hypothesis else "") for each in findings(measured)]

    return replace(TOY, name="other", findings=found)


@pytest.fixture
def run():
    """run(experiment, arm, seed, full=..., accuracy=..., ...) is a measured run."""
    return make_run


@pytest.fixture
def measured():
    """measured(recipe, experiments, seeds, full=..., better=...) is a recipe's results."""
    return make_measured


@pytest.fixture
def taken_apart(tmp_path):
    """taken_apart(recipe, measured) writes a page and takes it apart as the report's tests do."""
    spec = importlib.util.spec_from_file_location("report_pages", TESTS / "report" / "conftest.py")
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    return lambda recipe, measured: pages.Page(write_page(recipe, measured, tmp_path / "pages" / f"{recipe.name}.html"))
