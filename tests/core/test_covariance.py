"""The covariance that settling gives all classes: its densities are a Gaussian's, and held-out data decide."""

import copy
import math

import pytest
import torch
from torch.distributions import MultivariateNormal

from varclass import VariationalHead, anticipate
from varclass.core import consistency, covariance
from varclass.core.axes import AxesPrior
from varclass.core.consistency import HeldOut, look_at
from varclass.core.covariance import best_shape, fewest_for_shape
from varclass.core.label_prior import LabelPrior

C = 4
LOG_LABEL = torch.tensor([0.55, 0.3, 0.1, 0.05], dtype=torch.float64).log()


@pytest.fixture
def shaped():
    """A prior that has settled, with a root, in eval mode and double precision, calibrated besides."""
    torch.manual_seed(0)
    prior = AxesPrior(C, C, "unit", "axes", 2.0).double().eval()
    half = 0.1 * torch.randn(C, C, dtype=torch.float64)
    prior.scale_factor = 1.3
    prior.settle(0.8**2, LOG_LABEL, torch.eye(C, dtype=torch.float64) + half + half.T)
    return prior


def reference(prior):
    spread = (1.3 * 0.8) ** 2 * torch.linalg.inv(prior.root @ prior.root)
    return MultivariateNormal(prior.origin + prior.length * torch.eye(C, dtype=torch.float64), spread)


def test_densities_are_those_of_a_multivariate_normal(shaped):
    z, y = torch.randn(7, C, dtype=torch.float64), torch.tensor([0, 1, 2, 3, 0, 1, 2])
    expected = reference(shaped).log_prob(z[:, None])
    close = {"rtol": 1e-9, "atol": 1e-9}
    torch.testing.assert_close(shaped.log_prob(z), expected, **close)
    torch.testing.assert_close(shaped.log_prob(z, slice(1, 3)), expected[:, 1:3], **close)
    torch.testing.assert_close(shaped.log_prob_of(z, y), expected[torch.arange(7), y], **close)
    shift = torch.randn(C, dtype=torch.float64)
    torch.testing.assert_close(shaped.log_joint(z, shift), expected + shift, **close)
    standard = shaped.standardize(z, y)
    torch.testing.assert_close(shaped.mean, reference(shaped).loc, **close)
    at_mean = reference(shaped).log_prob(reference(shaped).loc)[y]
    torch.testing.assert_close(at_mean - 0.5 * standard.square().sum(1), expected[torch.arange(7), y], **close)


def test_samples_have_its_mean_and_covariance_within_five_standard_errors(shaped):
    n, label = 20_000, torch.tensor(2)
    z = shaped.sample(label.expand(n)) - reference(shaped).loc[label]
    assert (z.mean(0).abs() < 5 * z.std(0) / math.sqrt(n)).all()
    spread = reference(shaped).covariance_matrix[label]
    products = z[:, :, None] * z[:, None, :]
    error = products.std(0) / math.sqrt(n)
    assert ((products.mean(0) - spread).abs() < 5 * error).all()


def test_what_it_anticipates_is_what_it_does_with_its_own_samples(shaped):
    found = anticipate(shaped, samples=20_000)
    assert found.samples  # no longer equidistant
    y = torch.arange(C).repeat(5_000)
    right = (shaped.log_prob(shaped.sample(y)).argmax(1) == y).double().mean()
    error = math.hypot(found.accuracy_error, math.sqrt(right * (1 - right) / len(y)))
    assert abs(found.accuracy - right) < 5 * error


def test_it_is_no_part_of_training(shaped):
    z, plain = torch.randn(5, C, dtype=torch.float64), AxesPrior(C, C, "unit", "axes", 2.0).double()
    plain.scale_factor = 1.3
    torch.testing.assert_close(shaped.train().log_prob(z), plain.log_prob(z))
    y = torch.tensor([0, 1, 2, 3, 0])
    torch.testing.assert_close(shaped.standardize(z, y), plain.standardize(z, y))
    torch.testing.assert_close(shaped.mean, plain.mean)
    torch.manual_seed(0)
    samples = shaped.sample(y)
    torch.manual_seed(0)
    torch.testing.assert_close(samples, plain.sample(y))


def test_as_trained_while_entered(shaped):
    z, before = torch.randn(5, C, dtype=torch.float64), shaped.log_prob(torch.zeros(1, C, dtype=torch.float64))
    with shaped.as_trained():
        inside = shaped.log_prob(z)
    torch.testing.assert_close(shaped.log_prob(torch.zeros(1, C, dtype=torch.float64)), before, rtol=0, atol=0)
    plain = AxesPrior(C, C, "unit", "axes", 2.0).double().eval()
    plain.scale_factor, plain.settled = 1.3, 0.8
    torch.testing.assert_close(inside, plain.log_prob(z))


def test_the_separation_is_the_root_mean_square_distance_of_the_means_from_their_center_in_its_units(shaped):
    means = reference(shaped).loc - reference(shaped).loc.mean(0)
    precision = torch.linalg.inv(reference(shaped).covariance_matrix[0])
    expected = torch.einsum("cd,de,ce->c", means, precision, means).mean().sqrt()
    assert shaped.radius == pytest.approx(float(expected), rel=1e-6)


# ----------------------------------------------------------------------------------------------------------- held-out data


def elongated(n, seed, stretch=3.0):
    """A head with an identity for its layer, and outputs whose classes 0 and 1 run into each other."""
    generator = torch.Generator().manual_seed(seed)
    head = VariationalHead(C, C).eval()
    head.widen()
    with torch.no_grad():
        head.projection.weight.copy_(torch.eye(C))
        head.projection.bias.zero_()
    length, y = float(head.class_prior.length), torch.randint(C, (n,), generator=generator)
    noise = torch.randn(n, C, generator=generator)
    along = torch.tensor([1.0, -1.0, 0.0, 0.0]) / math.sqrt(2)
    noise = noise + (stretch - 1) * (noise @ along)[:, None] * along
    return head, length * (length * torch.eye(C)[y] + 1.5 * noise), y


@torch.no_grad()
def nll(head, features, y):
    return float(-head.log_posterior(features).gather(1, y[:, None]).mean())


def test_it_finds_the_direction_in_which_classes_run_into_each_other_and_predicts_better():
    head, features, y = elongated(2000, 0)
    _, fresh, labels = elongated(20_000, 1)
    head.settle_from(look_at(head, features, y, shape=False))
    alone = nll(head, fresh, labels)
    assert not head.class_prior.root.numel()
    head.settle(features, y)
    assert nll(head, fresh, labels) < alone - 0.01
    values, vectors = torch.linalg.eigh(head.class_prior.root)
    assert values[0] < 0.8 * values[1]  # least precise along one direction: from class 0 to class 1
    assert vectors[:2, 0].abs().sum() > 0.95 * math.sqrt(2)
    own = (nll(head, features, y), nll(head, fresh, labels))
    assert own[0] == pytest.approx(own[1], abs=0.02)


def test_where_all_directions_are_alike_little_or_nothing_is_changed():
    head, features, y = elongated(2000, 0, stretch=1.0)
    _, fresh, labels = elongated(20_000, 1, stretch=1.0)
    head.settle_from(look_at(head, features, y, shape=False))
    alone = nll(head, fresh, labels)
    head.settle(features, y)
    assert nll(head, fresh, labels) < alone + 0.001


def test_labels_by_chance_give_no_covariance():
    torch.manual_seed(0)
    head, features, _ = elongated(300, 0)
    head.settle(features, torch.randint(C, (300,)))
    assert not head.class_prior.root.numel()


@pytest.mark.parametrize(("classes", "fewest"), [(2, 100), (4, 100), (30, 300)])
def test_fewer_samples_than_can_say_something_settle_sigma_alone(classes, fewest):
    assert fewest_for_shape(classes) == fewest
    head, features, y = elongated(fewest_for_shape(C) - 1, 0)
    head.settle(features, y)
    assert not head.class_prior.root.numel()
    assert head.class_prior.settled != 1


def test_too_many_classes_or_a_gaussian_posterior_settle_sigma_alone(monkeypatch):
    head, features, y = elongated(400, 0)
    monkeypatch.setattr(consistency, "MOST_CLASSES", C - 1)
    assert look_at(head, features, y).outputs is None
    monkeypatch.undo()
    assert look_at(head, features, y).outputs is not None
    other = VariationalHead(C, C, objective="bottleneck").eval()
    assert look_at(other, features, y).outputs is None
    simplex = VariationalHead(C, C, objective="pull", means="simplex", latent_dim=3, separation="auto").eval()
    assert look_at(simplex, features, y).outputs is None


def test_outputs_that_are_not_finite_settle_nothing():
    head, features, y = elongated(400, 0)
    features[3, 2] = torch.inf
    assert best_shape(head.class_prior, head.log_label(), features, y) is None


def test_more_samples_than_are_needed_are_left_aside(monkeypatch):
    head, features, y = elongated(1000, 0)
    monkeypatch.setattr(covariance, "MOST_SAMPLES", 400)
    some = best_shape(head.class_prior, head.log_label(), features, y)
    first = best_shape(head.class_prior, head.log_label(), features[:400], y[:400])
    torch.testing.assert_close(some.root, first.root)


def test_batches_join_to_the_whole_and_ignored_labels_do_not_count():
    head, features, y = elongated(600, 0)
    parts = [look_at(head, features[part], y[part]) for part in (slice(200), slice(200, 210), slice(210, None))]
    whole = look_at(head, features, y)
    joined = HeldOut.of(parts)
    torch.testing.assert_close(joined.losses, whole.losses)
    torch.testing.assert_close(joined.outputs, whole.outputs)
    head.settle_from(joined)
    expected = head.class_prior.root
    more = torch.cat([features, 100 * torch.randn(50, C)]), torch.cat([y, torch.full((50,), -100)])
    head.settle(*more)
    torch.testing.assert_close(head.class_prior.root, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("label_probs", [[0.25] * 4, LOG_LABEL.exp().tolist()], ids=["balanced", "imbalanced"])
def test_a_settled_head_predicts_as_the_shape_that_was_found(label_probs):
    head, features, y = elongated(600, 0)
    head.label_prior = LabelPrior(C, torch.tensor(label_probs))
    held = look_at(head, features, y)
    head.settle_from(look_at(head, features, y, shape=False))
    shape = best_shape(head.class_prior, head.log_label(), held.outputs, held.labels)
    expected = shape.log_posterior(head.class_prior, held.outputs.double(), head.log_label().double())
    head.eval().settle(features, y)
    torch.testing.assert_close(head.log_posterior(features).double(), expected, rtol=1e-3, atol=1e-3)
    assert head.class_prior.root.numel()


def test_what_sigma_is_asked_does_not_depend_on_a_root():
    head, features, y = elongated(600, 0)
    before = look_at(head, features, y).losses
    head.class_prior.root = torch.eye(C) + 0.2
    torch.testing.assert_close(look_at(head, features, y).losses, before)


def test_settling_again_begins_anew():
    head, features, y = elongated(600, 0)
    head.settle(features, y)
    once = head.class_prior.root.clone(), head.class_prior.settled
    head.settle(features, y)
    torch.testing.assert_close(head.class_prior.root, once[0], rtol=1e-3, atol=1e-3)
    assert head.class_prior.settled == pytest.approx(once[1], rel=1e-2)
    head.settle_by(1.0)
    assert not head.class_prior.root.numel()


def test_too_few_samples_leave_a_settled_covariance_as_it_is():
    head, features, y = elongated(600, 0)
    head.settle(features, y)
    before = copy.deepcopy(head)
    assert before.class_prior.root.numel()
    assert head.settle(features[:5], y[:5]) == before.separation
    assert torch.equal(head.class_prior.root, before.class_prior.root)
    assert torch.equal(head.log_posterior(features), before.log_posterior(features))


def test_it_is_saved_with_the_weights_and_moves_with_the_head():
    head, features, y = elongated(600, 0)
    head.settle(features, y)
    assert head.class_prior.root.numel()
    other = VariationalHead(C, C).eval()
    other.load_state_dict(head.state_dict())
    torch.testing.assert_close(other(features), head(features))
    assert other.double().class_prior.root.dtype == torch.float64
    other.float().load_state_dict(VariationalHead(C, C).state_dict())
    assert not other.class_prior.root.numel()


def test_folded_into_a_layer_it_predicts_the_same():
    head, features, y = elongated(600, 0)
    head.double().settle(features.double(), y)
    layer = head.as_linear()
    expected = head.log_posterior(features.double())
    torch.testing.assert_close(torch.log_softmax(layer(features.double()), 1), expected, rtol=1e-9, atol=1e-9)


def test_in_inference_mode_too():
    head, features, y = elongated(600, 0)
    with torch.inference_mode():
        head.settle(features, y)
    assert head.class_prior.root.numel()
    head.train().loss(features, y).backward()


def test_training_does_not_recompile_for_it():
    torch.compiler.reset()
    head, features, y = elongated(200, 0)
    graphs = []
    compiled = torch.compile(head.train().loss, backend=lambda graph, _: graphs.append(graph) or graph.forward, fullgraph=True)
    for _ in range(2):
        compiled(features, y)
        head.eval().settle(features, y)
        assert head.class_prior.root.numel()
        head.train()
    torch.compiler.reset()
    assert len(graphs) == 1


def far_off(n, seed):
    """Outputs of classes that two directions of one strong covariance mix up, far from what sigma alone can say."""
    generator = torch.Generator().manual_seed(seed)
    prior, y = AxesPrior(C, C, "unit", "axes", 2.0), torch.arange(n) % C
    mixed = torch.eye(C, dtype=torch.float64)
    mixed[0, 1] = mixed[1, 0] = 0.6
    noise = torch.randn(n, C, generator=generator, dtype=torch.float64) @ mixed
    z = float(prior.length) * torch.nn.functional.one_hot(y, C) + noise
    return prior, float(prior.length) * z, y


def test_a_covariance_far_from_round_is_followed_further_where_samples_say_so(monkeypatch):
    prior, outputs, y = far_off(1500, 0)
    _, others, labels = far_off(20_000, 1)
    log_label = torch.full((C,), -math.log(C), dtype=torch.float64)

    def judged(closeness):
        monkeypatch.setattr(covariance, "CLOSENESS", closeness)
        shape = best_shape(prior, log_label, outputs, y)
        return shape.log_posterior(prior, others, log_label).gather(1, labels[:, None]).mean().item()

    free, stiff = judged((1.0, 0.3)), judged((1.0,))
    assert free > stiff + 1e-4
    assert free == judged((0.3,))


def test_of_round_latents_sigma_alone_is_settled():
    torch.manual_seed(0)
    prior, y = AxesPrior(C, C, "unit", "axes", 2.0), torch.arange(400) % C
    outputs = float(prior.length) * prior.sample(y).double()
    assert best_shape(prior, torch.full((C,), -math.log(C), dtype=torch.float64), outputs, y) is None


@pytest.mark.parametrize(("errors", "kept"), [(1.05, True), (0.95, False), (0.05, False), (-2.0, False), (math.nan, False)])
@pytest.mark.parametrize("weighed", [False, True])
def test_it_must_predict_better_by_more_than_the_standard_error(monkeypatch, errors, kept, weighed):
    """`errors` of it: what each sample gains by a covariance is written where its outputs would be."""

    class Said(covariance.Shape):
        def log_posterior(self, prior, outputs, log_label):
            return outputs * (self.temperature != 1.0)

    def fit(prior, log_label, outputs, labels, weight, closeness):
        return Said(torch.eye(C), 1.0 if closeness is None else 2.0)

    monkeypatch.setattr(covariance, "_fit", fit)
    gain = torch.randn(200, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    gain += errors * gain.std() / math.sqrt(len(gain)) - gain.mean()
    weight = torch.where(torch.arange(200) % 3 == 0, 2.0, 1.0) if weighed else None
    outputs = (gain if weight is None else gain / weight)[:, None].expand(-1, C)
    prior, labels = AxesPrior(C, C, "unit", "axes", 2.0), torch.arange(200) % C
    assert (best_shape(prior, torch.zeros(C), outputs, labels, weight) is not None) is kept
