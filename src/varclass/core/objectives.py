"""The objectives of the paper as compositions of the same five terms. Which parameter a term may move is written here.

| term                                              | phi | theta | pi  | psi |
|---------------------------------------------------|-----|-------|-----|-----|
| posterior      -log p(y|z)                        | yes | yes   | no  | no  |
| label          -log p_pi(y)                       | no  | no    | yes | no  |
| prior          -log p_theta(z|y)                  | GM, authors; not VC | yes | no | no |
| ratio           T_psi(z, y), psi frozen           | yes | no    | no  | no  |
| discriminator   logistic loss of T_psi            | no  | no    | no  | yes |

"bottleneck" has KL(q(z|x) || p(z|y)) in the place of the prior term, and passes it to phi and theta.

All gradients of Algorithm 1 come out of one backward pass of one scalar, `Terms.total`. That scalar is a surrogate: its
gradient is the algorithm's, its value is not the bound L_VC. Report the terms, and stop early on validation NLL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from varclass.core.gaussian_density import LOG_2PI
from varclass.core.many_classes import chunked_log_evidence, expected_over_classes
from varclass.core.options import Registry, check_positive
from varclass.core.priors import rows
from varclass.core.targets import Target

if TYPE_CHECKING:
    from varclass.core.head import VariationalHead

OBJECTIVES = Registry("objective")


@dataclass(frozen=True)
class Terms:
    """Every term of an objective, averaged over the batch and unweighted, to be minimised; None where it has no part."""

    total: Tensor
    posterior: Tensor
    label: Tensor | None = None
    prior: Tensor | None = None
    ratio: Tensor | None = None
    discriminator: Tensor | None = None
    judged: tuple[tuple[Target, Tensor], tuple[Target, Tensor]] | None = None  # T at encoder latents and at prior samples

    def discriminator_accuracy(self) -> Tensor | None:
        """Share of latents and prior samples that T tells apart: 0.5 if it cannot, 1 if its gradient says little."""
        if self.judged is None:
            return None
        (target, t_q), (prior_target, t_p) = self.judged
        return (target.average((t_q >= 0).float()) + prior_target.average((t_p < 0).float())) / 2

    def as_dict(self) -> dict[str, float]:
        """Plain numbers for a log line; terms that have no part are left out."""
        named = {**vars(self), "judged": None, "discriminator_accuracy": self.discriminator_accuracy()}
        return {name: value.item() for name, value in named.items() if value is not None}


Drawn = tuple[Tensor, Tensor]  # labels (B,) and a latent of each class's prior (B, D): the ratio's other half


Around = tuple[Tensor, Tensor]  # mean and scale of q(z|x), (B, D) each, in the class prior's units


class Objective:
    """(head, z, target) -> Terms. `uses_ratio` and `uses_label_prior` tell the head which parameters it will train."""

    uses_ratio: ClassVar[bool] = False
    uses_label_prior: ClassVar[bool] = True
    uses_spread: ClassVar[bool] = False  # of a Gaussian q(z|x): `terms` is then given its mean and scale

    @classmethod
    def with_beta(cls, beta: float) -> Objective:
        """The objective at this beta, the weight of the KL in eq:LVC_2; one that has no such weight leaves it aside."""
        return cls()

    def terms(
        self, head: VariationalHead, z: Tensor, target: Target, drawn: Drawn | None = None, around: Around | None = None
    ) -> Terms:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v:.4g}' for k, v in vars(self).items())})"


class _Weighted(Objective):
    """An objective with eq:LVC_2's beta; the paper's value is 1."""

    def __init__(self, beta: float = 1.0) -> None:
        self.beta = check_positive("beta", beta, zero=True)

    @classmethod
    def with_beta(cls, beta: float) -> Objective:
        return cls(beta)


@OBJECTIVES.register("ce")
class CE(Objective):
    """Maximum likelihood: J_CE = E[ log p(y|z) + log p_pi(y) ]; softmax cross-entropy if the covariance is shared [eq:sce].

    Gradient: phi and theta by log p(y|z), pi by log p(y).
    """

    def terms(
        self, head: VariationalHead, z: Tensor, target: Target, drawn: Drawn | None = None, around: Around | None = None
    ) -> Terms:
        posterior, label = posterior_term(head, z, target), label_term(head, target)
        return Terms(posterior + label, posterior, label)


@OBJECTIVES.register("gm")
class GM(_Weighted):
    """Maximum a posteriori: J_GM = J_CE + beta E[ log p(z|y) ], z attached, so each latent is pulled to its class's mode.

    Gradient: as CE, and phi and theta by beta log p(z|y).
    """

    def terms(
        self, head: VariationalHead, z: Tensor, target: Target, drawn: Drawn | None = None, around: Around | None = None
    ) -> Terms:
        posterior, prior = posterior_and_prior_terms(head, z, target, pull=True)
        label = label_term(head, target)
        return Terms(posterior + label + self.beta * prior, posterior, label, prior)


@OBJECTIVES.register("pull")
class Pull(GM):
    """The recommended head's: J_CE + beta E[ log p(z|y) ] under class priors that stay where they are.

    GM's terms, and not its model: there the priors learn, here theta is fixed but for the separation that held-out data
    ask for, and every latent is pulled to its own class's Gaussian. beta = 0 is softmax. Gradient: phi; pi by log p(y).
    """


@OBJECTIVES.register("vc")
class VC(_Weighted):
    """Variational classification: J_VC = J_CE - beta E_y KL( q(z|y) || p(z|y) )  [eq:LVC_2, Algorithm 1].

    Gradient: phi by log p(y|z) and -beta T(z) with psi frozen; theta by log p(y|z) and beta log p(z|y) with z detached
    (the LaTeX of Algorithm 1 drops that log); pi by log p(y); psi by the logistic loss on detached latents.
    """

    uses_ratio = True

    def terms(
        self, head: VariationalHead, z: Tensor, target: Target, drawn: Drawn | None = None, around: Around | None = None
    ) -> Terms:
        posterior, prior = posterior_and_prior_terms(head, z, target, pull=False)
        label, ratio = label_term(head, target), ratio_term(head, z, target)
        discriminator, judged = discriminator_term(head, z.detach(), target, drawn)
        total = posterior + label + self.beta * (prior + ratio) + discriminator
        return Terms(total, posterior, label, prior, ratio, discriminator, judged)


@OBJECTIVES.register("bottleneck")
class Bottleneck(_Weighted):
    """A bound on VC's objective without an adversary: J_CE - beta E_{x,y} KL( q(z|x) || p(z|y) ), q(z|x) Gaussian.

    KL( q(z|y) || p(z|y) ) <= E_{x|y} KL( q(z|x) || p(z|y) ), and the right side is closed-form, sample by sample, whatever
    the number of classes. What lies between is I(x; z|y): this also penalises what z knows of x beyond its class, the
    conditional form of the information bottleneck, so it is not VC. It is infinite for a delta posterior. Gradient: phi
    (the posterior's scale too) and theta by both terms, pi by log p(y).
    """

    uses_spread = True

    def terms(
        self, head: VariationalHead, z: Tensor, target: Target, drawn: Drawn | None = None, around: Around | None = None
    ) -> Terms:
        assert around is not None
        posterior, label = posterior_term(head, z, target), label_term(head, target)
        prior = prior_term(head, around[0], target) + spread_term(head, around[1], target)
        return Terms(posterior + label + self.beta * prior, posterior, label, prior)


@OBJECTIVES.register("authors")
class Authors(Objective):
    """The form in the authors' released code: E[ log p(y|z) + l1 log p(z|y) - l2 T(z) ], p(y) uniform.

    It is not Algorithm 1: the prior term reaches the encoder, the two weights are free of each other, and there is no
    label prior. Their values are l1 = l2 = 0.01. Gradient: as VC, and phi by l1 log p(z|y).
    """

    uses_ratio = True
    uses_label_prior = False

    def __init__(self, l1: float = 0.01, l2: float = 0.01) -> None:
        self.l1, self.l2 = check_positive("l1", l1, zero=True), check_positive("l2", l2, zero=True)

    def terms(
        self, head: VariationalHead, z: Tensor, target: Target, drawn: Drawn | None = None, around: Around | None = None
    ) -> Terms:
        posterior, prior = posterior_and_prior_terms(head, z, target, pull=True)
        ratio = ratio_term(head, z, target)
        discriminator, judged = discriminator_term(head, z.detach(), target, drawn)
        total = posterior + self.l1 * prior + self.l2 * ratio + discriminator
        return Terms(total, posterior, None, prior, ratio, discriminator, judged)


def posterior_term(head: VariationalHead, z: Tensor, target: Target) -> Tensor:
    """-E log p(y|z), by Bayes' rule. Gradient: phi, theta; pi only if the head was told so."""
    chunk = head.chunk_for(len(z))
    if chunk is None:
        return target.cross_entropy(head.class_prior.log_prob_apart(z, head.log_label())[0])
    evidence = chunked_log_evidence(head.log_joint, z, head.num_classes, chunk)
    if target.labels is not None:
        return target.average(evidence - head.log_joint_of(z, target.labels))
    return target.average(evidence[:, None]) - expected_over_classes(head.log_joint, z, target, chunk)


def label_term(head: VariationalHead, target: Target) -> Tensor:
    """-E log p_pi(y). Gradient: pi."""
    log_probs = head.label_prior.log_probs()
    if target.labels is not None:
        return -target.average(rows(log_probs[:, None], target.labels)[:, 0])
    assert target.weight is not None
    return -target.average(log_probs.expand_as(target.weight))


def prior_term(head: VariationalHead, z: Tensor, target: Target) -> Tensor:
    """-E log p_theta(z|y). Gradient: theta; phi unless the caller detaches z."""
    if target.labels is not None:
        return -target.average(head.class_prior.log_prob_of(z, target.labels))
    return -expected_over_classes(head.class_prior.log_prob, z, target, head.chunk_for(len(z)))


def posterior_and_prior_terms(head: VariationalHead, z: Tensor, target: Target, *, pull: bool) -> tuple[Tensor, Tensor]:
    """The two terms above, the prior's reaching phi only if `pull`; from one evaluation of log p(z|y) where possible."""
    if target.labels is None or head.chunk_for(len(z)) is not None:
        return posterior_term(head, z, target), prior_term(head, z if pull else z.detach(), target)
    log_label = head.log_label()
    if pull:
        relative, common = head.class_prior.log_prob_apart(z, log_label)
        own = relative.gather(1, target.labels[:, None])[:, 0] + common
    else:
        relative, own = head.class_prior.log_prob_split(z, target.labels, log_label)
    return target.cross_entropy(relative), target.average(rows(log_label[:, None], target.labels)[:, 0] - own)


def spread_term(head: VariationalHead, scale: Tensor, target: Target) -> Tensor:
    """E KL( q(z|x) || p(z|y) ) less -E log p(mean|y): what the width of q(z|x) adds. Gradient: phi, theta."""
    own = (torch.log(scale) + 0.5 * (1 + LOG_2PI)).sum(1)
    if target.labels is not None:
        return target.average(0.5 * (scale * torch.exp(-head.class_prior.log_sigma(target.labels))).square().sum(1) - own)
    precision = torch.exp(-2 * head.class_prior.log_sigma())
    square = scale.square() if precision.shape[1] > 1 else scale.square().sum(1, keepdim=True)
    spread = square @ precision.T  # (B, C), or (B, 1) where the classes share sigma: never a (C, D) table of one number
    return target.average((0.5 * spread - own[:, None]).expand(len(scale), head.num_classes))


def ratio_term(head: VariationalHead, z: Tensor, target: Target) -> Tensor:
    """E T_psi(z, y), the estimated KL. Gradient: phi."""
    return target.average(head.ratio.frozen(z, target.labels, head.class_prior))


def discriminator_term(head: VariationalHead, z: Tensor, target: Target, drawn: Drawn | None = None) -> tuple[Tensor, Any]:
    """-E_q log sigmoid(T) - E_p log(1 - sigmoid(T)) with z' ~ p(z|y), and T itself [eq:bin_classifier]. Gradient: psi."""
    labels, samples = head.draw_from(target) if drawn is None else drawn
    prior_target = Target(labels, target.weight_per_sample())
    if target.labels is None:
        t_q, t_p = head.ratio(z, None, head.class_prior), head.ratio(samples, labels, head.class_prior)
        loss = target.average(F.softplus(-t_q)) + prior_target.average(F.softplus(t_p))
    else:  # one evaluation of T for both halves
        t_q, t_p = head.ratio(torch.stack([z, samples]), labels, head.class_prior).unbind()
        loss = target.average(F.softplus(-t_q) + F.softplus(t_p))
    return loss, ((target, t_q.detach()), (prior_target, t_p.detach()))
