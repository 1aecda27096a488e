"""What every encoder is: a module from inputs to features (B, F), known by a name, that says which inputs it takes."""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from torch import Tensor, nn

from varclass.core.options import Registry, check_choice, check_count

ENCODERS = Registry("encoder")
SHAPES = {"image": "(channels, height, width)", "vector": "(features,)", "text": "(tokens,)"}  # of one input, by kind
SMALLEST_IMAGE = 8


class Encoder(nn.Module):
    """f_omega: x -> features (B, F) with F = `out_features`. It has no output layer: the head is one.

    A new encoder is one class, registered under the first word of its name; the numbers after that are read by
    `arguments`. Dropout never acts on the features themselves: they are the latents, and zeros put into them would be
    part of the distribution that a head matches to its class priors. It is an `nn.Dropout` each time, so that Monte-Carlo
    dropout can switch it on by itself.
    """

    pattern: ClassVar[str]  # how the name is written: "wrn-<depth>-<width>"
    kinds: ClassVar[tuple[str, ...]]  # of inputs: "image", "vector", "text"
    out_features: int

    def look_at(self, inputs: Tensor) -> None:
        """Take from some training inputs, as it will get them, what it needs before training: nothing, unless it says so."""

    @classmethod
    def arguments(cls, numbers: tuple[int, ...], shape: tuple[int, ...]) -> dict[str, Any]:
        """The constructor's arguments that follow from the numbers in the name and from the shape of one input."""
        raise NotImplementedError

    @classmethod
    def options(cls, fixed: dict[str, Any]) -> tuple[str, ...]:
        """The constructor's arguments that are left for the user to choose."""
        return tuple(name for name in inspect.signature(cls).parameters if name not in fixed and name != "dropout")


def check_dropout(value: object) -> float:
    """A probability below one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
        raise ValueError(f"dropout must be a number from 0 to below 1; got {value!r}")
    return float(value)


def check_shape(kind: object, shape: object) -> tuple[int, ...]:
    """The shape of one input of this kind, as ints."""
    check_choice("kind", kind, SHAPES)
    wanted = SHAPES[str(kind)]
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else ()
    if len(sizes) != len(wanted.strip("(,)").split(",")) or not all(type(size) is int and size > 0 for size in sizes):
        raise ValueError(f"the shape of one {kind} must be {wanted}, whole numbers above 0; got {shape!r}")
    return sizes


def check_widths(option: str, value: object) -> tuple[int, ...]:
    """One or more layer widths."""
    if not isinstance(value, (tuple, list)) or not value:
        raise ValueError(f"{option} must be a list of layer widths such as [256, 256]; got {value!r}")
    return tuple(check_count(f"each of {option}", width, 1) for width in value)
