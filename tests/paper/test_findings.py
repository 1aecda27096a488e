"""Verdicts on claims: what the interval decides, what it leaves open, and what one seed cannot say."""

import math

import pytest

from varclass.metrics.intervals import paired_difference
from varclass.paper.findings import (
    COMPARABLE,
    FAILS,
    HIGHER,
    HOLDS,
    LOWER,
    NO_DATA,
    ONE_SEED,
    UNDECIDED,
    Check,
    Finding,
    count_verdicts,
    overall,
)

NARROW = {0: 0.100, 1: 0.101, 2: 0.102}
HIGHER_BY_TWO = {seed: value + 0.02 + 0.0001 * seed for seed, value in NARROW.items()}
WIDE = {0: 0.0, 1: 0.1, 2: 0.3}


def check(says, values, others, **options):
    return Check("somewhere", "ece", "VC", "CE", says, values, others, **options)


@pytest.mark.parametrize(
    ("says", "values", "others", "verdict"),
    [
        (LOWER, NARROW, HIGHER_BY_TWO, HOLDS),
        (LOWER, HIGHER_BY_TWO, NARROW, FAILS),
        (LOWER, WIDE, NARROW, UNDECIDED),
        (HIGHER, HIGHER_BY_TWO, NARROW, HOLDS),
        (HIGHER, NARROW, HIGHER_BY_TWO, FAILS),
        (HIGHER, WIDE, NARROW, UNDECIDED),
        (COMPARABLE, NARROW, HIGHER_BY_TWO, FAILS),  # two points are more than one
        (COMPARABLE, HIGHER_BY_TWO, NARROW, FAILS),
        (COMPARABLE, NARROW, {seed: value + 0.001 * seed for seed, value in NARROW.items()}, HOLDS),
        (COMPARABLE, WIDE, NARROW, UNDECIDED),
        (LOWER, {0: 0.1}, {0: 0.2}, ONE_SEED),
        (LOWER, {0: 0.1}, {1: 0.2}, NO_DATA),  # no seed in common
        (LOWER, {}, {}, NO_DATA),
        (LOWER, {0: math.nan, 1: 0.1}, {0: 0.1, 1: 0.2}, NO_DATA),
    ],
)
def test_the_interval_of_the_paired_difference_decides(says, values, others, verdict):
    assert check(says, values, others).verdict == verdict


def test_the_difference_is_seed_by_seed_on_the_seeds_that_both_have():
    found = check(LOWER, {0: 0.1, 1: 0.3, 7: 0.9}, {1: 0.5, 0: 0.4, 2: 0.0})
    assert found.seeds == [0, 1]
    assert found.difference == paired_difference([0.1, 0.3], [0.4, 0.5])


def test_a_wider_margin_lets_more_be_comparable():
    assert check(COMPARABLE, NARROW, HIGHER_BY_TWO, margin=0.03).verdict == HOLDS


def test_sentences_say_the_verdict_the_amount_its_interval_and_the_seeds():
    sentence = check(LOWER, NARROW, HIGHER_BY_TWO).sentence
    assert sentence.startswith("somewhere: ECE of VC lower than CE's: holds, -2.01 points (-2.03 to -1.99, n = 3 seeds)")
    assert check(COMPARABLE, NARROW, NARROW).sentence.startswith("somewhere: ECE of VC comparable to CE's: holds")
    assert check(LOWER, {0: 0.1}, {0: 0.2}).sentence.endswith("-10.00 points; one seed has no interval")
    assert check(LOWER, {}, {}).sentence.endswith(": not measured")


def test_a_claim_holds_if_it_holds_everywhere_and_falls_where_it_falls_once():
    good, open_, bad = check(LOWER, NARROW, HIGHER_BY_TWO), check(LOWER, WIDE, NARROW), check(LOWER, HIGHER_BY_TWO, NARROW)
    assert Finding("claim", [good, good]).verdict == HOLDS
    assert Finding("claim", [good, open_]).verdict == UNDECIDED
    assert Finding("claim", [good, open_, bad]).verdict == FAILS
    assert Finding("claim", [good, open_, bad]).counts == "holds in 1 of 3, does not hold in 1, undecided in 1"
    assert Finding("claim", []).verdict == NO_DATA
    assert overall([ONE_SEED, HOLDS, NO_DATA]) == ONE_SEED
    assert count_verdicts([]) == NO_DATA
