"""Any torch module as an encoder, by its import path: "package.module:ClassName"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from varclass.encoders.contract import Encoder

PATTERN = "package.module:ClassName"


class ImportedEncoder(Encoder):
    """A user's own module, with `out_features` found by one run on an example."""

    def __init__(self, module: nn.Module, out_features: int) -> None:
        super().__init__()
        self.module, self.out_features = module, out_features

    def forward(self, x: Tensor) -> Tensor:
        """Inputs (B, ...) -> (B, F)."""
        return self.module(x)


def import_encoder(path: str, *, kind: str, shape: tuple[int, ...], dropout: float, options: Mapping[str, Any]) -> Encoder:
    """Import a class or function, call it with the options, and find the number of features of the module it returns.

    `dropout` is passed on as a keyword when it is above zero, and otherwise left out: not every module knows the word.
    """
    make = _find(path)
    given = {**options, "dropout": dropout} if dropout else dict(options)
    try:
        module = make(**given)
    except Exception as error:
        raise ValueError(f"encoder {path!r} could not be built with options {given}: {_line(error)}") from error
    if not isinstance(module, nn.Module):
        raise TypeError(f"encoder {path!r} must be an nn.Module class, or return one; it returned {type(module).__name__}")
    return ImportedEncoder(module, count_features(module, example_batch(kind, shape), path))


def example_batch(kind: str, shape: tuple[int, ...]) -> Tensor:
    """Two inputs as a model gets them: images and vectors in [0, 1], or texts of the token id 1."""
    if kind == "text":
        return torch.ones(2, *shape, dtype=torch.int64)
    return torch.linspace(0, 1, 2 * torch.Size(shape).numel()).reshape(2, *shape)


def count_features(module: nn.Module, example: Tensor, name: str) -> int:
    """F, from one run in eval mode; the random state, batch statistics and training modes stay as they were."""
    modes = {part: part.training for part in module.modules()}
    first = next(module.parameters(), None)
    device = torch.device("cpu") if first is None else first.device
    try:
        with torch.no_grad(), torch.random.fork_rng([device] if device.type == "cuda" else []):
            features = module.eval()(example.to(device))
    except Exception as error:
        raise ValueError(f"encoder {name!r} failed on inputs of shape {tuple(example.shape)}: {_line(error)}") from error
    finally:
        for part, training in modes.items():
            part.training = training
    return _check_features(features, len(example), name)


def _check_features(features: object, batch: int, name: str) -> int:
    expected = f"encoder {name!r} must return features, a floating-point tensor of shape (B, F)"
    if not isinstance(features, Tensor):
        raise TypeError(f"{expected}; got {type(features).__name__}: wrap the module to return the tensor alone")
    if features.dim() != 2 or len(features) != batch:
        cure = "end the module with a mean over places" if features.dim() == 3 else "end the module with nn.Flatten()"
        raise ValueError(f"{expected}; got {tuple(features.shape)} for B = {batch}: {cure}")
    if not features.is_floating_point():
        raise TypeError(f"{expected}; got {features.dtype}")
    return features.shape[1]


def _find(path: str) -> Callable[..., object]:
    home, _, name = path.partition(":")
    if not home or not name:
        raise ValueError(f"an imported encoder must be written {PATTERN!r}; got {path!r}")
    try:
        found: object = import_module(home)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:  # whatever the module does when it is imported
        raise ValueError(f"encoder {path!r} could not be imported: {_line(error)}") from error
    if not callable(found) or isinstance(found, nn.Module):
        raise TypeError(f"encoder {path!r} must be an nn.Module class or a function that returns one; got {found!r:.60}")
    return found


def _line(error: Exception) -> str:
    """An exception in one line."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
