"""The default beside CE: its table, and targets that are reached, or missed with their margin."""

from dataclasses import replace
from pathlib import Path

import pytest

from varclass.evaluation.scorebook import Row
from varclass.paper.default import COLUMNS, VIEWS, comparison, targets
from varclass.paper.measured import Measured, read_measured
from varclass.paper.tables import default_section

PLACE = "cifar100/resnet-18"
RESULTS = Path(__file__).parents[2] / "results" / "paper"


@pytest.fixture
def held(run):
    """held(default's scores) beside a CE of accuracy 75%, NLL 1 and ECE 8%, on three seeds."""

    def make(**scores):
        usual = {"accuracy": 0.75, "nll": 1.0, "ece": 0.08}
        runs = []
        for seed in range(3):
            wobble = {name: value + 1e-4 * seed for name, value in usual.items()}
            runs += [run(PLACE, "ce", seed, full=True, **wobble), run(PLACE, "pull", seed, full=True, **{**usual, **scores})]
        return {"calibration": Measured("calibration", tuple(runs))}

    return make


def verdicts(measured):
    return {each.what: each.verdict for each in targets(measured)}


def test_a_target_is_reached_by_its_mean_or_missed_with_its_margin(held):
    found = verdicts(held(accuracy=0.76, nll=0.9, ece=0.039))
    assert found["accuracy at least as good"] == found["NLL at least as good"] == found["ECE at most half"] == "reached"
    assert found["aim: ECE 2%"] == "**missed by 1.90 points**"
    found = verdicts(held(accuracy=0.70, nll=1.1, ece=0.05))
    assert found["accuracy at least as good"].startswith("**missed by 5.0")
    assert found["NLL at least as good"] == "**missed by .100**"
    assert (found["ECE at least as good"], found["ECE at most half"]) == ("reached", "**missed by 1.00 points**")


def test_at_least_as_good_allows_for_the_interval_over_seeds(held):
    assert verdicts(held(accuracy=0.75))["accuracy at least as good"] == "reached"  # behind by less than seeds differ


def test_one_seed_can_be_behind_and_decides_nothing(held):
    every = held(accuracy=0.70, nll=0.9, ece=0.05)["calibration"]
    one = {"calibration": Measured("calibration", tuple(each for each in every if each.seed == 0))}
    found = verdicts(one)
    assert found["accuracy at least as good"] == "behind by 5.00 points: one seed has no interval"
    assert found["NLL at least as good"] == "reached"
    assert found["ECE at most half"] == "**missed by 1.00 points**"  # by the mean, as always


def test_the_best_of_a_row_is_bold_and_what_was_not_run_is_a_dash(held):
    rows = comparison(held(accuracy=0.76, nll=0.9, ece=0.1))
    assert [row[1] for row in rows] == ["accuracy %", "NLL", "ECE %"]
    shown = dict(zip(COLUMNS, rows[0][2:], strict=False))
    assert shown["default"].startswith("**76.0")
    assert shown["VC"] == "-"
    assert dict(zip(COLUMNS, rows[2][2:], strict=False))["CE"].startswith("**8.0")


def test_without_the_default_there_is_no_section(run):
    only = {"calibration": Measured("calibration", (run(PLACE, "ce", 0, full=True),))}
    assert targets(only) == comparison(only) == default_section(only) == []
    assert targets({}) == comparison({}) == []


def test_what_is_compared_under_shift_are_its_own_rows(run):
    def made(arm, **scores):
        return replace(
            run(PLACE, arm, 0, full=True),
            rows=(row("shift", {"type": "fog"}, **scores), row("shift", {"type": "snow"}, **scores)),
        )

    def row(suite, condition, **scores):
        return Row(suite, "raw", condition, 100, scores)

    held = Measured("corruptions", (made("ce", accuracy=0.5, nll=2.0, ece=0.2), made("pull", accuracy=0.4, nll=1.5, ece=0.1)))
    rows = comparison({"corruptions": held})
    assert [each[:2] for each in rows] == [["CIFAR-100, resnet-18, corrupted", name] for name in ("accuracy %", "NLL", "ECE %")]
    assert dict(zip(COLUMNS, rows[1][2:], strict=False))["default"] == "**1.500**"


def test_the_attack_that_is_shown_is_one_that_results_keep():
    measured = read_measured(RESULTS / "adversarial.json", "adversarial")
    view = next(view for view in VIEWS if view.recipe == "adversarial")
    assert measured.values("cifar10/resnet-18", "ce", "accuracy", view.suite, "raw", **view.match)
