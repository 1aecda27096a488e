"""Classifier(encoder, head), and the way from an existing model to one."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from varclass.core.head import VariationalHead
from varclass.core.recall import options_of

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

    def energy(self, x: Any) -> Tensor:
        """`VariationalHead.energy`, (B,)."""
        return self.head.energy(self.encoder(x))

    def latent(self, x: Any) -> Tensor:
        """z, (B, D)."""
        return self.head.latent(self.encoder(x))

    def forward_features(self, x: Any) -> Any:
        """The encoder's feature map before pooling, where it gives one, as timm's models do."""
        features = getattr(self.encoder, "forward_features", None)
        if features is None:
            raise TypeError(f"{type(self.encoder).__name__} has no forward_features; model.encoder(x) gives the features")
        return features(x)

    @property
    def pretrained_cfg(self) -> Any:
        """The encoder's, where it has one: `timm.data.resolve_model_data_config` looks for it."""
        return self.encoder.pretrained_cfg

    def reset_classifier(self, num_classes: int, **options: Any) -> None:
        """A new head for another number of classes, under timm's name for it; the encoder stays as it is.

        Options that are not given are the present head's, without what belongs to its classes: weights of classes go,
        and a label prior that is not learned becomes uniform. New data have another size: pass `samples`.
        """
        like = self.head.class_prior.log_scale
        kept = options_of(self.head) | {"class_weight": None}
        self.head = VariationalHead(self.head.in_features, num_classes, **(kept | options)).to(like).train(self.head.training)

    @torch.no_grad()
    def calibrate(self, x: Any, y: Tensor) -> float:
        """`VariationalHead.calibrate` on held-out inputs; put the model in eval mode first."""
        return self.head.calibrate(self.encoder(x), y)

    @torch.no_grad()
    def settle(self, x: Any, y: Tensor) -> float:
        """`VariationalHead.settle` on held-out inputs; put the model in eval mode first."""
        return self.head.settle(self.encoder(x), y)

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
        options: of `VariationalHead.from_linear`, such as `samples`, how many to fine-tune on, or `label_prior`.
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
    encoder: nn.Module = nn.Identity()
    last: nn.Module = nn.Identity()
    if name != "":
        encoder = copy.deepcopy(model)
        encoder.set_submodule(name, nn.Identity())
        last = _take_probability_layer(encoder, name, output.out_features)
    classifier = Classifier(encoder, head).train(model.training)
    if example is not None:
        _check_same_predictions(model, classifier, example, last)
    return classifier


def find_output_layer(model: nn.Module) -> str:
    """The dotted name of a model's output layer: the last `nn.Linear` under one of the usual names, else the last of all."""
    linear = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    if not linear:
        raise ValueError(f"{type(model).__name__} has no nn.Linear to replace; build Classifier(encoder, head) yourself")
    usual = [name for name in linear if name.split(".")[0] in USUAL_NAMES]
    return (usual or linear)[-1]


def _take_probability_layer(encoder: nn.Module, layer: str, outputs: int) -> nn.Module:
    """Take out the softmax or sigmoid that follows the layer in the Sequentials around it, and return it."""
    found: nn.Module = nn.Identity()
    path = layer
    while path:
        path, _, child = path.rpartition(".")
        parent = encoder.get_submodule(path)
        if not isinstance(parent, nn.Sequential):
            break
        children = list(parent._modules)
        for after in children[children.index(child) + 1 :]:
            module = parent._modules[after]
            if isinstance(module, PROBABILITY_LAYERS):
                found, parent._modules[after] = module, nn.Identity()
            elif not isinstance(module, (nn.Identity, nn.Flatten, nn.Dropout)):
                raise ValueError(f"layer {layer!r} is not the last: {type(module).__name__} follows it; name the output layer")
    if isinstance(found, (nn.Sigmoid, nn.LogSigmoid)) and outputs > 1:
        raise ValueError(f"Sigmoid over {outputs} outputs is multi-label; a Classifier has exclusive classes (softmax)")
    return found


@torch.no_grad()
def _check_same_predictions(model: nn.Module, classifier: Classifier, example: Any, last: nn.Module) -> None:
    training = model.training
    try:
        output, posterior = model.eval()(example), classifier.eval().log_posterior(example).exp()
    finally:
        model.train(training)
        classifier.train(training)
    if not isinstance(output, Tensor) or output.shape[:-1] != posterior.shape[:-1]:
        raise ValueError("the model's output is not a tensor of logits per input; build Classifier(encoder, head) yourself")
    if isinstance(last, (nn.LogSoftmax, nn.LogSigmoid)):
        output = output.exp()
    elif not isinstance(last, (nn.Softmax, nn.Sigmoid)):
        output = torch.softmax(output, -1) if output.shape[-1] > 1 else torch.sigmoid(output)
    error = (output - posterior[..., -output.shape[-1] :]).abs().max().item() if output.numel() else 0.0
    if not error < 1e-3:
        raise ValueError(
            f"the model does something after its output layer: predictions differ by {error:.2g}; "
            "name the layer, or build Classifier(encoder, head) yourself"
        )
