"""Properties of the head: shapes, symmetries, Bayes' rule, weights, label shift and calibration."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.combinations import refused, skip_if_refused
from torch.nn import functional as F

from varclass import VariationalHead, estimate_label_prior
from varclass.core.head import OBJECTIVES, POSTERIORS, PRIORS

CASES = [(name, covariance) for name, family in PRIORS.items() for covariance in family.covariances]
TERMS = ("total", "posterior", "label", "prior", "ratio", "discriminator")
sizes = st.integers(2, 6)


def make(in_features: int, num_classes: int, *, seed: int = 0, **options) -> VariationalHead:
    """A float64 head whose every parameter has moved, whose prior samples depend on the label and latents on the features."""
    torch.manual_seed(seed)
    head = VariationalHead(in_features, num_classes, **options).double()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    table = head.class_prior.sample(torch.arange(num_classes))
    head.class_prior.sample = lambda y: table[y]
    if head.objective.uses_spread:
        head.posterior.sample = lambda features, mean: mean + 0.3 * head.posterior.scale(features)
    return head


def batch(number: int, in_features: int, num_classes: int, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(number, in_features, dtype=torch.float64, generator=generator)
    return features, torch.randint(num_classes, (number,), generator=generator)


def assert_same_terms(got, expected) -> None:
    found = [{name: value for name, value in terms.as_dict().items() if name in TERMS} for terms in (got, expected)]
    assert found[0] == pytest.approx(found[1], rel=1e-9, abs=1e-12)


# ------------------------------------------------------------------------------------------------------------- shapes


@given(
    leading=st.lists(st.integers(0, 3), min_size=0, max_size=3),
    in_features=sizes,
    num_classes=sizes,
    latent_dim=st.sampled_from([None, 2, 5]),
    kinds=st.tuples(st.sampled_from(sorted(PRIORS)), st.sampled_from(sorted(POSTERIORS))),
)
def test_leading_dimensions_are_kept_even_empty_ones(leading, in_features, num_classes, latent_dim, kinds):
    head = make(in_features, num_classes, latent_dim=latent_dim, prior=kinds[0], posterior=kinds[1])
    features = torch.randn(*leading, in_features, dtype=torch.float64)
    shape = tuple(leading)
    assert head(features).shape == (*shape, num_classes)
    assert head.log_posterior(features).shape == (*shape, num_classes)
    assert head.log_evidence(features).shape == shape
    assert head.latent(features).shape == (*shape, head.latent_dim)
    y = torch.zeros(shape, dtype=torch.long)
    assert head.sample(y).shape == (*shape, head.latent_dim)
    assert head.standardize(head.latent(features), y).shape == (*shape, head.latent_dim)
    loss = head.loss(features, y)
    assert loss.shape == ()
    assert bool(torch.isnan(loss)) == (math.prod(shape) == 0)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_extra_leading_dimensions_are_more_samples(objective):
    head = make(4, 3, objective=objective)
    features, y = batch(12, 4, 3)
    assert_same_terms(head.terms(features.reshape(2, 3, 2, 4), y.reshape(2, 3, 2)), head.terms(features, y))
    torch.manual_seed(2)
    shaped = head(features.reshape(3, 4, 4))
    torch.manual_seed(2)
    assert torch.equal(shaped, head(features).reshape(3, 4, 3))
    soft = F.one_hot(y, 3).double()
    assert_same_terms(head.terms(features.reshape(2, 6, 4), soft.reshape(2, 6, 3)), head.terms(features, soft))


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("chunk", [None, 2])
@pytest.mark.parametrize("soft", [False, True])
def test_an_empty_batch_has_a_nan_loss_as_in_cross_entropy(objective, prior, chunk, soft):
    skip_if_refused(objective, prior)
    head = make(4, 3, objective=objective, prior=prior, class_chunk=chunk)
    features, y = batch(0, 4, 3)
    loss = head.loss(features, F.one_hot(y, 3).double() if soft else y)
    assert loss.shape == ()
    assert bool(torch.isnan(loss))
    assert bool(torch.isnan(F.cross_entropy(head(features), y)))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_one_sample_is_a_batch_and_a_batch_averages_its_samples(objective):
    head = make(4, 3, objective=objective)
    features, y = batch(5, 4, 3)
    singles = [head.loss(features[i : i + 1], y[i : i + 1]) for i in range(5)]
    torch.testing.assert_close(head.loss(features, y), torch.stack(singles).mean(), rtol=1e-9, atol=0)
    torch.testing.assert_close(head.loss(features[0], y[0]), singles[0], rtol=1e-9, atol=0)


# --------------------------------------------------------------------------------------------------------- symmetries


@given(
    covariance=st.sampled_from(PRIORS["gaussian"].covariances),
    shift=st.lists(st.floats(-50, 50), min_size=4, max_size=4),
    num_classes=sizes,
)
def test_shifting_means_and_latents_alike_changes_nothing(covariance, shift, num_classes):
    head = make(4, num_classes, objective="vc", covariance=covariance)
    z, y = batch(6, 4, num_classes)
    move = torch.tensor(shift, dtype=torch.float64)
    before, before_of = head(z), head.class_prior.log_prob_of(z, y)
    head.class_prior.place(head.class_prior.mean.detach() + move, head.class_prior.log_sigma().detach().exp())
    torch.testing.assert_close(head(z + move), before, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(head.class_prior.log_prob_of(z + move, y), before_of, rtol=1e-9, atol=1e-9)


@given(case=st.sampled_from(CASES), order=st.permutations(range(5)))
def test_permuting_the_classes_permutes_the_log_joint(case, order):
    prior, covariance = case
    head = make(4, 5, objective="vc", prior=prior, covariance=covariance)
    z, _ = batch(6, 4, 5)
    before = head(z)
    with torch.no_grad():
        for tensor in (*head.class_prior.parameters(), *head.label_prior.parameters()):
            if len(tensor) == 5:
                tensor.copy_(tensor[list(order)])
    torch.testing.assert_close(head(z), before[:, list(order)], rtol=1e-9, atol=1e-9)


@given(
    case=st.sampled_from(CASES),
    posterior=st.sampled_from(sorted(POSTERIORS)),
    latent_dim=st.sampled_from([None, 3]),
)
def test_softmax_of_forward_is_the_posterior_and_logsumexp_the_evidence(case, posterior, latent_dim):
    head = make(4, 5, prior=case[0], covariance=case[1], posterior=posterior, latent_dim=latent_dim)
    features, _ = batch(6, 4, 5)
    found = []
    for method in (head, head.log_posterior, head.log_evidence):
        torch.manual_seed(2)
        found.append(method(features))
    log_joint, log_posterior, log_evidence = found
    torch.testing.assert_close(torch.softmax(log_joint, -1), log_posterior.exp(), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(log_posterior.exp().sum(-1), torch.ones(6, dtype=torch.float64), rtol=1e-9, atol=0)
    torch.testing.assert_close(log_posterior + log_evidence[:, None], log_joint, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("prior", "covariance"), CASES)
def test_the_log_joint_is_the_class_prior_plus_the_label_prior(prior, covariance):
    given_prior = torch.tensor([0.5, 0.3, 0.2])
    head = make(4, 3, prior=prior, covariance=covariance, label_prior=given_prior)
    features, y = batch(6, 4, 3)
    z = head.latent(features)
    expected = head.class_prior.log_prob(z) + given_prior.double().log()
    torch.testing.assert_close(head(features), expected, rtol=0, atol=1e-6)  # p(y) was given in float32
    torch.testing.assert_close(head.log_joint(z), head(features), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(head.log_joint_of(z, y), head(features).gather(1, y[:, None])[:, 0], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(head.log_joint(z, slice(1, 3)), head(features)[:, 1:], rtol=1e-9, atol=1e-9)


# ------------------------------------------------------------------------------------------------ weights and ignoring


@given(
    objective=st.sampled_from(sorted(OBJECTIVES)),
    ignored=st.lists(st.booleans(), min_size=9, max_size=9).filter(lambda flags: not all(flags)),
    index=st.sampled_from([-100, -1, 7, 1]),
    chunk=st.sampled_from([None, 2]),
)
def test_ignored_labels_are_as_if_their_rows_were_not_there(objective, ignored, index, chunk):
    head = make(4, 3, objective=objective, ignore_index=index, class_chunk=chunk)
    features, y = batch(9, 4, 3)
    y = torch.where(y == index, 0, y)
    gone = torch.tensor(ignored)
    got = head.terms(features, torch.where(gone, index, y))
    assert_same_terms(got, head.terms(features[~gone], y[~gone]))


def test_what_ignored_rows_hold_does_not_reach_a_gradient():
    head = make(4, 3, objective="vc")
    features, y = batch(6, 4, 3)
    y[2] = -100
    spoiled = features.clone()
    spoiled[2] = 1e6
    grads = []
    for x in (features, spoiled):
        head.zero_grad()
        head.loss(x, y).backward()
        grads.append([parameter.grad.clone() for parameter in head.parameters()])
    for got, expected in zip(*grads, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)


def test_a_batch_in_which_every_label_is_ignored_has_a_nan_loss_as_in_cross_entropy():
    head = make(4, 3)
    features, y = batch(3, 4, 3)
    assert bool(torch.isnan(head.loss(features, torch.full_like(y, -100))))


@pytest.mark.parametrize("label_prior", ["learned", "uniform"])
def test_class_weights_under_ce_and_shared_covariance_are_those_of_cross_entropy(label_prior):
    weight = torch.tensor([0.5, 2.0, 1.25], dtype=torch.float64)
    head = make(4, 3, objective="ce", covariance="shared", class_weight=weight, label_prior=label_prior)
    features, y = batch(10, 4, 3)
    log_label = head.label_prior.log_probs()[y]
    label_term = -(weight[y] * log_label).sum() / weight[y].sum()
    expected = F.cross_entropy(head.as_linear()(features), y, weight=weight) + label_term
    torch.testing.assert_close(head.loss(features, y), expected, rtol=1e-9, atol=0)


@given(
    kinds=st.tuples(st.sampled_from(sorted(OBJECTIVES)), st.sampled_from(sorted(PRIORS))).filter(lambda k: not refused(*k)),
    counts=st.lists(st.integers(0, 3), min_size=3, max_size=3).filter(lambda counts: all(counts[:2])),
    chunk=st.sampled_from([None, 2]),
)
def test_whole_class_weights_are_repeated_samples_in_every_term(kinds, counts, chunk):
    """A weight of zero drops the class, so this also holds that weights touch all terms alike."""
    objective, prior = kinds
    weighted = make(4, 3, objective=objective, prior=prior, class_chunk=chunk, class_weight=torch.tensor(counts))
    plain = make(4, 3, objective=objective, prior=prior, class_chunk=chunk)
    features, y = batch(9, 4, 3)
    times = torch.tensor(counts)[y]
    got = weighted.terms(features, y)
    assert_same_terms(got, plain.terms(features.repeat_interleave(times, 0), y.repeat_interleave(times)))


@pytest.mark.parametrize("soft", [False, True])
def test_class_weights_touch_every_term(soft):
    features, y = batch(12, 4, 3)
    target = F.one_hot(y, 3).double() if soft else y
    plain = make(4, 3, objective="vc").terms(features, target).as_dict()
    weighted = make(4, 3, objective="vc", class_weight=torch.tensor([1.0, 3.0, 0.5])).terms(features, target).as_dict()
    assert all(abs(plain[name] - weighted[name]) > 1e-3 * abs(plain[name]) for name in TERMS)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_class_weights_act_on_soft_labels_that_are_one_hot_as_on_hard_ones(objective):
    head = make(4, 3, objective=objective, class_weight=torch.tensor([1.0, 3.0, 0.5]))
    features, y = batch(12, 4, 3)
    assert_same_terms(head.terms(features, F.one_hot(y, 3).double()), head.terms(features, y))


@pytest.mark.parametrize("options", [{}, {"class_chunk": 2}, {"class_weight": torch.tensor([1.0, 3.0, 0.5])}])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_whole_sample_weights_are_repeated_samples_in_every_term(objective, soft, options):
    """A weight of zero drops the sample; class weights act beside sample weights."""
    head = make(4, 3, objective=objective, **options)
    features, y = batch(9, 4, 3)
    target = F.one_hot(y, 3).double() if soft else y
    times = torch.tensor([0, 1, 2, 3, 1, 0, 2, 1, 4])
    got = head.terms(features, target, sample_weight=times)
    assert_same_terms(got, head.terms(features.repeat_interleave(times, 0), target.repeat_interleave(times, 0)))


def test_sample_weights_have_the_shape_of_the_batch_and_their_scale_is_of_no_account():
    head = make(4, 3, objective="gm")
    features, y = batch(12, 4, 3)
    weight = torch.rand(12, dtype=torch.float64)
    flat = head.terms(features, y, sample_weight=weight)
    shaped = head.terms(features.reshape(3, 4, 4), y.reshape(3, 4), sample_weight=10 * weight.reshape(3, 4))
    assert_same_terms(shaped, flat)


@pytest.mark.parametrize("chunk", [None, 1, 2])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("objective", ["ce", "gm", "vc"])
def test_a_class_of_probability_zero_leaves_loss_and_gradients_finite(chunk, soft, objective):
    head = make(4, 3, objective=objective, label_prior=torch.tensor([0.5, 0.5, 0.0]), class_chunk=chunk)
    features, _ = batch(6, 4, 3)
    y = torch.tensor([0, 1, 0, 1, 0, 1])
    loss = head.loss(features, F.one_hot(y, 3).double() if soft else y)
    loss.backward()
    assert math.isfinite(loss.item())
    assert all(bool(torch.isfinite(parameter.grad).all()) for parameter in head.parameters())
    assert bool((head.log_posterior(features)[:, 2].exp() == 0).all())


# --------------------------------------------------------------------------------------------- label shift, calibration


@given(
    odds=st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3),
    prior=st.sampled_from(sorted(PRIORS)),
    kind=st.sampled_from(["learned", "uniform"]),
)
def test_a_new_label_prior_is_bayes_reweighting_and_leaves_the_head_alone(odds, prior, kind):
    head = make(4, 3, prior=prior, label_prior=kind)
    features, _ = batch(6, 4, 3)
    new = torch.tensor(odds, dtype=torch.float64)
    new = new / new.sum()
    before, old = head.log_posterior(features), head.label_prior.probs()
    state = {name: value.clone() for name, value in head.state_dict().items()}
    shifted = head.with_label_prior(new)
    reweighted = before.exp() * new / old
    expected = reweighted / reweighted.sum(1, keepdim=True)
    torch.testing.assert_close(shifted.log_posterior(features).exp(), expected, rtol=1e-5, atol=0)  # p(y) kept in float32
    assert shifted.label_prior is not head.label_prior
    assert shifted.class_prior is head.class_prior
    assert torch.equal(head.log_posterior(features), before)
    assert list(head.state_dict()) == list(state)
    assert all(torch.equal(head.state_dict()[name], value) for name, value in state.items())


def test_label_shift_estimated_from_unlabelled_samples_is_the_shift_they_were_drawn_with():
    torch.manual_seed(3)
    head = VariationalHead(4, 3, objective="vc", label_prior="uniform", separation=2.0).double()
    true = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)
    y = torch.multinomial(true, 4000, replacement=True)
    features = head.sample(y)
    found = estimate_label_prior(head.log_posterior(features), head.label_prior.probs())
    assert float(found.sum()) == pytest.approx(1, rel=1e-9)
    p = head.with_label_prior(true).log_posterior(features).detach().exp() / true
    score = p[:, :2] - p[:, 2:]  # of the first two proportions; the last is what they leave
    error = torch.linalg.inv(score.T @ score).diagonal().sqrt()
    assert bool(((found - true)[:2].abs() < 5 * error).all())
    assert float(error.max()) < 0.05


def test_calibrate_finds_the_least_held_out_loss_and_again_the_same():
    head = make(4, 3, objective="ce", separation=2.0)
    torch.manual_seed(4)
    y = torch.randint(3, (300,))
    features = head.class_prior.mean.detach()[y] + 2.5 * torch.randn(300, 4, dtype=torch.float64)  # wider than the prior says
    first = head.calibrate(features, y)
    assert first > 1
    assert head.class_prior.scale_factor == first
    best = F.nll_loss(head.log_posterior(features), y).item()
    assert head.calibrate(features, y) == first
    for nudge in (0.9, 0.99, 1.01, 1.1):
        head.class_prior.scale_factor = first * nudge
        assert F.nll_loss(head.log_posterior(features), y).item() > best


@pytest.mark.parametrize("n", [20, 400])
def test_calibrate_is_not_made_certain_by_data_without_a_mistake(n):
    """One more sample of which nothing is known: as `settle` has it. Weights of 0 and ignored labels are no samples."""
    head = make(4, 3, objective="ce", separation=4.0)
    y = torch.arange(n) % 3
    features = head.class_prior.mean.detach()[y]
    assert bool((head.log_posterior(features).argmax(1) == y).all())
    factor = head.calibrate(features, y)
    losses = []
    for nudge in (1.0, 0.98, 1.02):
        head.class_prior.scale_factor = factor * nudge
        log_posterior = head.log_posterior(features).detach()
        losses.append(float(F.nll_loss(log_posterior, y, reduction="sum") - log_posterior.mean(1).mean()))
    assert losses[0] == min(losses) < max(losses)
    more = torch.cat([features, features[:7]]), torch.cat([y, torch.full((7,), -100)])
    assert head.calibrate(*more) == pytest.approx(factor, rel=1e-6)


def test_calibrate_with_a_gaussian_posterior_is_repeatable_and_leaves_the_parameters_alone():
    head = make(4, 3, posterior="gaussian")
    features, y = batch(60, 4, 3)
    before = {name: value.clone() for name, value in head.named_parameters()}
    torch.manual_seed(5)
    first = head.calibrate(features, y)
    torch.manual_seed(5)
    assert head.calibrate(features, y) == first
    assert all(torch.equal(value, before[name]) for name, value in head.named_parameters())
    assert all(value.grad is None for value in head.parameters())


def test_calibrate_restores_the_factor_if_anything_fails_on_the_way(monkeypatch):
    head = make(4, 3)
    features, y = batch(20, 4, 3)
    head.class_prior.scale_factor = 1.5
    calls, real = [], head.log_posterior

    def fails_the_third_time(x):
        calls.append(head.class_prior.scale_factor)
        if len(calls) == 3:
            raise RuntimeError("out of memory")
        return real(x)

    monkeypatch.setattr(head, "log_posterior", fails_the_third_time)
    with pytest.raises(RuntimeError, match="out of memory"):
        head.calibrate(features, y)
    assert len(set(calls)) == 3
    assert head.class_prior.scale_factor == 1.5


def test_calibrate_refuses_data_that_says_nothing_and_keeps_the_factor():
    head = make(4, 3)
    features, y = batch(20, 4, 3)
    for x, labels in (
        (features, torch.full_like(y, -100)),
        (features[:0], y[:0]),
        (torch.full_like(features, math.nan), y),
        (features, F.one_hot(y, 3).double()),
    ):
        with pytest.raises(ValueError, match="calibrate"):
            head.calibrate(x, labels)
        assert head.class_prior.scale_factor == 1.0


def test_calibrate_uses_class_weights_and_ignores_what_is_to_be_ignored():
    features, y = batch(60, 4, 3)
    weighted = make(4, 3, class_weight=torch.tensor([3, 1, 0]))
    times = torch.tensor([3, 1, 0])[y]
    repeated = make(4, 3).calibrate(features.repeat_interleave(times, 0), y.repeat_interleave(times))
    assert weighted.calibrate(features, y) == pytest.approx(repeated, rel=1e-4)
    gone = torch.arange(60) % 2 == 0
    ignoring = make(4, 3).calibrate(features, torch.where(gone, -100, y))
    assert make(4, 3).calibrate(features[~gone], y[~gone]) == pytest.approx(ignoring, rel=1e-4)


@pytest.mark.parametrize(("num_classes", "accuracy"), [(10, 0.99), (100, 0.92)])
def test_the_default_separation_anticipates_the_accuracy_that_its_documentation_names(num_classes, accuracy):
    torch.manual_seed(0)
    head, n = VariationalHead(128, num_classes, objective="gm"), 20_000
    y = torch.randint(num_classes, (n,))
    with torch.no_grad():
        found = float((head(head.sample(y)).argmax(1) == y).double().mean())
    assert abs(found - accuracy) < 0.005 + 5 * math.sqrt(accuracy * (1 - accuracy) / n)  # named to a whole per cent


def test_ce_by_default_is_a_softmax_layer_that_starts_and_decays_as_nn_linear_does():
    torch.manual_seed(0)
    head, layer = VariationalHead(256, 10, objective="ce"), torch.nn.Linear(256, 10)
    features = torch.randn(50, 256)
    torch.testing.assert_close(head.as_linear()(features).softmax(-1), head(features).softmax(-1))
    lengths = [float(each.weight.detach().norm(dim=1).mean()) for each in (head.as_linear(), layer)]
    assert lengths[0] == pytest.approx(lengths[1], rel=0.05)
    decays = {group["name"]: group["weight_decay"] for group in head.parameter_groups(lr=0.1, weight_decay=5e-4)}
    assert (decays["theta"], decays["pi"]) == (5e-4, 0)
    assert VariationalHead(256, 10, objective="ce", means="simplex").class_prior.separation == 4
    assert VariationalHead(256, 10, objective="ce", covariance="diagonal").class_prior.covariance == "diagonal"
