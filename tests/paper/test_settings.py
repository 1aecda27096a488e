"""Settings that were chosen are those that the committed grid says, on validation data alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from varclass.paper.arms import ARMS, GRID, settings_of
from varclass.paper.measured import read_measured
from varclass.paper.measuring import Place
from varclass.paper.recipes.choosing import RECIPE, best
from varclass.paper.running import Request, reproduce
from varclass.paper.settings import CHOSEN, SOURCES

TUNED = ("gm", "vc", "vmf", "authors")
RESULTS = Path(__file__).parents[2] / "results" / "paper" / "settings.json"


def tried(measured, experiment, arm):
    return any(name.startswith(f"{arm}:") for name in measured.of(experiment).arms)


def test_what_is_chosen_is_the_best_of_the_committed_grid():
    measured = read_measured(RESULTS, "settings")
    found = {
        place: {
            arm: best(measured, experiment, arm) for arm in ("gm", "vc", "vmf", "authors") if tried(measured, experiment, arm)
        }
        for place, experiment in SOURCES.items()
        if experiment in measured.experiments
    }
    assert found == CHOSEN


def test_every_source_is_an_experiment_of_the_recipe():
    assert set(SOURCES.values()) == {experiment.key for experiment in RECIPE.full}
    assert all(experiment.suites == ("validation",) for experiment in (*RECIPE.quick, *RECIPE.full))


def test_a_chosen_point_is_what_a_run_gets(monkeypatch):
    monkeypatch.setitem(CHOSEN, "cifar10", {"vc": "vc:0.1:4:thetax0.1"})
    monkeypatch.setitem(CHOSEN, "cifar10/1000", {"vc": "vc:1:4"})
    monkeypatch.setitem(CHOSEN, "cifar10/sprint-128", {"vc": "vc:0.01:4"})
    assert settings_of("vc", "cifar10") == ARMS["vc:0.1:4:thetax0.1"].changes
    assert settings_of("vc", "cifar10")["training.lr_multipliers"] == {"theta": 0.1}
    assert settings_of("vc", "cifar10", "resnet-18", 1000)["head.beta"] == 1.0
    assert settings_of("vc", "cifar10", "sprint-128")["head.beta"] == 0.01
    assert settings_of("vc", "cifar10", "wrn-28-10")["head.beta"] == 0.1
    assert settings_of("gm", "cifar10") == ARMS["gm"].changes
    assert settings_of("vc", "svhn") == {"head.objective": "vc"}


def test_the_grid_has_every_beta_for_both_and_names_nothing_twice():
    assert len({arm.label for arm in GRID.values()}) == len(GRID)
    for objective in ("gm", "vc"):
        betas = {arm.changes["head.beta"] for name, arm in GRID.items() if name.startswith(objective)}
        assert betas == {0.001, 0.01, 0.1, 1.0}
    assert {arm.changes["head.separation"] for name, arm in GRID.items() if name.startswith("ce")} == {3**-0.5, 4.0}


@pytest.mark.parametrize("objective", ["ce", "vc"])
def test_the_best_has_the_lowest_validation_nll(objective, tmp_path):
    chosen = tuple(name for name in GRID if name.startswith(("ce:", "vc:0.1:")))
    small = replace(
        RECIPE.quick[0],
        data="digits",
        encoder="mlp",
        arms=chosen,
        changes={"data.limit": 200, "training.epochs": 1, "encoder.options": {"hidden": [16], "features": 8}},
    )
    recipe = replace(RECIPE, quick=(small,))
    measured = reproduce([recipe], Request(), Place(tmp_path / "results", tmp_path / "runs"))["settings"]
    found = {arm: measured.values(small.key, arm, "nll", "validation")[0] for arm in chosen if arm.startswith(f"{objective}:")}
    assert best(measured, small.key, objective) == min(found, key=lambda arm: found[arm])
    assert {row.suite for run in measured for row in run.rows} == {"validation"}
    assert len(recipe.cells(measured)) == 3 * len(chosen)
