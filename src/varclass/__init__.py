"""varclass: neural classifiers that state how their latents are distributed, and are honest about what they know."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from varclass.classifier import Classifier as Classifier
    from varclass.classifier import from_model as from_model
    from varclass.core.anticipation import anticipate as anticipate
    from varclass.core.anticipation import width_for as width_for
    from varclass.core.head import VariationalHead as VariationalHead
    from varclass.core.label_prior import LabelPrior as LabelPrior
    from varclass.core.label_prior import estimate_label_prior as estimate_label_prior
    from varclass.core.objectives import CE as CE
    from varclass.core.objectives import GM as GM
    from varclass.core.objectives import VC as VC
    from varclass.core.objectives import Authors as Authors
    from varclass.core.objectives import Bottleneck as Bottleneck
    from varclass.core.objectives import Objective as Objective
    from varclass.core.objectives import Pull as Pull
    from varclass.core.objectives import Terms as Terms
    from varclass.core.priors import ClassPrior as ClassPrior
    from varclass.core.ratio import RatioEstimator as RatioEstimator
    from varclass.integrations.sklearn import VariationalClassifier as VariationalClassifier

_HOMES = {
    "VariationalHead": "core.head",
    "Classifier": "classifier",
    "from_model": "classifier",
    "anticipate": "core.anticipation",
    "width_for": "core.anticipation",
    "estimate_label_prior": "core.label_prior",
    "CE": "core.objectives",
    "GM": "core.objectives",
    "VC": "core.objectives",
    "Pull": "core.objectives",
    "Bottleneck": "core.objectives",
    "Authors": "core.objectives",
    "Objective": "core.objectives",
    "Terms": "core.objectives",
    "ClassPrior": "core.priors",
    "LabelPrior": "core.label_prior",
    "RatioEstimator": "core.ratio",
    "export": "exporting.model",  # not above: to the import contracts the package would then stand on top of its own parts
}
_EXTRAS = {"VariationalClassifier": "integrations.sklearn"}  # not for `import *`, which must not need what they need
__all__ = ["__version__", *_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `import varclass` costs next to nothing."""
    home = _HOMES.get(name) or _EXTRAS.get(name)
    if home is None:
        raise AttributeError(f"module 'varclass' has no attribute {name!r}")
    value = getattr(import_module(f"varclass.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_EXTRAS])
