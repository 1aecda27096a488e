"""Which samples a step takes, and the random numbers it uses: functions of the seed and the step, of nothing else."""

import random

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from varclass.training.batches import Plan, Share, chances, seed_everything, transform
from varclass.training.spec import TrainingSpec

PLANS = st.builds(Plan, st.integers(1, 200), st.integers(1, 60), st.integers(1, 4), st.integers(0, 2**40))


@given(PLANS, st.integers(0, 3))
def test_an_epoch_takes_every_sample_once_but_for_the_remainder(plan, epoch):
    batches = list(plan.batches(epoch))
    taken = np.concatenate(batches)
    assert len(batches) == plan.steps_per_epoch
    assert len(set(taken)) == len(taken) == plan.samples - plan.samples % min(plan.batch_size, plan.samples)
    assert set(taken) <= set(range(plan.samples))
    assert plan.steps == plan.epochs * plan.steps_per_epoch


@given(PLANS, st.integers(0, 3), st.data())
def test_an_epoch_can_be_taken_up_at_any_step(plan, epoch, data):
    first = data.draw(st.integers(0, plan.steps_per_epoch))
    whole, rest = list(plan.batches(epoch)), list(plan.batches(epoch, first))
    assert len(rest) == len(whole) - first
    assert all(np.array_equal(a, b) for a, b in zip(whole[first:], rest, strict=True))


@given(st.integers(1, 5), st.integers(1, 8))
def test_the_shares_of_the_processes_are_the_batch_in_order(processes, each):
    index = np.random.default_rng(0).permutation(processes * each)
    parts = [Share(rank, processes).of(index) for rank in range(processes)]
    assert {len(part) for part in parts} == {each}
    assert np.array_equal(np.concatenate(parts), index)


def test_orders_differ_between_epochs_and_seeds():
    orders = [Plan(50, 10, 2, seed).order(epoch).tolist() for seed in (0, 1, 2) for epoch in (0, 1)]
    assert len({tuple(order) for order in orders}) == 6


def numbers():
    return random.random(), np.random.rand(), torch.rand(2).tolist()  # noqa: NPY002


def test_every_generator_is_seeded_by_the_key_alone():
    seen = {}
    for key in ((3, 1), (3, 2), (3, 1, 1), (3, 1, 2), (4, 1), (3, 1)):
        seed_everything(*key)
        found = numbers()
        assert seen.setdefault(key, found) == found
    for one in range(3):
        assert len({str(found[one]) for found in seen.values()}) == 5


def test_transform_smooths_then_mixes_with_the_mirror_of_the_batch():
    x, y = torch.rand(4, 3), torch.tensor([0, 1, 2, 1])
    out, soft = transform(x, y, chances(4, x.device), 0.3, 3, TrainingSpec(mixup=1.0, label_smoothing=0.3))
    hard = np.eye(3)[[0, 1, 2, 1]] * 0.7 + 0.1
    for i in range(4):
        np.testing.assert_allclose(out[i], 0.3 * x[i].numpy() + 0.7 * x[3 - i].numpy(), rtol=1e-6)
        np.testing.assert_allclose(soft[i], 0.3 * hard[i] + 0.7 * hard[3 - i], rtol=1e-6)


def test_without_options_inputs_and_labels_stay_as_they_are():
    images, y = torch.randint(256, (4, 1, 3, 3), dtype=torch.uint8), torch.arange(4)
    out, labels = transform(images, y, chances(4, y.device), 1.0, 4, TrainingSpec())
    assert torch.equal(out, images / 255)
    assert labels is y
