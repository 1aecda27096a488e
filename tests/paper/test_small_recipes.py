"""The recipes of one figure or table each: latents in the plane, ambiguous digits, few samples, MedMNIST, natural shift."""

import json
from dataclasses import replace

import numpy as np
import pytest

from varclass.data.loading import load
from varclass.data.split import Split
from varclass.evaluation.subject import Options, Subject
from varclass.metrics.detection import auroc
from varclass.paper.findings import FAILS, HOLDS, NO_DATA
from varclass.paper.measured import Measured, read_measured
from varclass.paper.measuring import Place
from varclass.paper.reading import label_of
from varclass.paper.recipe import Experiment
from varclass.paper.recipes import ambiguous, latents_2d, low_data, medmnist, natural_shift
from varclass.paper.running import Request, plan, reproduce
from varclass.report.reading import Row
from varclass.training.runs import Run
from varclass.training.spec import DataSpec
from varclass.training.task import prepare

MODULES = [latents_2d, ambiguous, low_data, medmnist, natural_shift]
SMALL = {"training.epochs": 2, "encoder.options": {"hidden": [16], "features": 8}}


@pytest.fixture(params=MODULES, ids=lambda module: module.RECIPE.name)
def recipe(request):
    return request.param.RECIPE


# ------------------------------------------------------------------------------------------------------------ latents


@pytest.fixture(scope="module")
def planes(tmp_path_factory):
    """The recipe of the plane on digits, and its results as read back from the file."""
    changes = SMALL | {"head.latent_dim": 2}
    small = replace(
        latents_2d.RECIPE, quick=(Experiment("digits", "mlp", ("ce-means", "gm", "vc"), 1, ("clean", "latents"), {}, changes),)
    )
    place = Place(tmp_path_factory.mktemp("results"), tmp_path_factory.mktemp("runs"))
    reproduce([small], Request(), place)
    return small, read_measured(place.results / "latents-2d.json", "latents-2d")


def test_latents_are_two_numbers_and_their_fit_is_the_mean_over_classes(planes):
    recipe, measured = planes
    assert {run.spec["head"]["latent_dim"] for run in measured} == {2}
    kl = {cell.arm: cell.values[0] for cell in recipe.cells(measured) if cell.score == "kl"}
    for run in measured:
        by_class = [row.scores["kl"] for row in run.rows if row.suite == "latents" and row.condition["class"] != "all"]
        assert len(by_class) == 10
        assert kl[label_of(run.arm)] == pytest.approx(np.mean(by_class), rel=1e-4)  # a file keeps six digits
    (against_ce,) = recipe.findings(measured)[0].checks
    assert against_ce.values == {0: kl["VC"]}
    assert against_ce.others == {0: kl["CE"]}
    (against_gm,) = recipe.findings(measured)[1].checks
    assert against_gm.others == {0: kl["GM"]}


def test_planes_are_drawn_from_results_that_keep_no_samples(planes):
    recipe, measured = planes
    (drawn,) = recipe.figures(measured)
    assert drawn.count("<ellipse") == 3 * 10 * 2  # models, classes, one and two sigma
    assert drawn.count('class="point ') == 3 * 600
    assert all(run.view["samples"] == {} for run in measured)


# ---------------------------------------------------------------------------------------------------------- ambiguous


@pytest.fixture(scope="module")
def mixes(tmp_path_factory):
    """The recipe of ambiguous digits on scikit-learn's, its results, and the runs' folder."""
    options = {"samples": 200}
    small = replace(
        ambiguous.RECIPE, quick=(Experiment("digits", "mlp", ("ce-means", "vc"), 2, ("clean", "ambiguous"), options, SMALL),)
    )
    place = Place(tmp_path_factory.mktemp("results"), tmp_path_factory.mktemp("runs"))
    return small, reproduce([small], Request(), place)["ambiguous"], place.runs


def test_pairs_are_of_different_classes_and_the_same_for_every_run():
    split = load("digits")["test"]
    first, second = ambiguous.pairs(split, 300)
    assert len(first) == len(second) == 300
    assert (split.labels[first] != split.labels[second]).all()
    again = ambiguous.pairs(split, 300)
    assert (again[0] == first).all()
    assert (again[1] == second).all()


def test_a_mix_is_the_one_image_at_0_the_other_at_1_and_their_mean_between():
    pixels = np.array([[0, 100], [200, 50]], np.uint8).reshape(2, 1, 2, 1)
    split = Split("image", pixels, np.array([3, 7]), tuple("0123456789"))
    one, two = np.array([0]), np.array([1])
    for t, expected in ((0.0, [0, 100]), (1.0, [200, 50]), (0.5, [100, 75]), (0.125, [25, 94])):
        found = ambiguous.mixed(split, one, two, t)
        assert found.inputs.dtype == np.uint8
        assert found.inputs.ravel().tolist() == expected
        assert found.labels.tolist() == [3]


def test_rows_of_mixes_are_the_models_own_predictions(mixes):
    _, measured, runs = mixes
    run = next(run for run in measured if run.arm == "vc")
    subject = Subject(Run.open(runs / run.id), Options())
    first, second = ambiguous.pairs(subject.test, 200)
    clear, even = (subject.predictor.predict(ambiguous.mixed(subject.test, first, second, t)) for t in (0.0, ambiguous.EVEN))

    def row(**match):
        return next(row for row in run.rows if row.suite == "ambiguous" and match.items() <= row.condition.items())

    at_half = row(between="digits", mixing=0.5).scores
    assert at_half["entropy"] == pytest.approx(even.entropy.mean(), rel=1e-5)
    assert at_half["first"] == pytest.approx(even.probabilities[np.arange(200), subject.test.labels[first]].mean(), rel=1e-5)
    assert at_half["on_two"] == pytest.approx(at_half["first"] + at_half["second"], rel=1e-5)
    assert row(between="digits", mixing=0.0).scores["first"] == pytest.approx(
        np.exp(clear.log_posterior)[np.arange(200), clear.labels].mean()
    )
    found = row(mixing=0.5, score="log_evidence").scores["auroc"]
    assert found == pytest.approx(auroc(clear.log_evidence, even.log_evidence))


def test_between_two_means_both_classes_are_by_bayes_rule(mixes):
    _, measured, runs = mixes
    run = next(run for run in measured if run.arm == "ce-means")
    head = Run.open(runs / run.id).load_model("cpu").head
    mean, log_label = head.class_prior.mean.detach().double().numpy(), head.label_prior.log_probs().detach().double().numpy()
    first, second = np.triu_indices(10, 1)
    rows = {row.condition["mixing"]: row for row in run.rows if row.condition.get("between") == "means"}
    assert list(rows) == list(ambiguous.MIXINGS)
    for t, row in rows.items():
        z = (1 - t) * mean[first] + t * mean[second]
        log_joint = log_label - ((z[:, None] - mean) ** 2).sum(-1) / 2  # CE's sigma is 1
        p = np.exp(log_joint) / np.exp(log_joint).sum(1, keepdims=True)
        assert row.n == 45
        assert row.scores["first"] == pytest.approx(p[np.arange(45), first].mean(), rel=1e-4)
        assert row.scores["second"] == pytest.approx(p[np.arange(45), second].mean(), rel=1e-4)
        assert row.scores["entropy"] == pytest.approx(-(p * np.log(p)).sum(1).mean(), rel=1e-4)


def test_whether_a_model_is_less_certain_of_mixes_is_decided_by_its_own_clear_digits(mixes):
    recipe, measured, _ = mixes
    digits, means, apart, detected = recipe.findings(measured)
    assert apart.checks[0].values == measured.values("digits/mlp", "vc", "on_two", "ambiguous", between="means", mixing=0.5)
    assert len(digits.checks) == len(means.checks) == 2  # models
    for check, arm in zip(digits.checks, ("vc", "ce-means"), strict=True):
        assert check.values == measured.values("digits/mlp", arm, "entropy", "ambiguous", between="digits", mixing=0.5)
        assert check.others == measured.values("digits/mlp", arm, "entropy", "ambiguous", between="digits", mixing=0.0)
    assert [(check.arm, check.against) for check in detected.checks] == [("VC", "CE")] * 2
    swapped = Measured("ambiguous", tuple(replace(run, rows=tuple(map(_mirrored, run.rows))) for run in measured))
    pairs = zip(digits.checks, recipe.findings(swapped)[0].checks, strict=True)
    assert all(one.difference.mean == pytest.approx(-two.difference.mean) for one, two in pairs)


def _mirrored(row):
    """The row as if clear digits were the mixes."""
    swapped = {0.0: 0.5, 0.5: 0.0}
    t = row.condition.get("mixing")
    return replace(row, condition=row.condition | {"mixing": swapped.get(t, t)})


def test_ambiguous_digits_are_said_to_be_made(mixes):
    recipe, measured, _ = mixes
    between_digits, between_means = recipe.figures(measured)
    assert "not those of Ambiguous-MNIST" in between_digits
    assert "n = 200 pairs" in between_digits
    assert "n = 45 pairs of classes" in between_means


# ------------------------------------------------------------------------------------------------------------ few samples


def measured_of(recipe, runs):
    return Measured(recipe.RECIPE.name, tuple(runs))


def three(run, experiment, arm, accuracy, **more):
    """Three seeds around an accuracy, each a little apart."""
    return [run(experiment, arm, seed, accuracy=accuracy + 0.001 * seed, **more) for seed in range(3)]


def test_few_samples_are_the_papers_number_of_them_and_all_are_trained_on():
    sizes = {(job.spec.data.name, job.spec.data.limit) for job in plan([low_data.RECIPE], Request(full=True))}
    assert sizes == {("mnist", 500), ("cifar10", 1000), ("ag_news", 50), ("fashion_mnist", 500)}  # the last is not the paper's
    specs = [job.spec for form in (False, True) for job in plan([low_data.RECIPE], Request(full=form))]
    assert {spec.data.validation for spec in specs} == {0.0}


def test_few_samples_stand_beside_the_papers_numbers_in_accuracy_alone(run):
    held = measured_of(low_data, three(run, "cifar10/lenet/1000", "vc", 0.4) + three(run, "cifar10/lenet/1000", "authors", 0.4))
    papers = {(cell.arm, cell.score): cell.paper for cell in low_data.RECIPE.cells(held)}
    assert (papers["VC", "accuracy"].value, papers["VC", "accuracy"].spread, papers["VC", "accuracy"].kind) == (
        0.563,
        0.006,
        "se",
    )
    assert [name for name, paper in papers.items() if paper is not None] == [("VC", "accuracy")]
    (drawn,) = low_data.RECIPE.figures(held)
    assert drawn.count('class="whisker c0"') == 2  # ours
    assert drawn.count('class="whisker c1"') == 1  # the paper's


@pytest.mark.parametrize(
    ("vc", "verdicts"), [(0.55, (HOLDS, HOLDS)), (0.535, (HOLDS, HOLDS)), (0.52, (HOLDS, FAILS)), (0.4, (FAILS, FAILS))]
)
def test_few_samples_vc_must_beat_ce_and_lose_less_than_a_point_to_gm(run, vc, verdicts):
    place = "mnist/lenet/500"
    runs = three(run, place, "ce", 0.5) + three(run, place, "gm", 0.54) + three(run, place, "vc", vc)
    over_ce, gm_over_ce, at_least_gm, default = low_data.RECIPE.findings(measured_of(low_data, _wobbling(runs)))
    assert (over_ce.verdict, at_least_gm.verdict) == verdicts
    assert gm_over_ce.verdict == HOLDS
    assert over_ce.hypothesis == "H4"
    assert default.checks == []


def _wobbling(runs):
    """Accuracies whose differences have a spread."""
    found = []
    for i, each in enumerate(runs):
        (row,) = each.rows
        moved = replace(row, scores=row.scores | {"accuracy": row.scores["accuracy"] + 1e-4 * (i % 2)})
        found.append(replace(each, rows=(moved,)))
    return found


# --------------------------------------------------------------------------------------------------------------- MedMNIST


def sized(run, data, size, gain, seeds=3, whole=False):
    """CE at 70%, and VC better by `gain`, a little more in later seeds."""
    experiment = f"{data}/resnet-18" + ("" if whole else f"/{size}")
    runs = []
    for seed in range(seeds):
        for arm, accuracy in (("ce", 0.7), ("vc", 0.7 + gain + 1e-3 * seed * gain)):
            made = run(experiment, arm, seed, accuracy=accuracy)
            runs.append(replace(made, record=made.record | {"samples": {"train": size}}))
    return runs


@pytest.mark.parametrize(("slope", "verdict"), [(-0.02, HOLDS), (0.02, FAILS)])
def test_the_trend_of_gains_is_their_slope_on_log10_of_the_samples(run, slope, verdict):
    runs = [each for n in (100, 1000, 10_000) for each in sized(run, "pathmnist", n, 0.1 + slope * np.log10(n))]
    (trend,) = medmnist.trends(measured_of(medmnist, runs))
    assert trend.slopes == pytest.approx({seed: slope * (1 + 1e-3 * seed) for seed in range(3)})
    (finding,) = medmnist.RECIPE.findings(measured_of(medmnist, runs))
    assert (finding.hypothesis, finding.verdict) == ("H4", verdict)
    assert f"{100 * slope:.2f} points per tenfold" in medmnist.RECIPE.figures(measured_of(medmnist, runs))[0]


def test_a_seed_that_lacks_a_size_has_no_slope(run):
    runs = sized(run, "pathmnist", 100, 0.1) + sized(run, "pathmnist", 1000, 0.05, seeds=2)
    (trend,) = medmnist.trends(measured_of(medmnist, runs))
    assert list(trend.slopes) == [0, 1]


def test_whole_sets_are_a_line_of_their_own_once_there_are_three(run):
    sets = [("breastmnist", 546, 0.03), ("dermamnist", 7007, 0.01), ("pathmnist", 89_996, 0.0)]
    runs = [each for data, n, gain in sets for each in sized(run, data, n, gain, whole=True)]
    assert [trend.where for trend in medmnist.trends(measured_of(medmnist, runs))] == ["whole sets, resnet-18"]
    assert medmnist.trends(measured_of(medmnist, runs[:12])) == []
    cells = medmnist.RECIPE.cells(measured_of(medmnist, runs))
    gains = {cell.where: cell.values[0] for cell in cells if cell.score == "gain"}
    assert gains == pytest.approx(
        {"breastmnist, resnet-18, quick": 0.03, "dermamnist, resnet-18, quick": 0.01, "pathmnist, resnet-18, quick": 0.0}
    )


def test_subsets_are_smaller_than_their_set_and_every_set_is_there_whole():
    full = {each.key for each in medmnist.RECIPE.full}
    assert {key for key in full if key.startswith("breastmnist")} == {
        f"breastmnist/resnet-18{part}" for part in ("", "/100", "/300")
    }
    assert sum(key.count("/") == 1 for key in full if "lenet" not in key) == 11


# ---------------------------------------------------------------------------------------------------------- natural shift


def shifted(run, experiment, arm, accuracy, ece):
    """Three seeds with rows on MultiNLI and SICK, where the clean row says nothing of either."""
    runs = []
    for seed in range(3):
        made = run(experiment, arm, seed, accuracy=0.1, ece=0.5)
        (clean,) = made.rows
        rows = [
            Row(
                "natural",
                "raw",
                {"split": split, "seed": seed},
                n,
                clean.scores | {"accuracy": accuracy, "ece": ece + 1e-3 * seed * ece},
                clean.curves,
            )
            for split, n in (("mnli", 90), ("sick", 40))
        ]
        runs.append(replace(made, rows=(clean, *rows)))
    return runs


def test_natural_shift_is_read_off_the_splits_gathered_elsewhere(run):
    held = measured_of(natural_shift, shifted(run, "nli/text", "ce", 0.7, 0.08) + shifted(run, "nli/text", "vc", 0.7, 0.03))
    found = {(cell.where, cell.arm, cell.score): cell for cell in natural_shift.RECIPE.cells(held)}
    mnli, sick = (found[f"NLI, text, quick, tested on {name}", "VC", "ece"] for name in ("MultiNLI", "SICK"))
    assert (mnli.n, mnli.paper.value, mnli.paper.kind, mnli.values[0]) == (90, 0.034, "se", 0.03)
    assert (sick.n, sick.paper) == (40, None)
    calibrated, accurate, hospital, on_sick = natural_shift.RECIPE.findings(held)
    assert (calibrated.hypothesis, calibrated.verdict, len(calibrated.checks)) == ("H2", HOLDS, 1)
    assert (accurate.verdict, hospital.verdict, on_sick.verdict) == (HOLDS, NO_DATA, HOLDS)
    assert len([each for each in natural_shift.RECIPE.figures(held) if each]) == 2  # no note: it is the whole of SNLI


def test_camelyon17_is_tested_at_another_hospital_on_its_own_test_split(run):
    place = "camelyon17/resnet-50/1000"
    runs = [run(place, arm, seed, accuracy=a + 0.001 * seed * a, ece=e + 0.001 * seed * e)
            for seed in range(3) for arm, a, e in (("ce", 0.8, 0.08), ("vc", 0.7, 0.02))]  # fmt: skip
    calibrated, _, hospital, _ = natural_shift.RECIPE.findings(measured_of(natural_shift, runs))
    assert (calibrated.verdict, hospital.verdict) == (HOLDS, FAILS)
    papers = {(cell.arm, cell.score): cell.paper for cell in natural_shift.RECIPE.cells(measured_of(natural_shift, runs))}
    assert papers["CE", "accuracy"].value == 0.792


def test_training_on_snlis_dev_pairs_is_said_with_both_numbers(run):
    held = measured_of(natural_shift, shifted(run, "nli_dev/text", "ce", 0.4, 0.08))
    note, *drawn = natural_shift.RECIPE.figures(held)
    assert "9,842 dev pairs" in note
    assert "549,367 training pairs" in note
    assert [each.count("Reliability diagram of CE, seed 0") for each in drawn] == [2, 2]  # its title, and as a label


def test_nli_dev_trains_on_snlis_dev_file_and_holds_a_part_of_it_out(tmp_path):
    folder = tmp_path / "snli_1.0"
    folder.mkdir()
    for part, count in (("dev", 30), ("test", 3)):
        rows = [
            {"sentence1": f"{part} {i}", "sentence2": "b", "gold_label": ("entailment", "neutral", "contradiction")[i % 3]}
            for i in range(count)
        ]
        (folder / f"snli_1.0_{part}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    data = prepare(DataSpec("nli_dev"), tmp_path, seed=0)
    assert (len(data.train), len(data.validation)) == (27, 3)
    assert all(first.startswith("dev ") for first, _ in data.train.inputs)
    assert len(load("nli_dev", tmp_path, splits=["test"])["test"]) == 3
