"""The residual networks compute what their papers say: checked against the formulas on the networks' own weights."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from varclass.encoders.resnet import ResNet
from varclass.encoders.wide_resnet import WideResNet


def norm(bn: nn.BatchNorm2d, x: torch.Tensor) -> torch.Tensor:
    mean, variance = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), keepdim=True, unbiased=False)
    return (x - mean) / (variance + bn.eps).sqrt() * bn.weight.view(-1, 1, 1) + bn.bias.view(-1, 1, 1)


def test_wide_resnet_is_pre_activation():
    torch.manual_seed(0)
    encoder, x = WideResNet(10, 2).double(), torch.rand(3, 3, 12, 12, dtype=torch.float64)
    h = F.conv2d(x, encoder.stem.weight, padding=1)
    for block, stride in zip(encoder.blocks, (1, 2, 2), strict=True):
        active = norm(block.bn1, h).relu()
        inner = norm(block.bn2, F.conv2d(active, block.conv1.weight, stride=stride, padding=1)).relu()
        h = F.conv2d(active, block.shortcut.weight, stride=stride) + F.conv2d(inner, block.conv2.weight, padding=1)
    expected = norm(encoder.bn, h).relu().mean((2, 3))
    torch.testing.assert_close(encoder(x), expected, rtol=1e-9, atol=1e-12)


def test_wide_resnet_keeps_the_identity_where_shapes_agree():
    encoder = WideResNet(16, 2)
    assert [block.shortcut is None for block in encoder.blocks] == [False, True] * 3
    assert WideResNet(16, 1).blocks[0].shortcut is None  # 16 channels already


def test_wide_resnet_drops_between_the_convolutions():
    block = WideResNet(10, 1, dropout=0.3).blocks[1]
    seen = {}
    block.dropout.register_forward_hook(lambda _, args, out: seen.update(before=args[0], after=out))
    block.conv2.register_forward_pre_hook(lambda _, args: seen.update(conv2=args[0]))
    block(torch.rand(2, 16, 8, 8))
    assert seen["conv2"] is seen["after"]
    dropped = (seen["after"] == 0) & (seen["before"] > 0)
    n = int((seen["before"] > 0).sum())
    assert abs(int(dropped.sum()) / n - 0.3) < 5 * (0.3 * 0.7 / n) ** 0.5


def test_resnet_maps_shrink_only_by_the_strides_of_three_stages():
    encoder = ResNet(18)
    assert encoder.stem(torch.rand(2, 3, 32, 32)).shape == (2, 64, 32, 32)
    assert encoder.blocks(encoder.stem(torch.rand(2, 3, 32, 32))).shape == (2, 512, 4, 4)


@pytest.mark.parametrize(("halvings", "pixels"), [(0, 64), (1, 32), (2, 16)])
def test_resnet_stem_halves_as_often_as_asked(halvings, pixels):
    encoder = ResNet(18, halvings=halvings)
    assert encoder.stem(torch.rand(2, 3, 64, 64)).shape == (2, 64, pixels, pixels)
    assert encoder(torch.rand(2, 3, 64, 64)).shape == (2, 512)


@pytest.mark.parametrize("halvings", [3, -1, True, "1"])
def test_resnet_refuses_other_halvings(halvings):
    with pytest.raises(ValueError, match=rf"^resnet halvings must be one of 0, 1, 2; got {halvings!r}$"):
        ResNet(18, halvings=halvings)


def test_resnet_bottleneck_strides_in_its_3x3_convolution():
    strides = [(m.kernel_size[0], m.stride[0]) for m in ResNet(50).blocks[3].residual if isinstance(m, nn.Conv2d)]
    assert strides == [(1, 1), (3, 2), (1, 1)]


def test_resnet_drops_in_the_last_stage_alone():
    encoder = ResNet(34, dropout=0.2)
    rates = [m.p for block in encoder.blocks for m in block.residual if isinstance(m, nn.Dropout)]
    assert rates == [0.0] * 13 + [0.2] * 3


def test_he_start():
    torch.manual_seed(0)
    for encoder in (WideResNet(10, 4), ResNet(18)):
        for module in encoder.modules():
            if isinstance(module, nn.Conv2d):
                expected = (2 / (module.out_channels * module.kernel_size[0] ** 2)) ** 0.5
                n = module.weight.numel()
                assert abs(float(module.weight.detach().std()) / expected - 1) < 5 / (2 * n) ** 0.5  # five standard errors
