"""Suites on a trained run: what they write, that numbers follow from the kept predictions alone, and that they repeat."""

import json
import math
import re

import numpy as np
import pytest
import torch
from PIL import Image

from varclass.data import ImageFiles, Split, load
from varclass.evaluation import subject as subject_module
from varclass.evaluation.evaluate import SUITES, check_asked, evaluate
from varclass.evaluation.outliers import scores_of
from varclass.evaluation.predicting import Predictor, dropout_on
from varclass.evaluation.scorebook import Row, plain, read_rows
from varclass.evaluation.subject import Options, Subject, as_task, fitted, noise, some_of
from varclass.metrics.predictions import Predictions
from varclass.metrics.scaling import TemperatureScaling
from varclass.metrics.summary import score
from varclass.training.loop import fit
from varclass.training.spec import EncoderSpec, HeadSpec, RunSpec, TrainingSpec
from varclass.training.task import Task

SMALL = Options(samples=60, corruptions=("gaussian_noise", "contrast"), severities=(1, 5), epsilons=(0.05, 0.2), pgd_steps=5)


def picked(rows: list[Row], **wanted) -> Row:
    """The one row whose suite, method and condition are these."""
    found = [row for row in rows if wanted.items() <= ({"suite": row.suite, "method": row.method} | row.condition).items()]
    assert len(found) == 1, [row.condition for row in found]
    return found[0]


@pytest.fixture(scope="session")
def measured(evaluated) -> list[Row]:
    return evaluate(evaluated, ["clean", "shift", "adversarial", "latents"], SMALL)


def test_clean_scores_follow_from_the_kept_predictions_without_the_model(evaluated, measured):
    kept = Predictions.load(evaluated.path / "predictions" / "test.npz")
    digits = load("digits")["test"]
    assert np.array_equal(kept.labels, digits.labels)
    raw = picked(measured, suite="clean", method="raw")
    assert raw.n == 600
    assert raw.scores == {name: value for name, value in score(kept).items() if name != "n"}
    model = evaluated.load_model()
    x = torch.from_numpy(digits.inputs).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        assert np.allclose(model(x).numpy(), kept.log_joint, rtol=1e-5, atol=1e-4)


def test_repairs_are_fitted_on_validation_predictions_and_keep_the_classes(evaluated, measured):
    held_out = Predictions.load(evaluated.path / "predictions" / "validation.npz")
    assert len(held_out) == evaluated.record["samples"]["validation"]
    kept = Predictions.load(evaluated.path / "predictions" / "test.npz")
    expected = score(TemperatureScaling.fit(held_out).apply(kept))
    assert picked(measured, suite="clean", method="temperature").scores["nll"] == pytest.approx(expected["nll"], rel=1e-9)
    raw = picked(measured, suite="clean", method="raw")
    assert picked(measured, suite="clean", method="temperature").scores["accuracy"] == raw.scores["accuracy"]


def test_conformal_sets_cover_about_what_they_promise(measured):
    for sets in ("threshold", "aps"):
        row = picked(measured, method="conformal", sets=sets, by_class=False)
        calibrated = row.condition["calibrated_on"]
        spread = math.sqrt(0.9 * 0.1 * (1 / calibrated + 1 / row.n))
        assert abs(row.scores["coverage"] - 0.9) < 5 * spread + 1 / (calibrated + 1)


def test_knowing_the_shifted_class_frequencies_does_not_raise_the_nll(measured):
    row = picked(measured, method="label-prior")
    assert 0 < row.n < 600
    assert row.scores["nll_true"] < row.scores["nll_trained"]
    assert len(row.curves["estimated_prior"]) == 10


def test_shift_has_every_type_and_severity_raw_and_scaled(measured):
    rows = [row for row in measured if row.suite == "shift"]
    assert len(rows) == 2 * 2 * 2
    assert {row.n for row in rows} == {60}
    mild, harsh = (picked(measured, suite="shift", method="raw", type="contrast", severity=s).scores["nll"] for s in (1, 5))
    assert harsh > mild


def test_attacks_of_larger_magnitude_leave_less_accuracy(measured):
    for attack in ("fgsm", "pgd"):
        weak, strong = (picked(measured, attack=attack, epsilon=e).scores["accuracy"] for e in SMALL.epsilons)
        assert strong < weak < picked(measured, suite="clean", method="raw").scores["accuracy"]
    both = [picked(measured, attack=attack, epsilon=0.2).scores["nll"] for attack in ("fgsm", "pgd")]
    assert both[1] >= both[0]


def test_latents_have_a_row_per_class_and_one_for_all(evaluated, measured):
    rows = [row for row in measured if row.suite == "latents"]
    assert [row.condition["class"] for row in rows] == [*map(str, range(10)), "all"]
    assert sum(row.n for row in rows[:-1]) == rows[-1].n == 600
    assert rows[-1].scores["variance"] == pytest.approx(np.mean([row.scores["variance"] for row in rows[:-1]]), rel=1e-9)


def test_the_book_holds_what_was_returned_and_a_suite_replaces_its_own_rows_only(run):
    first = evaluate(run, ["clean", "latents"])
    assert [plain(vars(row)) for row in read_rows(run)] == [plain(vars(row)) for row in first]
    again = evaluate(run, ["latents"])
    held = read_rows(run)
    assert [row.suite for row in held] == [row.suite for row in first]
    assert plain([row.scores for row in held if row.suite == "latents"]) == plain([row.scores for row in again])
    book = json.loads((run.path / "scores.json").read_text())
    assert (book["objective"], book["seed"], book["data"]) == ("vc", 0, "digits")
    assert {"versions", "commit", "device"} <= set(book["provenance"])


def test_evaluating_twice_gives_the_same_numbers(run, measured):
    again = evaluate(run, ["shift", "adversarial"], SMALL)
    before = [row for row in measured if row.suite in ("shift", "adversarial")]
    assert plain([row.scores for row in again]) == plain([row.scores for row in before])


def test_outliers_are_told_apart_by_every_score(run, tmp_path):
    rng = np.random.default_rng(0)
    noise = rng.integers(256, size=(80, 9, 9, 3), dtype=np.uint8)  # another size and another number of channels
    np.savez(tmp_path / "noise.npz", x_train=noise, y_train=np.arange(80) % 2, x_test=noise, y_test=np.arange(80) % 2)
    rows = evaluate(run, ["ood"], Options(outliers=(str(tmp_path / "noise.npz"),)))
    assert [row.condition["score"] for row in rows] == ["max_probability", "entropy", "log_evidence", "mahalanobis"]
    for row in rows:
        assert row.n == 680
        assert row.scores["auroc"] > 0.6
        assert {"histograms", "roc"} == set(row.curves)


def test_the_energy_is_that_of_a_softmax_layers_outputs(tmp_path):
    spec = RunSpec(
        encoder=EncoderSpec("mlp", options={"hidden": [16]}), head=HeadSpec(), training=TrainingSpec(epochs=2, lr=0.01)
    )
    run = fit(spec, tmp_path)
    subject = Subject(run, Options())
    x = torch.from_numpy(subject.test.inputs).permute(0, 3, 1, 2).float() / 255
    model = run.load_model().eval()
    assert model.head.class_prior.settled != 1.0
    with torch.no_grad():
        energy = model.energy(x)
    found = scores_of(subject, subject.test)
    np.testing.assert_allclose(found["energy"], -energy.numpy(), rtol=1e-5)
    rows = evaluate(run, ["ood"], Options(outliers=("noise",)))
    assert [row.condition["score"] for row in rows] == ["max_probability", "entropy", "log_evidence", "mahalanobis", "energy"]


def test_outliers_may_have_more_classes_than_the_task_and_some_are_enough(run, tmp_path):
    images = np.random.default_rng(0).integers(256, size=(80, 8, 8, 1), dtype=np.uint8)
    labels = np.arange(80) % 40
    np.savez(tmp_path / "forty.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    everything, some = (
        evaluate(run, ["ood"], Options(outliers=(str(tmp_path / "forty.npz"),), samples=count)) for count in (None, 50)
    )
    assert {(row.n, row.scores["n_out"]) for row in everything} == {(680, 80)}
    assert {(row.n, row.scores["n_out"]) for row in some} == {(100, 50)}
    held = Subject(run, Options()).outliers(str(tmp_path / "forty.npz"))
    assert set(held.labels.tolist()) == {-1}


def test_images_left_in_their_files_are_scaled_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(subject_module, "BLOCK", 2)
    pixels = np.random.default_rng(0).integers(256, size=(5, 20, 10, 3), dtype=np.uint8)
    paths = [tmp_path / f"{number}.png" for number in range(len(pixels))]
    for path, image in zip(paths, pixels, strict=True):
        Image.fromarray(image).save(path)
    labels, task = np.zeros(5, int), Task("image", (3, 8, 8), ("a", "b"))
    found = [as_task(Split("image", inputs, labels, ("a", "b")), task) for inputs in (ImageFiles(paths, (20, 10), 3), pixels)]
    assert found[0].inputs.shape == (5, 8, 8, 3)
    assert np.array_equal(found[0].inputs, found[1].inputs)
    assert np.array_equal(found[0].inputs, fitted(pixels, task.shape))


def test_noise_is_an_outlier_that_needs_no_data_and_repeats(run):
    rows = evaluate(run, ["ood"], Options(outliers=("noise",)))
    assert {row.scores["n_out"] for row in rows} == {600}
    assert plain([row.scores for row in evaluate(run, ["ood"], Options(outliers=("noise",)))]) == plain(
        [r.scores for r in rows]
    )
    assert picked(rows, score="max_probability").scores["auroc"] > 0.5
    with pytest.raises(ValueError, match="name a data set"):
        noise(Task("text", (4,), ("a", "b")), 3, 0)


def test_monte_carlo_dropout_averages_masks_and_leaves_the_model_in_eval_mode(run):
    rows = evaluate(run, ["clean"], Options(passes=8))
    assert picked(rows, method="mc-dropout").scores["nll"] != picked(rows, method="raw").scores["nll"]
    assert (
        picked(evaluate(run, ["clean"], Options(passes=8)), method="mc-dropout").scores
        == picked(rows, method="mc-dropout").scores
    )
    subject = Subject(run, Options(passes=8))
    _ = subject.dropout_predictor.predict(subject.test.take(np.arange(4)))
    assert not any(module.training for module in subject.model.modules())


def test_monte_carlo_dropout_is_refused_without_dropout():
    with pytest.raises(ValueError, match="--dropout"), dropout_on(torch.nn.Linear(2, 2)):
        pass


def test_changed_data_is_refused(run):
    run.update(fingerprint="other")
    with pytest.raises(ValueError, match="no longer the data"):
        evaluate(run, ["clean"])


def test_unknown_suites_and_missing_outliers_are_one_line_errors(run):
    with pytest.raises(ValueError, match="suite must be one of 'clean', 'natural', 'shift'"):
        evaluate(run, ["cleam"])
    with pytest.raises(ValueError, match="--ood"):
        evaluate(run, ["ood"])
    with pytest.raises(ValueError, match="--splits"):
        evaluate(run, ["natural"])
    with pytest.raises(ValueError, match="digits: expected splits among train, test; got 'elsewhere'"):
        evaluate(run, ["natural"], Options(splits=("elsewhere",)))
    assert list(SUITES) == ["clean", "natural", "shift", "ood", "adversarial", "latents"]


def test_another_split_is_scored_as_the_test_split_is(run):
    rows = evaluate(run, ["clean", "natural"], Options(splits=("test", "train")))
    for method in ("raw", "temperature"):
        here, there = (
            picked(rows, suite="clean", method=method, split="test"),
            picked(rows, suite="natural", method=method, split="test"),
        )
        assert (here.n, here.scores) == (there.n, there.scores)
    assert picked(rows, suite="natural", method="raw", split="train").n == 1197
    assert len(Predictions.load(run.path / "predictions" / "split-train.npz")) == 1197


def test_a_suite_of_the_callers_own_stands_beside_the_others(run):
    def count(subject):
        yield Row("count", "raw", {"seed": subject.seed}, len(subject.test), {"accuracy": 1.0})

    evaluate(run, ["count"], suites_beside={"count": count})
    (row,) = evaluate(run, ["count"], suites_beside={"count": lambda subject: pytest.fail("it was measured")}, again=False)
    assert row.n == 600


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 0}, "samples must be a whole number of at least 1; got 0"),
        ({"epsilons": (0.1, -1.0)}, "epsilons must be a finite number > 0; got -1.0"),
        ({"pgd_steps": 0}, "pgd_steps must be a whole number of at least 1; got 0"),
        ({"passes": -1}, "passes must be a whole number of at least 0; got -1"),
        ({"alpha": 1.0}, "alpha must lie between 0 and 1; got 1.0"),
    ],
)
def test_options_that_would_measure_nothing_are_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Options(**options)


@pytest.mark.parametrize(
    ("suites", "options", "kind", "message"),
    [
        (["clean", "foo"], {}, "image", "suite must be one of 'clean', "),
        (["clean", "ood"], {}, "image", "the ood suite needs data sets .* got none: --ood"),
        (["clean", "ood"], {"outliers": ("noise", "svnh")}, "image", "svnh.*svhn"),
        (["clean", "ood"], {"outliers": ("svhn",), "data_root": "nowhere"}, "image", "svhn: no test data"),
        (["clean", "natural"], {}, "text", "the natural suite needs further splits"),
        (["clean", "shift"], {}, "vector", "suite 'shift' is for images; got inputs of kind 'vector'"),
        (["clean", "adversarial"], {}, "text", "suite 'adversarial' is for images; got inputs of kind 'text'"),
    ],
)
def test_what_cannot_be_measured_is_said_before_anything_is(suites, options, kind, message):
    with pytest.raises(ValueError, match=message):
        check_asked(suites, Options(**options), kind)


def test_images_are_brought_to_a_tasks_shape():
    split = load("digits")["test"].take(np.arange(5))
    same = as_task(split, Task("image", (1, 8, 8), split.classes))
    assert same is split
    colored = as_task(split, Task("image", (3, 16, 16), split.classes))
    assert colored.inputs.shape == (5, 16, 16, 3)
    assert np.array_equal(colored.inputs[..., 0], colored.inputs[..., 2])
    gray = as_task(colored, Task("image", (1, 16, 16), split.classes))
    assert np.array_equal(gray.inputs[..., 0], colored.inputs[..., 0])
    with pytest.raises(ValueError, match="vectors of shape"):
        as_task(type(split)("vector", np.zeros((2, 3), np.float32), np.zeros(2, int), ("a", "b")), Task("vector", (4,), ("a",)))


def test_predictions_do_not_depend_on_how_a_split_is_cut_into_batches(run, monkeypatch):
    subject = Subject(run, Options())
    whole = subject.predictor.predict(subject.test).log_joint
    monkeypatch.setattr("varclass.evaluation.predicting.BATCH", 37)
    assert isinstance(subject.predictor, Predictor)
    assert np.allclose(subject.predictor.predict(subject.test).log_joint, whole, rtol=1e-5, atol=1e-4)


def test_the_view_shows_latents_and_priors_in_one_plane(evaluated, measured):
    view = json.loads((evaluated.path / "view.json").read_text())
    points, model = np.array(view["points"]), evaluated.load_model()
    assert points.shape == (600, 2)
    assert view["projection"] == "pca"
    assert view["label"] == load("digits")["test"].labels[view["index"]].tolist()
    z = Subject(evaluated, Options()).predictor.latents(load("digits")["test"])[view["index"]]
    apart, plane = (np.linalg.norm(a[:1] - a[1:], axis=1) for a in (z, points))
    assert (plane <= apart * (1 + 1e-6)).all()  # a projection brings nothing further apart
    for prior, sigma in zip(view["priors"], model.head.class_prior.log_sigma().detach().exp().numpy(), strict=True):
        spread = np.linalg.eigvalsh(prior["covariance"])
        assert sigma.min() ** 2 * (1 - 1e-6) <= spread[0] <= spread[1] <= sigma.max() ** 2 * (1 + 1e-6)
    confidences = [mistake["confidence"] for mistake in view["mistakes"]]
    assert confidences == sorted(confidences, reverse=True)
    assert all(mistake["label"] != mistake["predicted"] for mistake in view["mistakes"])
    assert {str(i) for i in view["index"]} <= set(view["samples"])
    assert view["samples"]["0"].startswith("data:image/png;base64,")


def test_what_was_measured_is_not_measured_again_unless_asked(run, monkeypatch):
    first = evaluate(run, ["clean"], again=False)
    calls = []
    monkeypatch.setitem(SUITES, "clean", lambda subject: calls.append(subject) or iter(first))
    assert plain([vars(row) for row in evaluate(run, ["clean"], again=False)]) == plain([vars(row) for row in first])
    assert not calls
    evaluate(run, ["clean"], Options(alpha=0.2), again=False)  # another option is another measurement
    evaluate(run, ["clean"])
    run.update(sha256="other weights")
    evaluate(run, ["clean"], again=False)
    assert len(calls) == 3


def test_published_corruptions_are_read_in_either_layout(run, tmp_path, monkeypatch):
    digits, calls = load("digits")["test"], []

    def reader(layout):
        return lambda folder, name, severity, *rest: calls.append((layout, name, severity)) or digits

    monkeypatch.setattr("varclass.data.corruptions.read_cifar_c", reader("arrays"))
    monkeypatch.setattr("varclass.data.corruptions.read_tiny_imagenet_c", reader("folders"))
    options = Options(corrupted=str(tmp_path), corruptions=("fog",), severities=(2,), samples=30)
    rows = evaluate(run, ["shift"], options)
    (tmp_path / "fog").mkdir()
    evaluate(run, ["shift"], options)
    assert calls == [("arrays", "fog", 2), ("folders", "fog", 2)]
    assert {(row.n, row.condition["published"]) for row in rows} == {(30, True)}


def test_some_samples_are_stratified_whatever_the_order_of_the_split():
    digits = load("digits")["test"]
    ordered = digits.take(np.argsort(digits.labels, kind="stable"))
    assert set(np.bincount(some_of(ordered, 60).labels)) <= {5, 6, 7}
    assert some_of(ordered, None) is some_of(ordered, 600) is ordered
