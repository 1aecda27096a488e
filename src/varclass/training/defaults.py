"""What a run takes where its spec is silent, by the kind of inputs and the encoder."""

from __future__ import annotations

from dataclasses import replace

from varclass.core.consistency import AUTO, FEWEST
from varclass.training.spec import RunSpec, complete_head

ENCODER_FOR = {"image": "lenet", "vector": "mlp", "text": "text"}
SGD_ENCODERS = ("wrn-", "resnet-", "sprint-")  # trained as their papers do
RATES = {"sgd": (0.1, 5e-4), "adamw": (1e-3, 1e-2)}  # learning rate and weight decay
TEXT_RATE = 5e-4  # a small Transformer, from scratch
# To settle sigma by where too little is held out: models of three folds train on two thirds and are less sure than the one that
# is kept; five take most of what there is to gain (results/folds.md).
FOLDS = 5


def complete(spec: RunSpec, kind: str, held_out: int | None = None) -> RunSpec:
    """The spec with every default filled in for inputs of this kind, and checked; `held_out` samples, where that is known."""
    encoder = spec.encoder if spec.encoder.name else replace(spec.encoder, name=ENCODER_FOR[kind])
    training = spec.training
    if training.optimizer is None:
        training = replace(training, optimizer="sgd" if str(encoder.name).startswith(SGD_ENCODERS) else "adamw")
    lr, weight_decay = RATES.get(str(training.optimizer), RATES["adamw"])
    lr = TEXT_RATE if encoder.name == "text" and training.optimizer == "adamw" else lr
    training = replace(training, lr=lr if training.lr is None else training.lr)
    training = replace(training, weight_decay=weight_decay if training.weight_decay is None else training.weight_decay)
    if kind != "image" and training.augment:
        raise ValueError(f"training.augment is for images; got {training.augment[0]!r} for inputs of kind {kind!r}")
    if kind == "text" and training.mixup:
        raise ValueError(f"training.mixup is for images and vectors; got {training.mixup!r} for inputs of kind {kind!r}")
    head, data = complete_head(spec.head), spec.data
    few = not data.validation if held_out is None else held_out < FEWEST
    if data.cross_fit is None and few and not training.patience and head.separation == AUTO:
        data = replace(data, cross_fit=FOLDS)
    return replace(spec, data=data, encoder=encoder, head=head, training=training).check()
