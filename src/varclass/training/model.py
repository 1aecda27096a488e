"""From a complete spec and a task to a Classifier, and inputs as the tensors it takes."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import torch
from torch import Tensor, nn

from varclass.classifier import Classifier
from varclass.core.head import VariationalHead
from varclass.data.split import Split
from varclass.encoders.build import build_encoder
from varclass.encoders.contract import Encoder
from varclass.encoders.standardize import Standardize
from varclass.encoders.tokenizer import HashTokenizer
from varclass.training.spec import RunSpec
from varclass.training.task import Task

LOOKED_AT = 2000  # training inputs that an encoder may see before training


def build_model(spec: RunSpec, task: Task, train: Split | None = None, samples: int | None = None) -> Classifier:
    """The classifier of a complete spec. Without a training split its input scaling is left for a state dict to fill in.

    `samples` are those that beta="auto" gives way to: of a fold, those of the run that is kept; None: the split's, if any.
    """
    if samples is None and train is not None:
        samples = len(train)
    encoder = build_encoder(
        str(spec.encoder.name),
        kind=task.kind,
        shape=task.shape,
        dropout=spec.encoder.dropout,
        options=spec.encoder.options,
    )
    head = VariationalHead(encoder.out_features, len(task.classes), samples=samples, **asdict(spec.head))
    if task.kind == "text":
        return Classifier(encoder, head)
    if train is None:
        scaling = Standardize([0.0] * task.shape[0], [1.0] * task.shape[0])
    else:
        scaling = Standardize.fit(train.inputs, train.kind)
        if isinstance(encoder, Encoder):
            first = as_tensor(np.asarray(train.inputs[np.arange(min(LOOKED_AT, len(train)))]), task)
            encoder.look_at(scaling(model_input(first)))
    return Classifier(nn.Sequential(scaling, encoder), head)


def as_tensor(inputs: np.ndarray, task: Task) -> Tensor:
    """Inputs as they are stored for training: uint8 images channels first, float vectors, or token ids."""
    if task.kind == "text":
        return HashTokenizer(length=task.shape[0])(inputs).to(torch.int32)
    tensor = torch.from_numpy(np.require(inputs, requirements=["C", "W"]))  # read from a file it may be read-only
    return tensor.permute(0, 3, 1, 2).contiguous() if task.kind == "image" else tensor


def model_input(stored: Tensor) -> Tensor:
    """Stored inputs as the model takes them: images as floats in [0, 1], token ids as int64."""
    if stored.dtype == torch.uint8:
        return stored.float().div_(255)
    return stored.long() if stored.dtype == torch.int32 else stored
