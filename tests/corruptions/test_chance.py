"""Each image's random numbers: distributed as they should be, and independent of one another."""

import numpy as np
import torch
from scipy import stats

from varclass.data.corruptions.chance import Chance

INDEX = torch.arange(200)


def test_uniform_and_normal_numbers_have_their_distributions():
    n = 200 * 1000
    for draw, distribution in ((Chance.uniform, stats.uniform), (Chance.normal, stats.norm)):
        values = draw(Chance(0, "fog", 1, INDEX), 1000).flatten().numpy()
        assert stats.kstest(values, distribution.cdf).pvalue > 1e-6, distribution.name
        assert len(np.unique(values)) > 0.999 * n
    assert Chance(0, "fog", 1, INDEX).uniform(1000).min() > 0


def test_whole_numbers_are_equally_frequent_and_in_range():
    counts = torch.bincount(Chance(0, "fog", 1, INDEX).whole(-2, 2, 1000).flatten() + 2)
    assert len(counts) == 4
    assert stats.chisquare(counts.numpy()).pvalue > 1e-6


def test_images_seeds_names_severities_and_draws_are_uncorrelated():
    n = 10_000
    chance = Chance(0, "fog", 1, torch.tensor([0, 1, 2**40]))
    streams = [*chance.normal(n), *chance.normal(n)]
    for seed, name, severity in ((1, "fog", 1), (0, "snow", 1), (0, "fog", 2)):
        streams += [*Chance(seed, name, severity, torch.tensor([0, 1])).normal(n)]
    correlation = torch.corrcoef(torch.stack(streams))
    off = correlation[~torch.eye(len(streams), dtype=torch.bool)]
    assert off.abs().max() < 5 / n**0.5


def test_both_numbers_of_a_pair_are_independent():
    pairs = Chance(0, "fog", 1, INDEX).normal(2, 500)
    first, second = pairs[:, 0].flatten(), pairs[:, 1].flatten()
    for a, b in ((first, second), (first.square(), second.square())):
        assert torch.corrcoef(torch.stack([a, b]))[0, 1].abs() < 5 / len(first) ** 0.5


def test_the_bits_are_those_of_splitmix64():
    """By Python's own whole numbers: the stream of an image is SplitMix64 started at its key."""
    mask, golden = 2**64 - 1, 0x9E3779B97F4A7C15

    def mixed(z):
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    assert mixed(golden) == 0xE220A8397B1DCDAF  # the first number of SplitMix64 from seed 0, as published with it
    chance = Chance(5, "fog", 2, torch.tensor([3]))
    key = int(chance.keys[0]) & mask
    expected = [(mixed((key + golden * step) & mask) >> 12) for step in range(1, 6)]
    assert (chance.uniform(5)[0] * 2**52).long().tolist() == expected
