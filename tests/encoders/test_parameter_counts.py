"""The residual networks are the published ones: parameters counted from the papers' tables, by hand or by formula."""

import pytest

from varclass.encoders.resnet import ResNet
from varclass.encoders.wide_resnet import WideResNet


def count(module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def wide_count(depth: int, width: int) -> int:
    """Convolutions k^2 * in * out, batch norms 2 * channels; from table 1 of Zagoruyko and Komodakis."""
    blocks, total, inputs = (depth - 4) // 6, 9 * 3 * 16, 16
    for size in (16 * width, 32 * width, 64 * width):
        total += 2 * inputs + 9 * inputs * size + 2 * size + 9 * size * size
        total += inputs * size if inputs != size else 0
        total += (blocks - 1) * (4 * size + 18 * size * size)
        inputs = size
    return total + 2 * inputs


@pytest.mark.parametrize(("depth", "width"), [(10, 1), (16, 4), (28, 2), (28, 10), (40, 2)])
def test_wide_resnet_by_formula(depth, width):
    assert count(WideResNet(depth, width)) == wide_count(depth, width)


def test_wide_resnet_28_10_exactly():
    """36,479,194 is the count of the reference implementations for CIFAR-10, with their output layer of 640 x 10 + 10."""
    assert count(WideResNet(28, 10)) + 640 * 10 + 10 == 36_479_194
    assert WideResNet(28, 10).out_features == 640


@pytest.mark.parametrize(
    ("depth", "width", "millions"),  # from the paper's table for CIFAR
    [(40, 1, 0.6), (40, 2, 2.2), (40, 4, 8.9), (40, 8, 35.7), (28, 10, 36.5), (22, 8, 17.2), (16, 8, 11.0), (16, 10, 17.1)],
)
def test_wide_resnet_as_published(depth, width, millions):
    assert round((wide_count(depth, width) + 64 * width * 10 + 10) / 1e6, 1) == millions


@pytest.mark.parametrize(
    ("depth", "features", "published"),  # without an output layer: published ImageNet count - output layer - 7x7 + 3x3 stem
    [
        (18, 512, 11_689_512 - 513_000 - 64 * 3 * (49 - 9)),
        (34, 512, 21_797_672 - 513_000 - 64 * 3 * (49 - 9)),
        (50, 2048, 25_557_032 - 2_049_000 - 64 * 3 * (49 - 9)),
        (101, 2048, 44_549_160 - 2_049_000 - 64 * 3 * (49 - 9)),
    ],
)
def test_resnet_against_the_imagenet_form(depth, features, published):
    encoder = ResNet(depth)
    assert count(encoder) == published
    assert encoder.out_features == features


def test_resnet_18_and_50_for_cifar_exactly():
    assert count(ResNet(18)) + 512 * 10 + 10 == 11_173_962
    assert count(ResNet(50)) + 2048 * 10 + 10 == 23_520_842


def test_dropout_and_channels_change_no_other_parameter():
    assert count(WideResNet(16, 2, dropout=0.3)) == count(WideResNet(16, 2))
    assert count(ResNet(18, channels=1)) == count(ResNet(18)) - 2 * 9 * 64
