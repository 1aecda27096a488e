"""What every recipe holds: experiments that can be run, and nothing to say without results."""

import pytest

from varclass.paper.catalogue import RECIPES, pick_recipes
from varclass.paper.findings import NO_DATA
from varclass.paper.measured import Measured
from varclass.paper.running import Request, plan

CIFAR = {
    key: {3, 5} for key in ("calibration", "corruptions", "ood", "adversarial")
}  # 3 with ResNet-18, which the paper has not
SEEDS = CIFAR | {"medmnist": {3, 5}, "settings": {1, 3}}  # as the paper has it, or as many as a choice needs


@pytest.fixture(params=RECIPES.values(), ids=RECIPES)
def recipe(request):
    return request.param


def test_every_experiment_of_both_forms_is_a_run_that_can_be_made(recipe):
    for full in (False, True):
        jobs, experiments = plan([recipe], Request(full=full)), recipe.experiments(full)
        assert len(jobs) == sum(len(each.arms) * each.seeds for each in experiments)
        assert len({each.key for each in experiments}) == len(experiments)
    assert {job.experiment.seeds for job in jobs} == SEEDS.get(recipe.name, {5})


def test_without_results_there_is_nothing_to_show_and_nothing_holds(recipe):
    nothing = Measured(recipe.name)
    assert recipe.cells(nothing) == []
    assert [each for each in recipe.figures(nothing) if each] == []
    assert {finding.verdict for finding in recipe.findings(nothing)} <= {NO_DATA}


def test_all_is_every_recipe_but_the_choice_of_settings():
    paper = [recipe.name for recipe in pick_recipes(["all"])]
    assert [*paper, "settings"] == [recipe.name for recipe in pick_recipes(["all", "settings", "ood"])]
    assert len(paper) == len(RECIPES) - 1
