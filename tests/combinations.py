"""Which objectives go with which priors and posteriors: what a head refuses by design, in one place for every test."""

import pytest

from varclass.core.head import OBJECTIVES
from varclass.core.priors import PRIORS, GaussianPrior


def refused(objective: str, prior: str = "gaussian", posterior: str = "gaussian") -> bool:
    """A closed-form KL is one between Gaussians: of q(z|x), which must have a width, and of p(z|y)."""
    return OBJECTIVES[objective].uses_spread and not (posterior == "gaussian" and issubclass(PRIORS[prior], GaussianPrior))


def skip_if_refused(objective: str, prior: str = "gaussian", posterior: str = "gaussian") -> None:
    if refused(objective, prior, posterior):
        pytest.skip(f"{objective} is refused with prior={prior!r} and posterior={posterior!r}, by design")


def posterior_for(objective: str) -> str:
    """The posterior an objective has unless another is named: the paper's, or the one that it needs."""
    return "gaussian" if OBJECTIVES[objective].uses_spread else "delta"
