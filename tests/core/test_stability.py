"""A thousand steps of SGD at a high rate on random features and labels, with beta = 1: nothing may become NaN or run away.

The features are fixed, so psi cannot move theta: the four ratios of an objective are trained beside each other on one
theta. VC's theta and pi then follow GM's path exactly, which is asserted beside GM's own runs.
"""

import copy
import math

import pytest
import torch
from tests.combinations import skip_if_refused

from varclass import VariationalHead
from varclass.core.head import OBJECTIVES, PRIORS, RATIOS
from varclass.core.objectives import discriminator_term, ratio_term
from varclass.core.targets import Target

C, POOL, STEPS = 5, 32, 1000
CASES = [(name, covariance) for name, family in PRIORS.items() for covariance in family.covariances]


def pool(kind: str, dim: int, batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(POOL, batch, dim, generator=generator)
    relu = {"normal": torch.zeros(dim), "relu": torch.ones(dim), "half": torch.arange(dim) % 2}[kind].bool()
    return torch.where(relu, x.relu(), x), torch.randint(C, (POOL, batch), generator=generator)


def train(head: VariationalHead, others: list[VariationalHead], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Steps of SGD on a head and on the ratios of others that share its theta; the sum of all losses on the way."""
    groups = head.parameter_groups(lr=0.1)
    for other in others:
        groups += [group for group in other.parameter_groups(lr=0.1) if group["name"] == "psi"]
    optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
    history, prior = torch.zeros(()), head.class_prior
    sample = prior.sample
    for step in range(STEPS):
        z, labels = x[step % POOL], y[step % POOL]
        if others:
            drawn = sample(labels)
            prior.sample = lambda _, drawn=drawn: drawn  # one draw for all ratios
        loss = head.loss(z, labels)
        for other in others:
            target, latent = Target(labels, None), other.class_prior.support(z)
            loss = loss + discriminator_term(other, latent, target)[0]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history += loss.detach()
    prior.sample = sample
    return history


def assert_sound(head: VariationalHead, x: torch.Tensor, y: torch.Tensor) -> None:
    broken = [name for name, value in head.state_dict().items() if not bool(torch.isfinite(value).all())]
    assert broken == []
    terms = head.terms(x, y).as_dict()
    assert [name for name, value in terms.items() if not math.isfinite(value)] == []
    sigma, limit = head.class_prior.log_sigma().detach().exp(), head.class_prior.scale_limit
    assert bool(((sigma >= (1 - 1e-5) / limit) & (sigma <= limit * (1 + 1e-5))).all())
    assert 0.05 < float(sigma.median()) < 20


def assert_gm_takes_the_same_step(vc: VariationalHead, x: torch.Tensor, y: torch.Tensor) -> None:
    covariance = vc.class_prior.covariance
    gm = VariationalHead(vc.in_features, C, objective="gm", beta=1.0, prior=_name_of(vc), covariance=covariance)
    gm.load_state_dict(vc.state_dict(), strict=False)
    assert_sound(gm, x, y)
    grads = []
    for head in (copy.deepcopy(vc).double(), gm.double()):
        head.zero_grad()
        head.loss(x.double(), y).backward()
        grads.append({name: p.grad for name, p in head.named_parameters() if not name.startswith("ratio.")})
    assert set(grads[0]) == set(grads[1])
    for name, expected in grads[0].items():
        torch.testing.assert_close(grads[1][name], expected, rtol=1e-9, atol=1e-9 * float(expected.abs().max()))


def _name_of(head: VariationalHead) -> str:
    return next(name for name, family in PRIORS.items() if type(head.class_prior) is family)


def run(objective: str, prior: str, covariance: str, *, ratios: list[str], kind: str, dim: int, batch: int) -> None:
    skip_if_refused(objective, prior)
    torch.manual_seed(0)
    beta = None if objective == "authors" else 1.0
    head = VariationalHead(dim, C, objective=objective, beta=beta, prior=prior, covariance=covariance, ratio=ratios[0])
    others = []
    for ratio in ratios[1:] if head.objective.uses_ratio else []:
        other = copy.copy(head)
        other._modules = dict(head._modules) | {"ratio": RATIOS[ratio](C, dim)}
        others.append(other)
    x, y = pool(kind, dim, batch)
    history = train(head, others, x, y)
    assert math.isfinite(float(history))
    for each in (head, *others):
        assert_sound(each, x[0], y[0])
        if each.objective.uses_ratio:
            t = ratio_term(each, each.class_prior.support(x[0]), Target(y[0], None))
            assert math.isfinite(float(t.detach()))
    if objective == "vc":
        assert_gm_takes_the_same_step(head, x[0], y[0])


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("prior", "covariance"), CASES)
def test_a_thousand_steps_at_64_dimensions_with_every_ratio(objective, prior, covariance):
    """Every other feature is N(0, 1), every other one is that after a ReLU."""
    run(objective, prior, covariance, ratios=list(RATIOS), kind="half", dim=64, batch=32)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("kind", ["normal", "relu"])
def test_a_thousand_steps_at_2048_dimensions_with_the_default_ratio(objective, prior, kind):
    run(objective, prior, PRIORS[prior].covariances[0], ratios=["linear"], kind=kind, dim=2048, batch=32)
