"""varclass reproduce: the list, a recipe to its page, going on, merging, and every mistake in one line."""

import json

import pytest

from varclass.paper import catalogue
from varclass.paper.findings import LOWER, Finding
from varclass.paper.measured import read_measured
from varclass.paper.reading import checks_of
from varclass.paper.recipe import Experiment, Recipe

SMALL = {"data.limit": 200, "training.epochs": 1, "encoder.options": {"hidden": [16], "features": 8}}
CLAIM = "VC's ECE is below CE's"


@pytest.fixture
def reproduce(call, monkeypatch, tmp_path):
    """The command, with one more recipe that needs no data but digits."""
    toy = Recipe(
        name="toy",
        label="tab:toy",
        title="A toy",
        claim=CLAIM,
        quick=(Experiment("digits", "mlp", ("ce", "vc"), 2, changes=SMALL),),
        full=(Experiment("digits", "mlp", ("ce", "vc"), 3, changes=SMALL),),
        cells=lambda measured: [],
        findings=lambda measured: [Finding(CLAIM, checks_of(measured, "digits/mlp/200", "ece", LOWER), "H1")],
    )
    monkeypatch.setitem(catalogue.RECIPES, "toy", toy)

    def command(*arguments, into="results"):
        places = ("--results-dir", tmp_path / into, "--runs-dir", tmp_path / "runs", "--device", "cpu")
        return call("reproduce", *arguments, *places)

    return command


def test_the_list_names_every_table_and_figure(call):
    result = call("reproduce", "--list")
    assert result.code == 0
    names = [line.split()[0] for line in result.stdout.splitlines()[1:]]
    assert names == list(catalogue.RECIPES)
    for label in ("tab:ece", "fig:OOD_cal", "tab:natural", "tab:ood", "fig:adv_robust", "tab:few_shot"):
        assert label in result.stdout


def test_a_recipe_ends_with_its_claims_and_a_page_and_is_not_done_twice(reproduce, tmp_path):
    result = reproduce("toy")
    assert result.code == 0, result.stderr
    assert [line for line in result.stderr.splitlines() if line.startswith("[")] == [
        "[1/4] digits/mlp/200, ce, seed 0",
        "[2/4] digits/mlp/200, vc, seed 0",
        "[3/4] digits/mlp/200, ce, seed 1",
        "[4/4] digits/mlp/200, vc, seed 1",
    ]
    lines = result.stdout.splitlines()
    assert CLAIM in lines[0]
    assert "n = 2 seeds" in lines[1]
    assert lines[-1] == str(tmp_path / "results" / "toy.html")
    assert CLAIM in (tmp_path / "results" / "toy.html").read_text().replace("&#x27;", "'")
    again = reproduce("toy")
    assert "[1/" not in again.stderr
    assert again.stdout == result.stdout


def test_several_processes_say_what_each_has_done(reproduce, tmp_path):
    result = reproduce("toy", "--seeds", 1, "--processes", 2)
    assert result.code == 0, result.stderr
    told = [line for line in result.stderr.splitlines() if line.startswith("[")]
    assert {line.split(", ")[1] for line in told} == {"ce", "vc"}
    assert [line[:5] for line in told] == ["[1/2]", "[2/2]"]
    assert reproduce("toy", "--processes", 0).code != 0


def test_flags_choose_and_results_of_several_invocations_merge(reproduce, tmp_path):
    assert reproduce("toy", "--seeds", 1, "--objectives", "ce", "--drop-models").code == 0
    assert not list((tmp_path / "runs").iterdir())
    assert reproduce("toy", "--seeds", 1, "--objectives", "vc", into="other").code == 0
    assert reproduce("toy", "--full", "--seeds", 1, "--objectives", "vc", "--epochs", 2, into="other").code == 0
    result = reproduce("toy", "--merge", tmp_path / "other" / "toy.json", "--json")
    assert result.code == 0, result.stderr
    (found,) = json.loads(result.stdout)
    assert found["recipe"] == "toy"
    assert "one seed" in [finding["verdict"] for finding in found["findings"]]
    held = read_measured(tmp_path / "results" / "toy.json", "toy")
    told = [(run.experiment, run.arm, run.full, run.spec["training"]["epochs"]) for run in held]
    assert told == [
        ("digits/mlp/200", "ce", False, 1),
        ("digits/mlp/200", "vc", False, 1),
        ("digits/mlp, 2 epochs/200", "vc", True, 2),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "recipe must be one of"),
        (["toy", "--objectives", "softmax"], "objective must be one of"),
        (["toy", "--merge", "absent.json"], "--merge expects a results file; there is no absent.json"),
        (["toy", "adversarial", "--merge", "absent.json"], "--merge takes in the results of one recipe"),
        (["ambiguous", "--data-root", "/nowhere"], "mnist: no train, test data"),
        (["toy", "--only", "mnist"], "nothing to do"),
    ],
)
def test_mistakes_are_one_line(arguments, message, reproduce, tmp_path):
    result = reproduce(*arguments)
    assert result.code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert message in line
    assert not (tmp_path / "results").exists()


def test_a_file_in_the_place_of_the_results_is_refused_before_anything_is_trained(reproduce, tmp_path):
    (tmp_path / "results").write_text("mine")
    result = reproduce("toy")
    assert result.error == f"--results-dir must be a folder; got the file {tmp_path / 'results'}"
    assert not (tmp_path / "runs").exists()
    assert (tmp_path / "results").read_text() == "mine"
