"""What every objective promises, with every prior, ratio and posterior, on hard labels and soft ones."""

import itertools

import pytest
import torch
from tests.combinations import posterior_for, skip_if_refused
from torch.nn import functional as F

from varclass import Terms, VariationalHead
from varclass.core.head import OBJECTIVES, POSTERIORS, PRIORS, RATIOS

B, C, D, FEATURES = 8, 3, 4, 5
EVERYTHING = list(itertools.product(OBJECTIVES, PRIORS, RATIOS, POSTERIORS))
TERMS = ("total", "posterior", "label", "prior", "ratio", "discriminator")
every_head = pytest.mark.parametrize(("objective", "prior", "ratio", "posterior"), EVERYTHING)


def make(objective: str, prior: str, ratio: str, posterior: str) -> VariationalHead:
    """A head whose every parameter has moved, and whose prior samples depend on the label alone."""
    skip_if_refused(objective, prior, posterior)
    torch.manual_seed(0)
    head = VariationalHead(
        FEATURES, C, latent_dim=D, objective=objective, beta=None if objective == "authors" else 0.7, prior=prior,
        ratio=ratio, posterior=posterior,
    ).double()  # fmt: skip
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    table = head.class_prior.sample(torch.arange(C))
    head.class_prior.sample = lambda y: table[y]
    return head


def numbers(terms: Terms) -> dict[str, float]:
    return {name: value for name, value in terms.as_dict().items() if name in TERMS}


def batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(B, FEATURES, dtype=torch.float64, generator=generator)
    soft = torch.rand(B, C, dtype=torch.float64, generator=generator)
    return features, torch.randint(C, (B,), generator=generator), soft / soft.sum(1, keepdim=True)


@every_head
@pytest.mark.parametrize("labels", ["hard", "soft"])
def test_every_trainable_parameter_and_the_features_get_a_gradient(objective, prior, ratio, posterior, labels):
    head = make(objective, prior, ratio, posterior)
    features, hard, soft = batch()
    features.requires_grad_()
    head.loss(features, hard if labels == "hard" else soft).backward()
    missing = [name for name, parameter in head.named_parameters() if parameter.grad is None]
    assert missing == []
    still = [name for name, parameter in head.named_parameters() if not bool((parameter.grad != 0).any())]
    assert still == []
    assert bool((features.grad != 0).any())


@every_head
def test_a_ratio_exists_only_if_the_objective_uses_it(objective, prior, ratio, posterior):
    head = make(objective, prior, ratio, posterior)
    assert hasattr(head, "ratio") == OBJECTIVES[objective].uses_ratio
    assert ("psi" in [group["name"] for group in head.parameter_groups(lr=0.1)]) == OBJECTIVES[objective].uses_ratio
    if OBJECTIVES[objective].uses_ratio:
        assert type(head.ratio) is RATIOS[ratio]


@every_head
def test_soft_labels_that_are_one_hot_give_the_terms_of_hard_labels(objective, prior, ratio, posterior):
    head = make(objective, prior, ratio, posterior)
    features, hard, _ = batch()
    torch.manual_seed(2)
    expected = numbers(head.terms(features, hard))
    torch.manual_seed(2)
    assert numbers(head.terms(features, F.one_hot(hard, C).double())) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("objective", "prior", "ratio"), list(itertools.product(OBJECTIVES, PRIORS, RATIOS)))
def test_soft_labels_give_the_expectation_of_every_term_over_the_label(objective, prior, ratio):
    """Prior samples draw y from them, so the discriminator's second half is an expectation only in the mean; left out."""
    head = make(objective, prior, ratio, posterior_for(objective))
    head.posterior.sample = lambda features, mean: mean + (0.3 * head.posterior.scale(features) if stochastic else 0)
    stochastic = head.posterior.stochastic
    features, _, soft = batch()
    got = head.terms(features, soft)
    one_each = [[head.terms(features[i : i + 1], torch.tensor([k])) for k in range(C)] for i in range(B)]
    for name in ("posterior", "label", "prior", "ratio"):
        value = getattr(got, name)
        if value is not None:
            table = torch.stack([torch.stack([getattr(terms, name) for terms in row]) for row in one_each])
            torch.testing.assert_close(value, (soft * table).sum(1).mean(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_total_is_the_weighted_sum_of_the_terms(objective):
    head = make(objective, "gaussian", "quadratic", posterior_for(objective))
    features, hard, _ = batch()
    t = head.terms(features, hard)
    expected = {
        "ce": lambda: t.posterior + t.label,
        "gm": lambda: t.posterior + t.label + 0.7 * t.prior,
        "pull": lambda: t.posterior + t.label + 0.7 * t.prior,
        "bottleneck": lambda: t.posterior + t.label + 0.7 * t.prior,
        "vc": lambda: t.posterior + t.label + 0.7 * (t.prior + t.ratio) + t.discriminator,
        "authors": lambda: t.posterior + 0.01 * (t.prior + t.ratio) + t.discriminator,
    }
    torch.testing.assert_close(t.total, expected[objective](), rtol=1e-9, atol=0)
    absent = {"ce": {"prior", "ratio"}, "vc": set(), "authors": {"label"}}.get(objective, {"ratio"})
    assert {name for name in ("posterior", "label", "prior", "ratio") if getattr(t, name) is None} == absent
    logged = t.as_dict()
    assert numbers(t) == {name: getattr(t, name).item() for name in TERMS if getattr(t, name) is not None}
    assert all(type(value) is float for value in logged.values())
    assert ("discriminator_accuracy" in logged) == OBJECTIVES[objective].uses_ratio


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("posterior", POSTERIORS)
def test_a_posterior_gives_reparameterized_latents_and_draws_around_its_mean(prior, posterior):
    head = make("ce", prior, "linear", posterior)
    features, _, _ = batch()
    features.requires_grad_()
    mean = head.projection(features)
    z = head.posterior.sample(features, mean)
    assert z.shape == (B, D)
    z.sum().backward()
    assert bool((features.grad != 0).any())
    for number in (1, 4, 5):
        draws = head.posterior.draws(features, mean, number)
        assert len(draws) == (number if head.posterior.stochastic else 1)
        assert all(draw.shape == (B, D) for draw in draws)
    antithetic = torch.stack(head.posterior.draws(features, mean, 4)).mean(0)
    torch.testing.assert_close(antithetic, mean, rtol=1e-9, atol=1e-9)


def test_a_gaussian_posterior_has_the_scale_it_states():
    torch.manual_seed(3)
    head = VariationalHead(FEATURES, C, posterior="gaussian")
    features = torch.zeros(20_000, FEATURES)
    z = head.posterior.sample(features, features)
    assert bool((head.posterior.scale(features[:1]) - 0.5).abs().max() < 1e-6)
    n = z.numel()
    z = z.detach()
    assert abs(float(z.square().mean()) - 0.25) < 5 * 0.25 * (2 / n) ** 0.5
    assert abs(float(z.mean())) < 5 * 0.5 / n**0.5


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_predictions_with_a_gaussian_posterior_average_probabilities_and_densities(objective):
    """forward = log mean p(y|z) + log mean p(z): softmax is the averaged posterior, logsumexp the averaged density."""
    head = make(objective, "gaussian", "linear", "gaussian")
    head.draws = 6
    features, _, _ = batch()
    torch.manual_seed(4)
    out = head(features)
    torch.manual_seed(4)
    joints = torch.stack([head.log_joint(z) for z in head.posterior.draws(features, head.projection(features), 6)])
    torch.testing.assert_close(torch.softmax(out, 1), torch.softmax(joints, 2).mean(0), rtol=1e-9, atol=1e-12)
    density = torch.logsumexp(joints, 2).exp().mean(0)
    torch.testing.assert_close(torch.logsumexp(out, 1).exp(), density, rtol=1e-9, atol=0)


@pytest.mark.parametrize("objective", ["vc", "authors"])
def test_the_discriminators_accuracy_is_the_share_it_tells_apart(objective):
    head = make(objective, "gaussian", "quadratic", "delta")
    features, hard, _ = batch()
    t_q = head.ratio(head.latent(features), hard, head.class_prior)
    t_p = head.ratio(head.class_prior.sample(hard), hard, head.class_prior)
    expected = (int((t_q >= 0).sum()) + int((t_p < 0).sum())) / (2 * B)
    assert head.terms(features, hard).as_dict()["discriminator_accuracy"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("soft", [False, True])
def test_a_loss_on_drawn_samples_is_the_loss_that_would_have_drawn_them(objective, soft):
    torch.manual_seed(0)
    head = VariationalHead(4, 3, objective=objective).double()
    features, y = torch.randn(6, 4, dtype=torch.float64), torch.randint(3, (6,))
    y = torch.nn.functional.one_hot(y, 3).double() * 0.7 + 0.1 if soft else y
    torch.manual_seed(1)
    expected = head.loss(features, y)
    torch.manual_seed(1)
    drawn = head.draw(y)
    assert (drawn is None) == (not head.objective.uses_ratio)
    assert torch.equal(head.loss(features, y, drawn), expected)
