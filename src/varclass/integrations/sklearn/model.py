"""The model behind the estimator: standardized inputs, an encoder, a head."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from varclass.classifier import Classifier
from varclass.core.head import VariationalHead
from varclass.core.presets import where_means_lie
from varclass.encoders.imported import count_features
from varclass.encoders.small import dense
from varclass.encoders.standardize import Standardize

SMALLEST_LATENT = 16

EncoderChoice = nn.Module | Callable[[int], nn.Module] | None


def build_model(
    encoder: EncoderChoice,
    x: Tensor,
    num_classes: int,
    *,
    hidden: tuple[int, ...],
    latent_dim: int | None,
    dropout: float,
    head_options: Mapping[str, Any],
) -> Classifier:
    """An encoder of inputs like x (a few rows) and a head for its features, in x's dtype and on its device."""
    if encoder is None:
        # class means can be equidistant from C - 1 dimensions on
        features = max(SMALLEST_LATENT, num_classes - 1) if latent_dim is None else latent_dim
        layers = dense(x.shape[1], hidden, features, dropout)
        if latent_dim is not None and where_means_lie(head_options) == "axes":
            # a head with nothing named would take these features to C dimensions: it must know that D was named
            made: nn.Module = nn.Sequential(*layers[:-1])
            head = VariationalHead((x.shape[1], *hidden)[-1], num_classes, latent_dim=latent_dim, **head_options)
        else:
            made = nn.Sequential(*layers)
            head = VariationalHead(features, num_classes, **head_options)
    else:
        made = _own_encoder(encoder, x.shape[1]).to(x)
        features = count_features(made, x, type(made).__name__)
        head = VariationalHead(features, num_classes, latent_dim=latent_dim, **head_options)
    return Classifier(made, head).to(x)


def _own_encoder(encoder: Any, features: int) -> nn.Module:
    """A copy of the user's module, or what his function makes of the number of features."""
    if isinstance(encoder, nn.Module):
        return copy.deepcopy(encoder)
    expected = "encoder must be None, an nn.Module, or a function from the number of features to one"
    if not callable(encoder):
        raise TypeError(f"{expected}; got {encoder!r:.60}")
    made = encoder(features)
    if not isinstance(made, nn.Module):
        raise TypeError(f"{expected}; it returned {type(made).__name__}")
    return made


def fit_standardize(x: np.ndarray, weight: np.ndarray) -> Standardize:
    """(x - mean) / std with the weighted moments of x, in x's own precision."""
    scaler = StandardScaler().fit(x, sample_weight=weight)
    layer = Standardize(scaler.mean_, scaler.scale_)
    # Standardize holds float32; a float64 input far from zero needs all the digits of its mean.
    layer.mean, layer.std = (torch.as_tensor(value.astype(x.dtype)) for value in (scaler.mean_, scaler.scale_))
    return layer


def set_label_prior(model: Classifier, probs: Any) -> None:
    """p(y) of the head from here on; every weight stays the same tensor, so an optimizer of them stays valid."""
    model.head = model.head.with_label_prior(torch.as_tensor(np.asarray(probs, dtype=np.float64)))
