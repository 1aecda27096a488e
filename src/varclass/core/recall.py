"""The options a head was built with, read back from it: for a file that must rebuild it, or another of its kind."""

from __future__ import annotations

from typing import Any

from torch import nn

from varclass.core.axes import AxesPrior
from varclass.core.consistency import AUTO
from varclass.core.head import VariationalHead
from varclass.core.objectives import OBJECTIVES, Objective
from varclass.core.options import Registry
from varclass.core.posterior import POSTERIORS
from varclass.core.priors import PRIORS
from varclass.core.ratio import RATIOS


def options_of(head: VariationalHead) -> dict[str, Any]:
    """Options of `VariationalHead` that give a head with the same objective and the same state dict's names and shapes.

    Names and numbers, so JSON can hold them; only an objective with weights of its own stays the `Objective` it is. A
    label prior that is not learned is "uniform" here: its values are in the state dict.

    >>> found = options_of(VariationalHead(8, 3, objective="gm", beta=0.5))
    >>> found["objective"], found["beta"], found["covariance"], found["label_prior"]
    ('gm', 0.5, 'diagonal', 'learned')
    """
    prior, weight = head.class_prior, head.class_weight
    return {
        **_objective_options(head),
        "samples": head.samples,
        "latent_dim": None if isinstance(head.projection, nn.Identity) or prior.means == "axes" else head.latent_dim,
        "prior": "gaussian" if isinstance(prior, AxesPrior) else _name_of(PRIORS, prior),
        "covariance": prior.covariance,
        "means": prior.means,
        "separation": AUTO if head.settles else prior.separation,
        "ratio": _name_of(RATIOS, head.ratio) if head.objective.uses_ratio else None,
        "label_prior": "learned" if head.label_prior.learned else "uniform",
        "posterior": _name_of(POSTERIORS, head.posterior),
        "preset": head.preset,
        "draws": head.draws,
        "posterior_moves_pi": head.posterior_moves_pi,
        "class_weight": None if weight is None else weight.tolist(),
        "ignore_index": head.ignore_index,
        "class_chunk": head.class_chunk,
    }


def _objective_options(head: VariationalHead) -> dict[str, Any]:
    objective = head.objective
    name, beta = _name_of(OBJECTIVES, objective), getattr(objective, "beta", None)
    again: Objective = OBJECTIVES[name].with_beta(1.0 if beta is None else beta)
    if vars(again) != vars(objective):
        return {"objective": objective, "beta": None}
    return {"objective": name, "beta": head.named_beta}


def _name_of(registry: Registry, value: object) -> str:
    """The name under which the value's class is registered."""
    for name, kind in registry.items():
        if type(value) is kind:
            return name
    raise ValueError(f"{registry.option} must be of a registered class to be rebuilt by name; got {type(value).__name__}")
