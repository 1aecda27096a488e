"""Encoders that train in seconds on a CPU: a LeNet-like convolutional network, and a multilayer perceptron."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from torch import Tensor, nn

from varclass.core.options import check_count
from varclass.encoders.contract import ENCODERS, SMALLEST_IMAGE, Encoder, check_dropout, check_shape, check_widths
from varclass.encoders.convolution import conv, start_convolutions


def dense(inputs: int, hidden: Sequence[int], features: int, dropout: float) -> list[nn.Module]:
    """Hidden layers with ReLU and dropout, then a linear map to the features.

    The features have no ReLU: they are latents, and class means may have negative coordinates.
    """
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [nn.Linear(inputs, width), nn.ReLU(inplace=True), nn.Dropout(dropout)]
        inputs = width
    layers.append(nn.Linear(inputs, features))
    for layer in layers:
        if isinstance(layer, nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu" if layer is not layers[-1] else "linear")
            nn.init.zeros_(layer.bias)
    return layers


@ENCODERS.register("lenet")
class LeNet(Encoder):
    """LeNet-like: two 5x5 convolutions with batch norm, ReLU and max-pool, one hidden layer, linear features.

    For images from 8x8 on. Above 35x35 the last map is averaged down to 8x8, so that the hidden layer does not grow with
    the image. Dropout acts on the map that enters the hidden layer and on the hidden layer.

    Args:
        shape: (channels, height, width) of an image.
        widths: channels of the two convolutions.
        hidden: width of the hidden layer.
        features: F.
        dropout: probability.

    >>> LeNet((1, 8, 8)).out_features
    64
    """

    pattern, kinds = "lenet", ("image",)

    def __init__(
        self,
        shape: tuple[int, ...],
        widths: Sequence[int] = (32, 64),
        hidden: int = 256,
        features: int = 64,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        channels, *size = check_shape("image", shape)
        if min(size) < SMALLEST_IMAGE:
            raise ValueError(
                f"lenet takes images from {SMALLEST_IMAGE}x{SMALLEST_IMAGE} on; got {size[0]}x{size[1]}: use 'mlp'"
            )
        if len(check_widths("widths", widths)) != 2:
            raise ValueError(f"widths must hold 2 numbers, one for each convolution; got {widths!r}")
        self.out_features = check_count("features", features, 1)
        hidden = check_count("hidden", hidden, 1)
        dropout = check_dropout(dropout)
        grid = [min(length // 4, 8) for length in size]
        layers: list[nn.Module] = []
        for inputs, outputs in ((channels, widths[0]), (widths[0], widths[1])):
            layers += [conv(inputs, outputs, 5), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
        if grid != [length // 4 for length in size]:  # left out where it changes nothing: its gradient varies on a GPU
            layers.append(nn.AdaptiveAvgPool2d(tuple(grid)))
        layers += [nn.Flatten(), nn.Dropout(dropout), *dense(widths[1] * prod(grid), [hidden], features, dropout)]
        self.layers = nn.Sequential(*layers)
        start_convolutions(self)

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, F)."""
        return self.layers(x)

    @classmethod
    def arguments(cls, numbers: tuple[int, ...], shape: tuple[int, ...]) -> dict[str, Any]:
        """The shape of an image."""
        return {"shape": shape}


@ENCODERS.register("mlp")
class MLP(Encoder):
    """Multilayer perceptron: hidden layers with ReLU, linear features. Images are flattened.

    Dropout acts on every hidden layer.

    Args:
        inputs: numbers in one input.
        hidden: widths of the hidden layers.
        features: F.
        dropout: probability.

    >>> MLP(13, hidden=[32]).out_features
    64
    """

    pattern, kinds = "mlp", ("image", "vector")

    def __init__(self, inputs: int, hidden: Sequence[int] = (256, 256), features: int = 64, dropout: float = 0.0) -> None:
        super().__init__()
        self.out_features = check_count("features", features, 1)
        widths = check_widths("hidden", hidden)
        layers = dense(check_count("inputs", inputs, 1), widths, features, check_dropout(dropout))
        self.layers = nn.Sequential(nn.Flatten(), *layers)

    def forward(self, x: Tensor) -> Tensor:
        """(B, ...) -> (B, F)."""
        return self.layers(x)

    @classmethod
    def arguments(cls, numbers: tuple[int, ...], shape: tuple[int, ...]) -> dict[str, Any]:
        """How many numbers one input holds."""
        return {"inputs": prod(shape)}
