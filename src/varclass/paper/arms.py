"""The models that are compared: what each is called, and what makes it differ from the others."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from varclass.core.options import check_choice
from varclass.paper.settings import CHOSEN


@dataclass(frozen=True)
class Arm:
    """One of the compared models: settings of its run by dotted name, and the method of its rows (see `evaluation.clean`)."""

    label: str
    changes: Mapping[str, Any]
    method: str = "raw"
    options: Mapping[str, Any] = field(default_factory=dict)  # of its evaluation


# The released code's form, and the paper's comparison on a sphere.
BESIDE = {
    "authors": Arm("VC, released code", {"head.objective": "authors", "head.preset": "authors"}),
    "vmf": Arm("vMF", {"head.objective": "ce", "head.prior": "vmf"}),
}


def make_grid() -> dict[str, Arm]:
    """Every setting that is tried on validation data: where means start for CE, beta and the rates of theta and psi too.

    Of the released code's form and of vMF the rate of theta alone: the rest is as released, or open to nobody.
    """
    found = {
        f"ce:{separation:.2g}": Arm(f"CE, means from {separation:.2g}", {"head.objective": "ce", "head.separation": separation})
        for separation in (3**-0.5, 4.0)
    }
    for arm, beta in itertools.product(("gm", "vc"), (0.001, 0.01, 0.1, 1.0)):
        points = [(1.0, {}), (4.0, {}), (1.0, {"theta": 0.1}), (4.0, {"theta": 0.1}), (4.0, {"theta": 0.01})]
        if arm == "vc" and beta in (0.01, 0.1):
            points += [(1.0, {"psi": 0.1}), (1.0, {"psi": 10.0})]
        for separation, rates in points:
            named = "".join(f", {group} x {rate:g}" for group, rate in rates.items())
            head = {"head.objective": arm, "head.beta": beta, "head.separation": separation}
            label = f"{arm.upper()}, beta {beta:g}, means from {separation:g}{named}"
            name = f"{arm}:{beta:g}:{separation:g}" + "".join(f":{group}x{rate:g}" for group, rate in rates.items())
            found[name] = Arm(label, head | {"training.lr_multipliers": rates})
    for arm, rate in itertools.product(("vmf", "authors"), (1.0, 0.1, 0.01)):
        slower = dict(BESIDE[arm].changes) | {"training.lr_multipliers": {"theta": rate}}
        found[f"{arm}:thetax{rate:g}"] = Arm(f"{BESIDE[arm].label}, theta x {rate:g}", slower)
    for shared in ("0.3/D", "1/D", "3/D", "10/D"):
        found[f"pull:{shared}"] = Arm(f"pull, beta {shared}", {"head.objective": "pull", "head.beta": shared})
    return found


GRID = make_grid()
# nn.Linear and cross-entropy, exactly: with learned means the bias would be tied to them. So far apart, log p(z) is the usual
# energy score, logsumexp of the logits, but for a constant.
SOFTMAX = {"head.objective": "ce", "head.means": "axes", "head.separation": 100.0}
ARMS: dict[str, Arm] = {
    "ce": Arm("CE", SOFTMAX),
    "gm": Arm("GM", {"head.objective": "gm"}),
    "vc": Arm("VC", {"head.objective": "vc"}),  # Algorithm 1
    **BESIDE,
    "pull": Arm("default", {"head.objective": "pull"}),  # the library's recommended head
    "ce-settled": Arm("CE, settled", SOFTMAX | {"head.separation": "auto"}),  # softmax, by all that settles the default
    "smoothing": Arm("CE, label smoothing", SOFTMAX | {"training.label_smoothing": 0.05}),
    "ce-means": Arm("CE", {"head.objective": "ce"}),  # where z is looked at: the same posterior in the encoder's own space
    "gaussian-ce": Arm(
        "Gaussian CE",
        {
            "head.objective": "ce",
            "head.covariance": "diagonal",
            "head.separation": 4.0,
            "training.lr_multipliers": {"theta": 0.01},
        },
    ),
    "mc-dropout": Arm("MC-dropout", SOFTMAX | {"encoder.dropout": 0.2}, "mc-dropout", {"passes": 10}),
    **GRID,
}
COMPARED = tuple(name for name in ARMS if name not in GRID)


def settings_of(arm: str, data: str, encoder: str = "", size: int | None = None) -> dict[str, Any]:
    """What makes a run this arm: its own changes, and what validation data chose on this data where the paper is silent."""
    check_choice("arm", arm, ARMS)
    chosen = next((CHOSEN[key] for key in (f"{data}/{size}", f"{data}/{encoder}", data) if key in CHOSEN), {})
    return dict(ARMS[arm].changes) | dict(ARMS[chosen[arm]].changes if arm in chosen else {})
