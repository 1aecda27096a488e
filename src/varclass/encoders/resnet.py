"""Residual networks (He et al., 2016) in their form for small images: a 3x3 stem, and no max-pool unless it is asked for."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from varclass.core.options import check_count
from varclass.encoders.contract import ENCODERS, Encoder, check_dropout
from varclass.encoders.convolution import conv, start_convolutions

# depth: blocks in each of the four stages, and whether they are bottlenecks
DEPTHS = {18: ((2, 2, 2, 2), False), 34: ((3, 4, 6, 3), False), 50: ((3, 4, 6, 3), True), 101: ((3, 4, 23, 3), True)}
HALVINGS = (0, 1, 2)


class ResidualBlock(nn.Module):
    """relu(shortcut(x) + residual(x)); the residual is two 3x3 convolutions, or 1x1, 3x3, 1x1 in a bottleneck.

    The stride is the 3x3 convolution's, which loses less of the input than He's own choice of the first 1x1 (the form
    known as 1.5). Dropout comes before the last convolution.
    """

    def __init__(self, inputs: int, width: int, stride: int, bottleneck: bool, dropout: float) -> None:
        super().__init__()
        outputs = width * 4 if bottleneck else width
        layers: list[nn.Module] = []
        if bottleneck:
            layers += [conv(inputs, width, 1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        layers += [conv(width if bottleneck else inputs, width, 3, stride), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        layers += [nn.Dropout(dropout), conv(width, outputs, 1 if bottleneck else 3), nn.BatchNorm2d(outputs)]
        self.residual = nn.Sequential(*layers)
        self.shortcut: nn.Module = nn.Identity()
        if inputs != outputs or stride != 1:
            self.shortcut = nn.Sequential(conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, outputs, H / stride, W / stride)."""
        return self.relu(self.shortcut(x) + self.residual(x))


@ENCODERS.register("resnet")
class ResNet(Encoder):
    """Residual network for small images: 3x3 stem, no max-pool unless `halvings` is 2; depth 18, 34, 50 or 101.

    F = 512, or 2048 from depth 50 on. Dropout acts in the blocks of the last stage, between the convolutions, as in a
    wide residual network.

    Args:
        depth: 18, 34, 50 or 101.
        channels: of the images.
        dropout: probability.
        halvings: how often the stem halves the images: 0 for 32 pixels, 1 for 64, 2 for 128. Each makes a step four times
            as fast and the last feature map half as wide.

    >>> ResNet(depth=18).out_features
    512
    """

    pattern, kinds = "resnet-<depth>", ("image",)

    def __init__(self, depth: int = 18, channels: int = 3, dropout: float = 0.0, halvings: int = 0) -> None:
        super().__init__()
        if depth not in DEPTHS:
            raise ValueError(f"resnet depth must be one of {', '.join(map(str, DEPTHS))}; got {depth!r}")
        counts, bottleneck = DEPTHS[depth]
        check_dropout(dropout)
        if isinstance(halvings, bool) or halvings not in HALVINGS:
            raise ValueError(f"resnet halvings must be one of {', '.join(map(str, HALVINGS))}; got {halvings!r}")
        first = conv(check_count("channels", channels, 1), 64, 3, stride=2 if halvings else 1)
        pool = [nn.MaxPool2d(3, 2, padding=1)] if halvings == 2 else []
        self.stem = nn.Sequential(first, nn.BatchNorm2d(64), nn.ReLU(inplace=True), *pool)
        blocks, inputs = [], 64
        for stage, count in enumerate(counts):
            width = 64 * 2**stage
            for index in range(count):
                stride = 2 if index == 0 and stage > 0 else 1
                blocks.append(ResidualBlock(inputs, width, stride, bottleneck, dropout if stage == 3 else 0.0))
                inputs = width * 4 if bottleneck else width
        self.blocks = nn.Sequential(*blocks)
        self.out_features = inputs
        start_convolutions(self)

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, F)."""
        return self.blocks(self.stem(x)).mean((2, 3))

    @classmethod
    def arguments(cls, numbers: tuple[int, ...], shape: tuple[int, ...]) -> dict[str, Any]:
        """Depth from the name, channels from the images."""
        return {"depth": numbers[0], "channels": shape[0]}
