"""Wide residual networks (Zagoruyko and Komodakis, 2016) for small images."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from varclass.core.options import check_count
from varclass.encoders.contract import ENCODERS, Encoder, check_dropout
from varclass.encoders.convolution import conv, start_convolutions


class WideBlock(nn.Module):
    """x + conv(dropout(relu(bn(conv(relu(bn(x))))))): pre-activation; a 1x1 shortcut where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.bn1, self.relu1 = nn.BatchNorm2d(inputs), nn.ReLU(inplace=True)
        self.conv1 = conv(inputs, outputs, 3, stride)
        self.bn2, self.relu2 = nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = conv(outputs, outputs, 3)
        self.shortcut = None if inputs == outputs and stride == 1 else conv(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, outputs, H / stride, W / stride)."""
        active = self.relu1(self.bn1(x))
        # As in the authors' code, the 1x1 shortcut starts from the activated input, the identity from the input itself.
        skip = x if self.shortcut is None else self.shortcut(active)
        out: Tensor = self.conv2(self.dropout(self.relu2(self.bn2(self.conv1(active)))))
        return skip + out


@ENCODERS.register("wrn")
class WideResNet(Encoder):
    """Wide residual network: three groups of (depth - 4) / 6 blocks, 16, 32 and 64 times `width` channels.

    F = 64 * width. Dropout acts inside the blocks, between the convolutions, as in the paper (its CIFAR value is 0.3).

    Args:
        depth: 6n + 4: 10, 16, 22, 28, 40, ...
        width: the factor on the channels.
        channels: of the images.
        dropout: probability.

    >>> WideResNet(depth=28, width=10).out_features
    640
    """

    pattern, kinds = "wrn-<depth>-<width>", ("image",)

    def __init__(self, depth: int = 28, width: int = 10, channels: int = 3, dropout: float = 0.0) -> None:
        super().__init__()
        if check_count("wrn depth", depth, 10) % 6 != 4:
            raise ValueError(f"wrn depth must be 6n + 4, such as 10, 16, 22, 28 or 40; got {depth}")
        sizes = [factor * check_count("wrn width", width, 1) for factor in (16, 32, 64)]
        check_dropout(dropout)
        self.stem = conv(check_count("channels", channels, 1), 16, 3)
        blocks, inputs = [], 16
        for size, stride in zip(sizes, (1, 2, 2), strict=True):
            for index in range((depth - 4) // 6):
                blocks.append(WideBlock(inputs, size, stride if index == 0 else 1, dropout))
                inputs = size
        self.blocks = nn.Sequential(*blocks)
        self.bn, self.relu = nn.BatchNorm2d(inputs), nn.ReLU(inplace=True)
        self.out_features = inputs
        start_convolutions(self)

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, F)."""
        return self.relu(self.bn(self.blocks(self.stem(x)))).mean((2, 3))

    @classmethod
    def arguments(cls, numbers: tuple[int, ...], shape: tuple[int, ...]) -> dict[str, Any]:
        """Depth and width from the name, channels from the images."""
        depth, width = numbers
        return {"depth": depth, "width": width, "channels": shape[0]}
