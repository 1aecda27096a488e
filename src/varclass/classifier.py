"""Classifier(encoder, head), and the way from an existing model to one."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from varclass.core.head import VariationalHead

# Where the usual libraries keep the output layer; each may be the layer itself or end in it.
USUAL_NAMES = ("fc", "classifier", "head", "heads", "classif", "last_linear", "output", "out", "score", "logits")
PROBABILITY_LAYERS = (nn.Softmax, nn.LogSoftmax, nn.Sigmoid, nn.LogSigmoid)


class Classifier(nn.Module):
    """An encoder and a head. `forward(x)` is the log joint; `forward(x, y)` is the scalar loss, computed inside forward.

    So DDP, AMP, gradient accumulation and torch.compile wrap it like any module.

    >>> model = Classifier(nn.Linear(3, 8), VariationalHead(8, 2))
    >>> model(torch.randn(4, 3)).shape
    torch.Size([4, 2])
    >>> model(torch.randn(4, 3), torch.tensor([0, 1, 1, 0])).backward()
    """

    def __init__(self, encoder: nn.Module, head: VariationalHead) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head

    def forward(self, x: Any, y: Tensor | None = None) -> Tensor:
        """log p(z, y), (B, C); given labels, the loss."""
        features = self.encoder(x)
        return self.head(features) if y is None else self.head.loss(features, y)

    def log_posterior(self, x: Any) -> Tensor:
        """log p(y|x), (B, C)."""
        return self.head.log_posterior(self.encoder(x))

    def log_evidence(self, x: Any) -> Tensor:
        """log p(z), (B,)."""
        return self.head.log_evidence(self.encoder(x))

    def latent(self, x: Any) -> Tensor:
        """z, (B, D)."""
        return self.head.latent(self.encoder(x))

    def parameter_groups(
        self,
        lr: float | None = None,
        weight_decay: float = 0.0,
        *,
        lr_multipliers: Mapping[str, float] | None = None,
        weight_decays: Mapping[str, float] | None = None,
    ) -> list[dict[str, Any]]:
        """`VariationalHead.parameter_groups` with the encoder's parameters in "phi"."""
        return self.head.parameter_groups(
            lr, weight_decay, lr_multipliers=lr_multipliers, weight_decays=weight_decays, encoder=self.encoder
        )


def from_model(model: nn.Module, layer: str | None = None, *, example: Any = None, **options: Any) -> Classifier:
    """Split a trained model at its last linear layer into a Classifier that predicts the same.

    The model given is left as it is; the encoder is a copy of it without that layer.

    Args:
        model: any torch model that ends in an `nn.Linear` (a softmax or sigmoid module after it is dropped).
        layer: the layer's dotted name, as in `model.named_modules()`, where it is not found by itself.
        example: an input on which to check that the predictions are kept; a model whose `forward` does something of
            its own after the layer is found out this way.
        options: of `VariationalHead.from_linear`, such as `label_prior` or `objective`.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"from_model takes a torch.nn.Module; got {type(model).__name__}")
    name = find_output_layer(model) if layer is None else layer
    try:
        output = model.get_submodule(name)
    except AttributeError:
        raise ValueError(f"the model has no layer {name!r}; model.named_modules() lists its names") from None
    if not isinstance(output, nn.Linear) or isinstance(output, nn.LazyLinear):
        raise ValueError(f"layer {name!r} must be an initialised nn.Linear; got {type(output).__name__}")
    head = VariationalHead.from_linear(output, **options)
    if name == "":
        encoder: nn.Module = nn.Identity()
    else:
        encoder = copy.deepcopy(model)
        encoder.set_submodule(name, nn.Identity())
        _drop_probability_layers(encoder, name)
    classifier = Classifier(encoder, head).train(model.training)
    if example is not None:
        _check_same_predictions(model, classifier, example)
    return classifier


def find_output_layer(model: nn.Module) -> str:
    """The dotted name of a model's output layer: under one of the usual names if there, else the last `nn.Linear`."""
    linear = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    if not linear:
        raise ValueError(f"{type(model).__name__} has no nn.Linear to replace; build Classifier(encoder, head) yourself")
    for usual in USUAL_NAMES:
        inside = [name for name in linear if name.split(".")[0] == usual]
        if inside:
            return inside[-1]
    return linear[-1]


def _drop_probability_layers(encoder: nn.Module, name: str) -> None:
    """In a Sequential, what follows the layer must be a softmax or sigmoid, which goes with it, or do nothing."""
    path, _, child = name.rpartition(".")
    parent = encoder.get_submodule(path)
    if not isinstance(parent, nn.Sequential):
        return
    names = list(parent._modules)
    for after in names[names.index(child) + 1 :]:
        module = parent._modules[after]
        if isinstance(module, PROBABILITY_LAYERS):
            parent._modules[after] = nn.Identity()
        elif not isinstance(module, (nn.Identity, nn.Flatten, nn.Dropout)):
            raise ValueError(f"layer {name!r} is not the last: {type(module).__name__} follows it; name the output layer")


@torch.no_grad()
def _check_same_predictions(model: nn.Module, classifier: Classifier, example: Any) -> None:
    training = model.training
    model.eval()
    classifier.eval()
    logits, log_posterior = model(example), classifier.log_posterior(example)
    model.train(training)
    classifier.train(training)
    if not isinstance(logits, Tensor) or logits.shape[:-1] != log_posterior.shape[:-1]:
        raise ValueError("the model's output is not a tensor of logits per input; build Classifier(encoder, head) yourself")
    if logits.shape[-1] == 1:
        logits = torch.cat([-logits / 2, logits / 2], dim=-1)
    error = float((torch.softmax(logits, -1) - log_posterior.exp()).abs().max())
    if not error < 1e-3:
        raise ValueError(
            f"the model does something after its output layer: predictions differ by {error:.2g}; "
            "name the layer, or build Classifier(encoder, head) yourself"
        )
