"""What the summary says in each case."""

import math

import pytest

from varclass.metrics.intervals import paired_difference
from varclass.report.measures import MEASURES
from varclass.report.words import BETTER, NO_DATA, ONE_SEED, SAME, UNDECIDED, WORSE, Comparison, overview


def comparison(score, values, others, where="clean"):
    return Comparison.of("VC", "CE", where, MEASURES[score], dict(enumerate(values)), dict(enumerate(others)))


def test_worse_where_less_is_better_says_by_how_much_and_how_sure():
    found = comparison("nll", [0.089, 0.090, 0.088], [0.074, 0.076, 0.072])
    gap = paired_difference([0.089, 0.090, 0.088], [0.074, 0.076, 0.072])
    assert found.verdict == WORSE
    ends = f"{gap.low:.3f} to {gap.high:.3f}".replace("0.", ".")
    assert found.sentence == f"NLL .089 against .074 (clean): worse by .015 (95% interval {ends})."


def test_better_gives_the_size_of_the_change_without_a_sign():
    found = comparison("ece", [0.01, 0.011, 0.009], [0.03, 0.032, 0.028])
    gap = paired_difference([0.01, 0.011, 0.009], [0.03, 0.032, 0.028])
    ends = f"{-100 * gap.high:.2f} to {-100 * gap.low:.2f} points"
    assert found.sentence == f"ECE 1.0% against 3.0% (clean): better by 2.00 points (95% interval {ends})."
    assert comparison("accuracy", [0.95, 0.96, 0.94], [0.9, 0.91, 0.89]).verdict == BETTER
    assert comparison("accuracy", [0.9, 0.91, 0.89], [0.95, 0.96, 0.94]).verdict == WORSE


def test_an_interval_around_zero_is_no_difference_that_the_seeds_can_show():
    found = comparison("accuracy", [0.9, 0.92, 0.91], [0.91, 0.90, 0.92])
    assert found.verdict == UNDECIDED
    gap = paired_difference([0.9, 0.92, 0.91], [0.91, 0.90, 0.92])
    ends = f"{100 * gap.low:.2f} to {100 * gap.high:.2f} points"
    assert found.sentence == f"accuracy 91.0% against 91.0% (clean): no difference that 3 seeds can show (95% interval {ends})."


def test_one_seed_has_no_interval():
    found = comparison("nll", [0.3], [0.25])
    assert found.verdict == ONE_SEED
    assert found.sentence == "NLL .300 against .250 (clean): worse by .050; one seed: no interval."
    assert comparison("nll", [0.3], [0.3]).sentence.endswith("the same; one seed: no interval.")


def test_the_same_numbers_are_the_same():
    found = comparison("accuracy", [0.9, 0.91], [0.9, 0.91])
    assert found.verdict == SAME
    assert found.sentence == "accuracy 90.5% against 90.5% (clean): the same in all 2 seeds."


def test_nan_is_no_data_and_says_so():
    found = comparison("ece", [math.nan, 0.1], [0.1, 0.2])
    assert found.verdict == NO_DATA
    assert found.sentence == "ECE no data against 15.0% (clean): no data to compare."


def test_no_common_seed_is_no_data():
    found = Comparison.of("VC", "CE", "clean", MEASURES["nll"], {0: 0.1}, {1: 0.2})
    assert found.sentence == "NLL (clean): no data to compare, for no seed has both."


def test_an_infinite_value_has_no_interval():
    found = comparison("nll", [math.inf, 0.1], [0.1, 0.2])
    assert found.verdict == UNDECIDED
    assert "infinite against .150" in found.sentence
    assert found.sentence.endswith("no interval over 2 seeds, for not every value is finite.")


def test_only_common_seeds_are_compared():
    found = Comparison.of("VC", "CE", "clean", MEASURES["nll"], {0: 0.5, 1: 0.6, 2: 9.0}, {0: 0.4, 1: 0.4})
    assert found.seeds == (0, 1)
    assert found.value.mean == pytest.approx(0.55)
    assert found.difference == paired_difference([0.5, 0.6], [0.4, 0.4])


def test_the_overview_names_what_is_better_worse_and_open():
    lines = [
        comparison("nll", [0.089, 0.090, 0.088], [0.074, 0.076, 0.072]),
        comparison("ece", [0.01, 0.011, 0.009], [0.03, 0.032, 0.028]),
        comparison("accuracy", [0.9, 0.92, 0.91], [0.91, 0.90, 0.92], "FGSM at 0.05"),
    ]
    expected = "better in ECE (clean); worse in NLL (clean); no difference that 3 seeds can show in accuracy (FGSM at 0.05)."
    assert overview(lines) == expected
    assert overview(lines[2:] * 4) == "no difference that 3 seeds can show in any of 4 comparisons."


@pytest.mark.parametrize(
    ("score", "value", "text"),
    [
        ("accuracy", 0.97449, "97.4%"),
        ("nll", 0.0, ".000"),
        ("nll", -0.0001, ".000"),
        ("nll", 12.345, "12.3"),
        ("nll", 1.5, "1.500"),
    ],
)
def test_numbers_have_the_digits_they_deserve(score, value, text):
    assert MEASURES[score].text(value) == text


def test_a_difference_is_never_printed_as_zero_unless_it_is():
    assert MEASURES["nll"].change(-0.00004) == "-.00004"
    assert MEASURES["ece"].change(0.00002) == "0.002"
    assert MEASURES["ece"].change(0.0) == "0.00"
