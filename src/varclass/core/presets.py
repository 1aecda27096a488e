"""Every default of `VariationalHead`, in one table, and why. What a caller writes wins over the preset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from varclass.core.options import check_choice, check_positive

PER_DIMENSION = "1/D"  # beta such that the KL, a sum over D dimensions, is weighted by one per dimension on average
SHARED_OUT = "/D"  # what ends a beta that is shared out among the dimensions
AUTO = "auto"  # a pull that gives way to data: see `beta_at`
STRONGEST = 0.5  # what "auto" is at most, from two to four classes
SHARED_TWICE = 10  # over D^2: what "auto" is beyond, 1/D for ten classes; this and the next fitted by eye to results/default.md
ENOUGH = 100  # samples a class from which on the pull gives way; to results/weight.md too
UNKNOWN = 1000  # samples a class where nobody says: a hundredth of 1/D, all but softmax

# What the paper's model takes where it is silent, or where its value does not carry over to every dimension.
PAPER: dict[str, Any] = {
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

# The head of a user who names nothing: a softmax layer as it is, and a pull of its outputs to where held-out data say they
# belong. Chosen on validation data; docs/equations.md explains it, results/default.md has what was tried.
RECOMMENDED: dict[str, Any] = PAPER | {
    "objective": "pull",
    "beta": AUTO,  # a pull is right from few samples, and costs accuracy or NLL on CIFAR's thousands a class
    "covariance": "unit",
    "means": "axes",  # p(y|z) is the softmax of a linear layer, whatever else is set: with beta = 0 this is softmax
    "separation": "auto",
}
# The same geometry, with the posterior that the bound needs.
BOTTLENECK = RECOMMENDED | {"objective": "bottleneck", "posterior": "gaussian"}
OWN = ("objective", "prior", "covariance", "means", "posterior")  # what makes a head this one; any other value is the paper's

PRESETS: dict[str, dict[str, Any]] = {
    "recommended": RECOMMENDED,
    # The paper's text: KL weighted by 1 whatever the dimension.
    "paper": PAPER | {"beta": 1.0},
    # The released code: its own objective (l1 = l2 = 0.01), means from N(0, 1), the head at a tenth of the encoder's
    # learning rate, weight decay on everything.
    "authors": PAPER | {"objective": "authors", "separation": None, "lr_multipliers": {"theta": 0.1}, "undecayed": ()},
}

# CE with learned Gaussian means is the softmax layer that people have, the baseline of every comparison: linear logits
# [eq:sce], rows that start as long as nn.Linear's, weight decay on them as on any weight.
SOFTMAX: dict[str, Any] = {"covariance": "unit", "separation": 3**-0.5, "undecayed": ("pi",)}


def check_beta(option: str, beta: float | str, objective: str | None) -> None:
    """A number from 0 on, one such number per dimension, as in "1/D", or for the pull "auto"."""
    if not isinstance(beta, str):
        check_positive(option, beta, zero=True)
        return
    if beta == AUTO:
        if objective != "pull":
            raise ValueError(
                f"{option}='auto' is for the objective 'pull': write '1/D' or nothing for others; got {objective!r}"
            )
        return
    number = beta.removesuffix(SHARED_OUT)
    if number == beta or not number.replace(".", "", 1).isdecimal():
        raise ValueError(f"{option} must be a finite number >= 0, 'auto', or a text such as '1/D'; got {beta!r}")


def beta_at(beta: float | str, latent_dim: int, per_class: float = UNKNOWN) -> float:
    """The weight that beta is in D dimensions; "auto" with n samples a class is min(1/2, 10 / D^2) min(1, (100 / n)^2).

    So the pull on a class's latents, a sum over its samples, fades once there are enough: the data outweigh it.

    >>> beta_at("3/D", 12), beta_at(0.5, 12), beta_at("auto", 10, 50), beta_at("auto", 10, 200), beta_at("auto", 2, 50)
    (0.25, 0.5, 0.1, 0.025, 0.5)
    """
    if beta == AUTO:
        return min(STRONGEST, SHARED_TWICE / latent_dim**2) * min(1.0, (ENOUGH / per_class) ** 2)
    return float(beta.removesuffix(SHARED_OUT)) / latent_dim if isinstance(beta, str) else float(beta)


def defaults_for(preset: str | None, **named: Any) -> dict[str, Any]:
    """What is left open takes these values: the recommended head's, unless what is named is none of its own; then the paper's.

    So `VariationalHead(512, 10)` is the recommended head, and naming an objective, a latent dimension or a geometry of the
    paper's asks for the paper's model in all the rest, or for a softmax layer where the choices make it one.

    >>> [defaults_for(None, objective=given)["means"] for given in (None, "pull", "vc", "ce")]
    ['axes', 'axes', 'learned', 'learned']
    >>> [defaults_for("recommended", objective=given)["beta"] for given in (None, "bottleneck")]
    ['auto', '1/D']
    """
    if preset is not None:
        check_choice("preset", preset, PRESETS)
        default = PRESETS[preset]
    else:
        own = all(named.get(name) in (None, RECOMMENDED[name]) for name in OWN)
        own = own and named.get("latent_dim") is None and named.get("ratio") is None
        default = RECOMMENDED if own else PAPER
    asked = [named.get(name) or default[name] for name in ("objective", "prior", "means")]
    if default is PAPER and asked[0] in ("pull", "bottleneck"):  # its objective, with something else of another geometry
        default = _around(RECOMMENDED if asked[0] == "pull" else BOTTLENECK, named)
    if default["beta"] in (AUTO, PER_DIMENSION):
        default = default | {"beta": AUTO if asked[0] == "pull" else PER_DIMENSION}
    if asked[0] == "bottleneck":  # whatever preset it is asked for beside
        default = default | {"posterior": BOTTLENECK["posterior"]}
    return default | SOFTMAX if asked == ["ce", "gaussian", "learned"] else default


def where_means_lie(options: Mapping[str, Any]) -> str:
    """The `means` of a head with these options, whether named or left open.

    >>> where_means_lie({}), where_means_lie({"latent_dim": 8}), where_means_lie({"objective": "vc", "means": "axes"})
    ('axes', 'learned', 'axes')
    """
    named = {name: options.get(name) for name in (*OWN, "latent_dim", "ratio")}
    return named["means"] or defaults_for(options.get("preset"), **named)["means"]


def _around(wanted: dict[str, Any], named: dict[str, Any]) -> dict[str, Any]:
    """The recommended geometry as far as what is named allows: equidistant means in D dimensions, or the paper's means."""
    if named.get("means") in (None, "axes") and named.get("latent_dim") is None and named.get("covariance") in (None, "unit"):
        return wanted if named.get("prior") in (None, "gaussian") else PAPER | {"objective": wanted["objective"]}
    if named.get("means") == "learned" or named.get("prior") not in (None, "gaussian"):
        return PAPER | {"objective": wanted["objective"], "posterior": wanted["posterior"]}
    return wanted | {"means": "simplex"}
