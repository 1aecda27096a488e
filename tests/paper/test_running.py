"""Recipes run: each model once for all who want it, results written as they come, nothing measured twice."""

import json
from dataclasses import replace

import numpy as np
import pytest

from varclass.evaluation.scorebook import Row
from varclass.paper import measuring, running
from varclass.paper.arms import ARMS, COMPARED, settings_of
from varclass.paper.measured import Measured, read_measured
from varclass.paper.measuring import Place
from varclass.paper.recipe import Experiment, Recipe
from varclass.paper.running import Request, plan, reproduce, spec_of
from varclass.paper.schedules import schedule
from varclass.paper.wording import made_with

SMALL = {"data.limit": 200, "training.epochs": 1, "encoder.options": {"hidden": [16], "features": 8}}


def mean_latent(subject):
    """A suite of a recipe's own."""
    z = subject.predictor.latents(subject.test)
    yield Row("mean", "raw", {"seed": subject.seed}, len(z), {"accuracy": float(np.abs(z).mean())}, {"first": z[0]})


def recipe(name, *experiments, suites=None):
    return Recipe(
        name, "tab:x", "A table", "A claim", experiments, experiments, lambda m: [], lambda m: [], suites=suites or {}
    )


CLEAN = recipe("clean-one", Experiment("digits", "mlp", ("ce", "vc"), 2, ("clean",), changes=SMALL))
LATENT = recipe(
    "latent-one", Experiment("digits", "mlp", ("vc",), 1, ("mean", "latents"), changes=SMALL), suites={"mean": mean_latent}
)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "results", tmp_path / "runs")


def test_models_that_several_recipes_want_are_planned_once_one_seed_of_everything_before_the_next():
    jobs = plan([CLEAN, LATENT], Request())
    assert [(job.arm, job.spec.seed, len(job.wanted)) for job in jobs] == [
        ("ce", 0, 1),
        ("vc", 0, 2),
        ("ce", 1, 1),
        ("vc", 1, 1),
    ]


def test_a_request_chooses_seeds_epochs_arms_data_and_encoders():
    (job,) = plan([CLEAN], Request(seeds=1, epochs=7, arms=("vc", "vmf")))
    assert (job.arm, job.spec.seed, job.spec.training.epochs) == ("vc", 0, 7)
    assert job.experiment.key == "digits/mlp, 7 epochs/200"  # not to be taken for the schedule's
    assert not plan([CLEAN], Request(only=("mnist",)))
    assert not plan([CLEAN], Request(encoders=("lenet",)))
    assert len(plan([CLEAN], Request(only=("digits",), encoders=("mlp",), seeds=3))) == 6


def test_what_is_measured_is_written_and_not_measured_again(place, monkeypatch):
    began = []
    first = reproduce([CLEAN, LATENT], Request(), place, began=lambda position, total, job: began.append(job.spec.id))
    assert len(began) == 4
    assert first["clean-one"].arms == ["ce", "vc"]
    assert set(first["clean-one"].values("digits/mlp/200", "ce", "accuracy")) == {0, 1}
    assert set(first["latent-one"].values("digits/mlp/200", "vc", "accuracy", "mean")) == {0}
    ((_, row),) = first["latent-one"].rows("digits/mlp/200", "vc", "mean")
    assert len(row.curves["first"]) == 8
    (run,) = first["latent-one"].runs
    assert run.view["points"]
    assert not run.view["samples"]
    assert run.evaluated.samples == 180  # of 200, a tenth is for validation
    assert str(place.runs.parent) not in (place.results / "latent-one.json").read_text()  # results name no place of a machine
    assert run.provenance["versions"]["torch"]
    assert "command" not in run.provenance

    def refuse(*arguments, **options):
        raise AssertionError("nothing is left to train")

    monkeypatch.setattr(measuring, "fit", refuse)
    again = reproduce([CLEAN, LATENT], Request(), place)
    assert again["clean-one"].values("digits/mlp/200", "vc", "nll") == pytest.approx(
        first["clean-one"].values("digits/mlp/200", "vc", "nll"), rel=1e-5
    )


def test_more_seeds_and_other_options_are_measured_beside(place):
    reproduce([CLEAN], Request(seeds=1, arms=("ce",)), place)
    began = []
    found = reproduce([CLEAN], Request(seeds=2, arms=("ce",)), place, began=lambda *each: began.append(each[2].spec.seed))
    assert began == [1]
    assert [run.seed for run in found["clean-one"]] == [0, 1]
    other = replace(CLEAN, quick=(replace(CLEAN.quick[0], options={"alpha": 0.2}),))
    began.clear()
    found = reproduce([other], Request(seeds=1, arms=("ce",)), place, began=lambda *each: began.append(each[2].spec.seed))
    assert began == [0]
    assert len(found["clean-one"].runs) == 2
    alphas = {
        row.condition["alpha"] for run in found["clean-one"] if run.seed == 0 for row in run.rows if row.method == "conformal"
    }
    assert alphas == {0.2}  # in the place of the earlier rows


def test_a_run_of_the_quick_form_does_not_stand_for_one_of_the_full(place):
    reproduce([CLEAN], Request(seeds=1, arms=("ce",)), place)
    found = reproduce([CLEAN], Request(full=True, seeds=1, arms=("ce",)), place)["clean-one"]
    assert [(run.seed, run.full) for run in found] == [(0, False), (0, True)]


def test_models_can_go_once_they_are_measured(place):
    reproduce([CLEAN], Request(seeds=1, arms=("ce",)), replace(place, keep_runs=False))
    assert not list(place.runs.iterdir())
    began = []
    reproduce([CLEAN], Request(seeds=1, arms=("ce",)), place, began=lambda *each: began.append(each))
    assert not began


def test_a_run_that_diverges_is_said_and_written_down_and_does_not_stop_the_others(place, monkeypatch):
    wild = {"training.optimizer": "sgd", "training.lr": 1e12}
    monkeypatch.setitem(ARMS, "ce", replace(ARMS["ce"], changes=dict(ARMS["ce"].changes) | wild))
    said = []
    one = replace(CLEAN, quick=(replace(CLEAN.quick[0], seeds=1),))
    held = reproduce([one], Request(), replace(place, keep_runs=False), warn=said.append)["clean-one"]
    assert [(run.arm, run.diverged, bool(run.rows)) for run in held] == [("ce", True, False), ("vc", False, True)]
    assert "ce, seed 0 has no numbers" in said[0]
    assert "became" in said[0]
    assert "diverged, so that there are no numbers: digits, mlp, 200 samples, quick with CE (seed 0)" in made_with(held)
    assert not any(place.runs.iterdir())
    monkeypatch.setattr(measuring, "fit", None)  # it is not tried again
    assert len(reproduce([one], Request(), place)["clean-one"].runs) == 2


def test_results_of_two_machines_merge(tmp_path):
    places = [Place(tmp_path / name / "results", tmp_path / name / "runs") for name in ("here", "there")]
    one = reproduce([CLEAN], Request(arms=("ce",), seeds=1), places[0])["clean-one"]
    two = reproduce([CLEAN], Request(arms=("vc",), seeds=1), places[1])["clean-one"]
    both = one.merged(two)
    assert both.arms == ["ce", "vc"]
    assert both.merged(one).merged(two) == both
    both.save(tmp_path / "both.json")
    assert read_measured(tmp_path / "both.json", "clean-one").arms == ["ce", "vc"]


def test_what_lacks_data_is_left_out_and_refused_if_nothing_is_left(place, tmp_path):
    absent = Experiment("mnist", "lenet", ("ce",), 1, changes=SMALL)
    notes = []
    mixed = recipe("mixed", absent, replace(CLEAN.quick[0], arms=("ce",), seeds=1))
    found = reproduce([mixed], Request(), replace(place, data_root=str(tmp_path)), warn=notes.append)
    assert found["mixed"].experiments == ["digits/mlp/200"]
    (note,) = notes
    assert note.startswith("left out: mnist: no train, test data: expected ")
    with pytest.raises(ValueError, match=r"mnist: no train, test data: expected .* get them with 'varclass data get mnist'"):
        reproduce([recipe("nothing", absent)], Request(), replace(place, data_root=str(tmp_path)))


def test_outliers_that_are_not_there_are_left_out(place, tmp_path):
    experiment = Experiment("digits", "mlp", ("ce",), 1, ("ood",), {"outliers": ("svhn", "noise")})
    notes = []
    options = running.options_of(experiment, "ce", replace(place, data_root=str(tmp_path)), notes.append)
    assert options.outliers == ("noise",)
    assert notes[0].startswith("left out: svhn")
    alone = replace(experiment, options={"outliers": ("svhn",)})
    with pytest.raises(ValueError, match="svhn: no test data"):
        running.options_of(alone, "ce", replace(place, data_root=str(tmp_path)), notes.append)


def test_what_is_left_out_is_said_once_and_what_cannot_be_measured_is_not_trained(place, tmp_path):
    experiment = Experiment("digits", "mlp", ("ce", "vc"), 1, ("ood",), {"outliers": ("svhn", "noise")}, SMALL)
    notes = []
    reproduce([recipe("outliers", experiment)], Request(), replace(place, data_root=str(tmp_path)), warn=notes.append)
    assert len(notes) == 1
    alone = recipe("alone", replace(experiment, options={"outliers": ("svhn",)}))
    with pytest.raises(ValueError, match="svhn: no test data"):
        reproduce([alone], Request(), Place(tmp_path / "r", tmp_path / "trained", str(tmp_path)))
    assert not (tmp_path / "trained").exists()


@pytest.mark.parametrize("arm", COMPARED)
def test_every_arm_makes_a_spec_that_training_takes(arm):
    spec = spec_of(Experiment("cifar10", "wrn-28-10"), arm, 3)
    scheduled = schedule("cifar10", "wrn-28-10", few=False)["training.epochs"]
    assert (spec.seed, spec.data.name, spec.training.epochs, spec.training.precision) == (3, "cifar10", scheduled, "bf16")
    plain = spec_of(Experiment("cifar10", "wrn-28-10"), "ce", 3)
    own = {"lr_multipliers": {}, "label_smoothing": 0.0}  # what an arm may have for itself
    assert replace(spec.training, **own) == replace(plain.training, **own)  # one schedule for all
    assert ARMS[arm].label


def test_ce_is_the_softmax_layer():
    head = spec_of(Experiment("cifar10", "wrn-28-10"), "ce", 0).head
    assert (head.objective, head.covariance, head.means) == ("ce", "unit", "axes")
    latents = spec_of(Experiment("mnist", "lenet"), "ce-means", 0).head
    assert (latents.covariance, latents.means, latents.separation) == ("unit", "learned", 3**-0.5)
    with pytest.raises(ValueError, match="arm must be one of"):
        settings_of("softmax", "mnist")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "expected the results of a recipe"),
        ('{"format": 1, "recipe": "other", "runs": []}', "expected format 1 and recipe 'clean-one'; got 1 and 'other'"),
        ('{"format": 9, "recipe": "clean-one", "runs": []}', "got 9"),
        ('{"format": 1, "recipe": "clean-one", "runs": [{"id": 1}]}', "expected the results of a recipe"),
        ("[]", "expected the results of a recipe"),
    ],
)
def test_a_file_that_holds_no_results_is_refused_by_its_name(text, message, tmp_path):
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        read_measured(path, "clean-one")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_run_with_other_settings_takes_the_place_of_the_earlier_one(place):
    found = reproduce([CLEAN], Request(seeds=1, arms=("ce",)), place)["clean-one"]
    (run,) = found.runs
    later = replace(run, id="digits-mlp-ce-s0-other", rows=run.rows[:1])
    assert found.merged([later]).runs == (later,)
    assert len(found.merged([replace(later, seed=1)]).runs) == 2
    assert found.merged([run]).runs == (run,)


def test_results_come_back_as_they_were_written(place, tmp_path):
    found = reproduce([LATENT], Request(), place)["latent-one"]
    path = tmp_path / "again.json"
    read_measured(place.results / "latent-one.json", "latent-one").save(path)
    assert path.read_text() == (place.results / "latent-one.json").read_text()
    assert json.loads(path.read_text())["runs"][0]["id"] == found.runs[0].id
    assert read_measured(tmp_path / "none.json", "latent-one") == Measured("latent-one")
