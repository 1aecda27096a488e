"""Optimizer groups in the paper's words: phi (encoder), theta (class priors), pi (label prior), psi (ratio)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from varclass.core.options import check_choice

CHILDREN = {"phi": ("projection", "posterior"), "theta": ("class_prior",), "pi": ("label_prior",), "psi": ("ratio",)}


def make_groups(
    head: nn.Module, encoder: nn.Module | None, lr: float | None, multipliers: Mapping[str, float], decays: Mapping[str, float]
) -> list[dict[str, Any]]:
    """One dict for a torch optimizer per group that has parameters; `decays` has every group's weight decay."""
    for name in (*multipliers, *decays):
        check_choice("a parameter group", name, CHILDREN)
    groups = []
    for name, children in CHILDREN.items():
        modules = [getattr(head, child) for child in children if hasattr(head, child)]
        if name == "phi" and encoder is not None:
            modules = [encoder, *modules]
        params = [p for module in modules for p in module.parameters() if p.requires_grad]
        if params:
            multiplier = multipliers.get(name, 1.0)
            group = {"name": name, "params": params, "lr_multiplier": multiplier, "weight_decay": decays[name]}
            groups.append(group if lr is None else group | {"lr": lr * multiplier})
    return groups
