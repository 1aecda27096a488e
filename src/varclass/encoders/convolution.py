"""Convolutions as residual networks use them: no bias before a batch norm, padded to keep the size, He's start."""

from __future__ import annotations

from torch import nn


def conv(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    """A convolution whose output has the input's size, divided by the stride."""
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


def start_convolutions(network: nn.Module) -> None:
    """He's normal start by fan-out, which keeps the size of gradients; batch norms start at the identity by themselves."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
