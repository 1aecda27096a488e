"""A convolutional network made to be trained in a minute: the one of airbench96 (Jordan, 2024), as an encoder."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from varclass.core.options import check_count
from varclass.encoders.contract import ENCODERS, SMALLEST_IMAGE, Encoder, check_dropout, check_shape
from varclass.encoders.convolution import conv

PATCH = 2  # pixels, each way, that are whitened together
SMALLEST_VARIANCE = 5e-4  # added to a patch's variance in each direction: what hardly varies is noise
BIAS = 8.0  # a bias is 8 times its parameter, so that under SGD it learns 64 times as fast
FEATURE = 1 / 9  # features are scaled down, so that the output layer learns 81 times as slowly
SMALLEST = 2 * SMALLEST_IMAGE


class Whitening(nn.Module):
    """Patches of 2x2 pixels along the directions in which they vary, each scaled to variance 1, and the negatives of these.

    The filters are not learned: `fit` takes them from images, and until then they are the pixels themselves. The biases are.
    """

    filters: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        count = channels * PATCH**2
        self.register_buffer("filters", torch.cat([torch.eye(count), -torch.eye(count)]).view(-1, channels, PATCH, PATCH))
        self.bias = nn.Parameter(torch.zeros(2 * count))

    @torch.no_grad()
    def fit(self, images: Tensor) -> None:
        """Filters from the patches of images (N, C, H, W)."""
        patches = F.unfold(images.double(), PATCH).transpose(1, 2).flatten(0, 1)
        variance, direction = torch.linalg.eigh(patches.T @ patches / len(patches))
        scaled = (direction / (variance + SMALLEST_VARIANCE).sqrt()).T.flip(0)
        self.filters.copy_(torch.cat([scaled, -scaled]).view_as(self.filters))

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, 8 C, H - 1, W - 1)."""
        return F.conv2d(x, self.filters, self.bias)


class Norm(nn.Module):
    """Batch norm with a bias that learns fast, and no scale."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(width, affine=False)
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        """The shape of x."""
        return self.norm(x) + BIAS * self.bias[:, None, None]


class Stage(nn.Module):
    """conv, 2x2 max-pool, norm, gelu; then x -> gelu(x + norm(conv(gelu(norm(conv(x))))))."""

    def __init__(self, inputs: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.first = nn.Sequential(_start(conv(inputs, outputs, 3)), nn.MaxPool2d(2), Norm(outputs), nn.GELU())
        self.residual = nn.Sequential(
            _start(conv(outputs, outputs, 3)),
            Norm(outputs),
            nn.GELU(),
            nn.Dropout(dropout),
            _start(conv(outputs, outputs, 3)),
            Norm(outputs),
        )
        self.gelu = nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, outputs, H / 2, W / 2)."""
        x = self.first(x)
        return self.gelu(x + self.residual(x))


@ENCODERS.register("sprint")
class Sprint(Encoder):
    """Convolutional network made to train fast (airbench96): 1, 3 and 4 times `width` channels.

    F = 4 * width; the author's width is 128. Of his recipe the network is here: whitened 2x2 patches, convolutions that start
    as identities, biases that learn fast, features by max-pool. Dropout acts in the last stage, between the convolutions.

    Args:
        width: channels of the first stage.
        shape: (channels, height, width) of an image, from 16x16 on.
        dropout: probability.
        mirror: in eval mode, features are the mean of an image's and its mirror image's. For photographs, not for digits.

    >>> Sprint(width=128).out_features
    512
    """

    pattern, kinds = "sprint-<width>", ("image",)

    def __init__(
        self, width: int = 128, shape: tuple[int, ...] = (3, 32, 32), dropout: float = 0.0, mirror: bool = False
    ) -> None:
        super().__init__()
        check_count("sprint width", width, 1)
        channels, *size = check_shape("image", shape)
        if min(size) < SMALLEST:
            raise ValueError(f"sprint takes images from {SMALLEST}x{SMALLEST} on; got {size[0]}x{size[1]}: use 'lenet'")
        if not isinstance(mirror, bool):
            raise ValueError(f"sprint mirror must be true or false; got {mirror!r}")
        check_dropout(dropout)
        self.mirror = mirror
        self.whitening = Whitening(channels)
        widths = [2 * channels * PATCH**2, width, 3 * width, 4 * width]
        drops = (0.0, 0.0, dropout)
        stages = [Stage(*pair, drop) for pair, drop in zip(pairwise(widths), drops, strict=True)]
        self.stages = nn.Sequential(nn.GELU(), *stages)
        self.out_features = 4 * width

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, F)."""
        if self.mirror and not self.training:
            return (self._features(x) + self._features(x.flip(-1))) / 2
        return self._features(x)

    def _features(self, x: Tensor) -> Tensor:
        return self.stages(self.whitening(x)).amax((2, 3)) * FEATURE

    def look_at(self, inputs: Tensor) -> None:
        """Whiten as these images ask for."""
        self.whitening.fit(inputs)

    @classmethod
    def arguments(cls, numbers: tuple[int, ...], shape: tuple[int, ...]) -> dict[str, Any]:
        """Width from the name, the rest from the images."""
        return {"width": numbers[0], "shape": shape}


def _start(convolution: nn.Conv2d) -> nn.Conv2d:
    """The first of its channels pass the input on."""
    with torch.no_grad():
        nn.init.dirac_(convolution.weight[: convolution.in_channels])
    return convolution
