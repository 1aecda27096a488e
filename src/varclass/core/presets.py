"""Every default of `VariationalHead`, in one table, and why. What a caller writes wins over the preset."""

from __future__ import annotations

from typing import Any

from varclass.core.options import check_choice

PER_DIMENSION = "1/D"  # beta such that the KL, a sum over D dimensions, is weighted by one per dimension on average

RECOMMENDED: dict[str, Any] = {
    "objective": "vc",  # Algorithm 1
    "beta": PER_DIMENSION,  # the paper's 1 swamps log p(y|z) at D = 512, where the KL is 512 times one dimension's
    "prior": "gaussian",  # the paper's
    "covariance": None,  # the family's own: diagonal for gaussian (the paper's), isotropic for vmf
    "means": "learned",  # the paper's; from a simplex, since random means overlap in few dimensions and barely move apart
    "separation": 4.0,  # equidistant means four sigma from their centre anticipate 99% accuracy at C = 10, 92% at C = 100
    "ratio": "linear",  # the paper's
    "label_prior": None,  # learned (the paper's); uniform where the objective has no label term
    "posterior": "delta",  # the paper's
    "lr_multipliers": {},  # every group learns at the optimizer's own rate
    "undecayed": ("theta", "pi"),  # weight decay would pull class means together and p(y) to uniform
}

PRESETS: dict[str, dict[str, Any]] = {
    # The paper's text: KL weighted by 1 whatever the dimension.
    "paper": RECOMMENDED | {"beta": 1.0},
    # The released code: its own objective (l1 = l2 = 0.01), means from N(0, 1), the head at a tenth of the encoder's
    # learning rate, weight decay on everything.
    "authors": RECOMMENDED | {"objective": "authors", "separation": None, "lr_multipliers": {"theta": 0.1}, "undecayed": ()},
}

# CE with learned Gaussian means is the softmax layer that people have, the baseline of every comparison: linear logits
# [eq:sce], rows that start as long as nn.Linear's, weight decay on them as on any weight.
SOFTMAX: dict[str, Any] = {"covariance": "unit", "separation": 3**-0.5, "undecayed": ("pi",)}


def defaults_for(preset: str | None, objective: object, prior: str | None, means: str | None) -> dict[str, Any]:
    """What is left open takes these values: the preset's, and the softmax layer's where the choices make it one.

    >>> defaults_for(None, "ce", None, None)["covariance"], defaults_for(None, "vc", None, None)["covariance"]
    ('unit', None)
    """
    if preset is not None:
        check_choice("preset", preset, PRESETS)
    default = RECOMMENDED if preset is None else PRESETS[preset]
    asked = [given or default[name] for name, given in (("objective", objective), ("prior", prior), ("means", means))]
    return default | SOFTMAX if asked == ["ce", "gaussian", "learned"] else default
