import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from varclass.data import DataError, Split, carve, subset

counts = st.lists(st.integers(1, 40), min_size=1, max_size=6)


def split_of(per_class, seed=0):
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(per_class)), per_class))
    inputs = np.arange(len(labels), dtype=np.float32)[:, None]
    return Split("vector", inputs, labels, tuple(f"class {number}" for number in range(len(per_class))))


def ids(split):
    return set(np.asarray(split.inputs)[:, 0].astype(int).tolist())


def is_rounded_proportion(dealt, totals):
    """Sainte-Lague's condition: one divisor d rounds every total / d to what was dealt."""
    dealt, totals = np.asarray(dealt, float), np.asarray(totals, float)
    return ((dealt - 0.5) / totals).max() <= ((dealt + 0.5) / totals).min() + 1e-12


@given(counts, st.data())
def test_carving_divides_a_split_in_proportion(per_class, data):
    split = split_of(per_class)
    if len(split) < 2:
        return
    count = data.draw(st.integers(1, len(split) - 1))
    rest, carved = carve(split, count, seed=data.draw(st.integers(0, 5)))
    assert len(carved) == count
    assert ids(rest) | ids(carved) == ids(split)
    assert not ids(rest) & ids(carved)
    assert is_rounded_proportion(np.bincount(carved.labels, minlength=len(per_class)), per_class)
    for part in (rest, carved):
        position = np.asarray(part.inputs)[:, 0].astype(int)
        assert (np.diff(position) > 0).all()
        np.testing.assert_array_equal(part.labels, split.labels[position])


@given(counts, st.data())
def test_a_smaller_subset_lies_in_a_larger_one(per_class, data):
    split = split_of(per_class)
    small = data.draw(st.integers(1, len(split)))
    large = data.draw(st.integers(small, len(split)))
    assert ids(subset(split, small, seed=3)) <= ids(subset(split, large, seed=3))
    assert len(subset(split, large, seed=3)) == large
    assert is_rounded_proportion(np.bincount(subset(split, small, seed=3).labels, minlength=len(per_class)), per_class)


@given(counts, st.data())
def test_subsets_per_class_are_equal_and_nested(per_class, data):
    split = split_of(per_class)
    large = data.draw(st.integers(1, min(per_class)))
    small = data.draw(st.integers(1, large))
    held = subset(split, per_class=large, seed=1)
    assert np.bincount(held.labels).tolist() == [large] * len(per_class)
    assert ids(subset(split, per_class=small, seed=1)) <= ids(held)


def test_balanced_classes_share_exactly():
    split = split_of([50] * 4)
    for count in (4, 40, 100):
        assert np.bincount(subset(split, count).labels).tolist() == [count // 4] * 4
        assert np.bincount(carve(split, count / 200, seed=0)[1].labels).tolist() == [count // 4] * 4


def test_the_choice_is_the_same_on_every_machine_and_another_for_another_seed():
    split = Split("vector", np.arange(12, dtype=np.float32)[:, None], np.arange(12) % 3, ("a", "b", "c"))
    assert sorted(ids(subset(split, 6, seed=0))) == [1, 2, 3, 6, 7, 11]  # once and for all
    assert ids(subset(split, 6, seed=0)) == ids(subset(split, 6, seed=0))
    assert len({frozenset(ids(subset(split, 6, seed=seed))) for seed in range(10)}) > 5


def test_the_choice_is_uniform_over_the_samples_of_a_class():
    split = split_of([6])
    often = sum(np.bincount(list(ids(subset(split, 2, seed=seed))), minlength=6) for seed in range(3000))
    # each of 6 samples is in a third of the subsets: 1000 +- 5 standard errors of sqrt(3000 * 1/3 * 2/3) = 25.8
    assert np.abs(often - 1000).max() < 5 * 25.8


def test_out_of_scope_samples_are_left_out_of_equal_subsets():
    split = Split("vector", np.arange(6, dtype=np.float32)[:, None], np.array([0, -1, 1, 0, -1, 1]), ("a", "b"))
    assert sorted(subset(split, per_class=2).labels.tolist()) == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda split: carve(split, 1.0, 0), "between 0 and 1 and .* got 1.0 of 10"),
        (lambda split: carve(split, 0.04, 0), "both sides; got 0.04 of 10"),
        (lambda split: carve(split, 0.96, 0), "both sides; got 0.96 of 10"),
        (lambda split: carve(split, 0, 0), "from 1 to 9; got 0"),
        (lambda split: carve(split, 10, 0), "from 1 to 9; got 10"),
        (lambda split: carve(split, True, 0), "got True"),
        (lambda split: carve(split, 2, -1), "seed must be a whole number of at least 0; got -1"),
        (subset, "either count or per_class"),
        (lambda split: subset(split, 3, per_class=2), "either count or per_class"),
        (lambda split: subset(split, 11), "count must be a whole number from 1 to 10; got 11"),
        (lambda split: subset(split, per_class=5), "at most 4, all that class 'class 1' has; got 5"),
        (lambda split: subset(split, per_class=0), "per_class must be a whole number"),
    ],
)
def test_impossible_parts_are_refused(call, match):
    with pytest.raises(DataError, match=match):
        call(split_of([6, 4]))
