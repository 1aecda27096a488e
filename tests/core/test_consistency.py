"""separation="auto": the temperature that held-out data ask for, and the sigma that follows it."""

import copy
import math

import pytest
import torch

from varclass.core import consistency
from varclass.core.anticipation import anticipate
from varclass.core.consistency import (
    FEWEST,
    LOSSES,
    PRIOR_DEVIATION,
    STEP,
    STEPS,
    HeldOut,
    best_temperature,
    far,
    look_at,
    near,
    tempered_losses,
)
from varclass.core.head import VariationalHead
from varclass.core.label_prior import LabelPrior
from varclass.core.recall import options_of

C, D, N = 10, 9, 4000
STEPPED = torch.arange(-STEPS, STEPS + 1, dtype=torch.float64) * STEP


def losses_of(own, any_other=None, mistakes=0.0, count=FEWEST, sure=None):
    """As `tempered_losses` lays them out; nobody is sure of anything unless it is said."""
    nothing = torch.zeros(2 * STEPS + 1, dtype=torch.float64)
    parts = [own, *(nothing if part is None else part for part in (any_other, sure))]
    return torch.cat([*parts, torch.tensor([mistakes, float(count)]).double()])


def auto(classes=C, dim=D, **options):
    """Means on a simplex: features are latents. In eval mode, as predictions are made."""
    options = {"objective": "gm", "means": "simplex", "covariance": "unit", "separation": "auto", **options}
    return VariationalHead(dim, classes, **options).eval()


def recommended(classes=C):
    """A recommended head whose layer is the identity: features are logits."""
    head = VariationalHead(classes, classes, label_prior="uniform").eval()
    with torch.no_grad():
        head.projection.weight.copy_(torch.eye(classes))
        head.projection.bias.zero_()
    return head


def drawn(head, width, label_probs=None, seed=0, number=N):
    """Latents around their class means, `width` trained sigma wide, and labels."""
    generator = torch.Generator().manual_seed(seed)
    probs = torch.ones(head.num_classes) if label_probs is None else label_probs
    y = torch.multinomial(probs, number, replacement=True, generator=generator)
    return head.class_prior.offset[y] + width * torch.randn(number, head.latent_dim, generator=generator), y


def features_of(head, z):
    """What the head takes for these latents."""
    return z * head.class_prior.length if head.class_prior.means == "axes" else z


def test_it_starts_where_ninety_percent_is_anticipated_and_trains_far_apart_once_widened():
    for classes in (2, 10, 200):
        for head in (auto(classes, max(1, classes - 1)), VariationalHead(4, classes).eval()):
            assert anticipate(head.class_prior).accuracy == pytest.approx(0.9, abs=1e-5)
            assert head.separation == pytest.approx(near(classes))
            head.widen()
            head.widen()
            assert anticipate(head.class_prior).accuracy == pytest.approx(0.9999, abs=1e-6)
            assert head.separation == pytest.approx(far(classes))
    assert "separation=auto, now 2.83" in repr(auto())


def test_widening_leaves_the_recommended_heads_predictions_alone():
    head, x = VariationalHead(6, 4).eval(), torch.randn(5, 6)
    before = head.log_posterior(x)
    head.widen()
    torch.testing.assert_close(head.log_posterior(x), before, rtol=1e-6, atol=1e-6)
    given = VariationalHead(6, 4, separation=3.0)
    given.widen()
    assert given.separation == 3.0


IMBALANCED = torch.tensor([0.5] + [0.5 / 9] * 9)


@pytest.mark.parametrize("label_probs", [None, IMBALANCED], ids=["balanced", "imbalanced"])
@pytest.mark.parametrize("width", [0.85, 1.0, 1.6])
def test_the_temperature_is_the_variance_of_latents_in_units_of_the_prior(width, label_probs):
    """log p(z|y) of N(mu, s^2) differs between classes by 1 / s^2 of that of N(mu, 1). 10%: five errors of 40,000 samples.

    On a simplex, where sigma is all that moves.
    """
    head = auto(label_prior="uniform" if label_probs is None else label_probs)
    temperature = best_temperature(tempered_losses(head, *drawn(head, width, label_probs, number=10 * N)))
    assert temperature == pytest.approx(width**2, rel=0.1)


def test_at_temperature_one_the_loss_is_the_heads_own():
    head = auto(label_prior=torch.tensor([0.5] + [0.5 / 9] * 9))
    z, y = drawn(head, 1.3)
    own = torch.nn.functional.nll_loss(head.log_posterior(z), y, reduction="sum")
    torch.testing.assert_close(tempered_losses(head, z, y)[STEPS], own.double(), rtol=1e-5, atol=0.0)


def test_sums_of_batches_add_up_and_weights_count():
    head = auto()
    z, y = drawn(head, 1.3)
    parts = sum(tempered_losses(head, *part) for part in zip(z.split(1500), y.split(1500), strict=True))
    torch.testing.assert_close(parts, tempered_losses(head, z, y))
    assert parts[-1] == N
    ignored = y.clone()
    ignored[: N // 2] = -100
    torch.testing.assert_close(tempered_losses(head, z, ignored), tempered_losses(head, z[N // 2 :], y[N // 2 :]))


@pytest.mark.parametrize("settled", [1.0, 1.4, 0.6])
@pytest.mark.parametrize("samples", [1, 30, 10_000])
def test_between_the_steps_the_likeliest_is_found_by_a_parabola(samples, settled):
    """Exact for a parabola in log T, which the prior adds one to: precisions add up, and between them they share the way."""
    losses = losses_of(samples * (STEPPED - 0.23) ** 2 + 7.0)
    pull = 2 * math.log(settled) / PRIOR_DEVIATION**2
    wanted = (2 * samples * 0.23 - pull) / (2 * samples + PRIOR_DEVIATION**-2)
    assert math.log(best_temperature(losses, settled)) == pytest.approx(wanted, rel=1e-9)
    assert best_temperature(losses_of(-1e4 * STEPPED), settled) == pytest.approx(math.exp(STEP * STEPS))  # the hottest there is


@pytest.mark.parametrize("make", [auto, recommended])
@pytest.mark.parametrize("width", [1.7, 2.5])
def test_once_settled_held_out_data_ask_for_nothing_more(make, width):
    """sigma becomes as wide as the latents are: 5%, half of what 4,000 samples leave open of its square."""
    head = make()
    head.widen()
    z, y = drawn(head, width)
    trained = head.separation
    found = head.settle(features_of(head, z), y)
    assert head.class_prior.settled == pytest.approx(width, rel=0.05)
    assert found == head.separation == pytest.approx(trained / head.class_prior.settled)
    losses = tempered_losses(head, features_of(head, z), y)
    assert best_temperature(losses, head.class_prior.settled) == pytest.approx(1.0, abs=0.02)
    head.settle(features_of(head, z), y)
    assert head.separation == pytest.approx(found, rel=0.01)


def test_predictions_are_calibrated_once_it_has_settled():
    """Accuracy and confidence of 4,000 samples: five standard errors of a share are 0.04 at most."""
    head = auto()
    head.widen()
    z, y = drawn(head, 3.0)
    before = head.log_posterior(z).exp().amax(1).mean()
    head.settle(z, y)
    confidence, answer = head.log_posterior(z).exp().max(1)
    right = (answer == y).float().mean()
    assert abs(float(confidence.mean() - right)) < 0.04 < abs(float(before - right))
    assert anticipate(head.class_prior).accuracy == pytest.approx(float(right), abs=0.04)


@pytest.mark.parametrize("width", [0.7, 2.5])
def test_on_axes_settling_divides_the_log_joint_and_changes_no_decision(width):
    """Whatever p(y): as temperature scaling of a softmax layer, and p(y) stays what it is."""
    head = recommended()
    head.widen()
    head.label_prior = LabelPrior(C, IMBALANCED)
    z, y = drawn(head, width, IMBALANCED)
    features = features_of(head, z)
    before = head.log_posterior(features).detach()
    for _ in range(2):  # the second time from where the first has left it
        head.settle_from(look_at(head, features, y, shape=False))
        settled = head.log_posterior(features).detach()
        assert torch.equal(settled.argmax(1), before.argmax(1))
        torch.testing.assert_close(settled, torch.log_softmax(before / head.class_prior.settled**2, 1), rtol=1e-4, atol=1e-4)
    assert abs(math.log(head.class_prior.settled)) > 0.1
    torch.testing.assert_close(head.label_prior.probs(), IMBALANCED)
    layer = head.as_linear()
    torch.testing.assert_close(torch.log_softmax(layer(features), 1), settled, rtol=1e-4, atol=1e-4)
    head.class_prior.scale_means(2.0)  # how far apart the means are is nothing to a prediction
    torch.testing.assert_close(head.log_posterior(features).detach(), settled, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("make", [auto, recommended])
@pytest.mark.parametrize("steps", [-6, 9])
def test_what_is_asked_of_a_temperature_is_what_settling_by_it_gives(make, steps):
    """Wherever it starts from, and with a p(y) that is not uniform; in double precision, where digits do not hide it."""
    head = make().double()
    head.label_prior = LabelPrior(C, IMBALANCED, torch.float64)
    z, y = drawn(head, 1.5, IMBALANCED, number=200)
    features = features_of(head, z)
    for _ in range(2):
        asked = tempered_losses(head, features, y)[STEPS + steps]
        head.settle_by(math.exp(STEP * steps))
        found = torch.nn.functional.nll_loss(head.log_posterior(features), y, reduction="sum")
        assert float(found.detach()) == pytest.approx(float(asked), rel=1e-9)


def test_another_label_prior_weighs_a_settled_posterior_as_bayes_rule_has_it():
    head = recommended()
    head.label_prior = LabelPrior(C, IMBALANCED)
    z, y = drawn(head, 2.0, IMBALANCED)
    features = features_of(head, z)
    head.settle(features, y)
    shifted = head.with_label_prior(torch.full((C,), 1 / C)).log_posterior(features)
    expected = torch.log_softmax(head.log_posterior(features) - IMBALANCED.log(), 1)
    torch.testing.assert_close(shifted, expected, rtol=1e-4, atol=1e-4)


def test_a_class_that_never_occurs_does_not_move_the_others_out_of_sight():
    probs = torch.tensor([0.0] + [1 / 9] * 9)
    head = recommended()
    head.widen()
    head.label_prior = LabelPrior(C, probs)
    z, y = drawn(head, 2.0, probs)
    features = features_of(head, z)
    before = head.log_posterior(features).argmax(1)
    head.settle(features, y)
    assert torch.equal(head.log_posterior(features).argmax(1), before)
    assert float(head.class_prior.origin.norm()) < 10 * float(head.class_prior.length)
    assert bool(head.log_evidence(features).isfinite().all())


@pytest.mark.parametrize("make", [auto, recommended])
@pytest.mark.parametrize("impossible", [1, 7])
def test_what_is_not_known_is_about_classes_that_can_occur(make, impossible):
    """The sample of which nothing is known, which counts beside the held-out ones, is of a class that can occur."""
    probs = torch.ones(C)
    probs[:impossible] = 0
    probs /= probs.sum()
    head = make()
    head.widen()
    head.label_prior = LabelPrior(C, probs)
    z, y = drawn(head, 1.0, probs, number=300)
    features = features_of(head, z)
    any_other = -head.log_posterior(features).detach()[:, impossible:].double().mean(1).sum()
    assert float(tempered_losses(head, features, y)[2 * STEPS + 1 :][STEPS]) == pytest.approx(float(any_other), rel=1e-4)


@pytest.mark.parametrize("width", [0.6, 1.0, 2.5])
def test_the_first_held_out_data_ask_the_same_before_and_after_means_move_far_apart(width):
    first = auto()
    widened = copy.deepcopy(first)
    widened.widen()
    z, y = drawn(widened, width)
    for head in (first, widened):
        head.settle(z, y)
    assert first.class_prior.settled == pytest.approx(widened.class_prior.settled, rel=0.05)  # not the same steps of T
    once = first.class_prior.settled
    first.settle(z, y)
    assert first.class_prior.settled == pytest.approx(once, rel=0.05)


def test_features_that_are_no_numbers_settle_nothing_and_are_named():
    for head in (auto(), recommended()):
        z, y = drawn(head, 1.5, number=100)
        z[3, 0] = math.nan
        before = head.separation
        with pytest.raises(ValueError, match=r"settle needs features with finite log p\(y\|z\); got NaN or infinity") as caught:
            head.settle(z if z.shape[1] == head.in_features else features_of(head, z), y)
        assert "\n" not in str(caught.value)
        assert (head.class_prior.settled, head.separation) == (1.0, before)


def test_the_settled_sigma_counts_in_eval_mode_alone():
    head = VariationalHead(6, C)
    features, y = torch.randn(40, 6), torch.randint(C, (40,))
    loss, predicted = head.loss(features, y), head(features)
    head.eval().settle(features, y)
    head.train()
    head.class_prior.scale_means(near(C) / far(C))  # as before the first held-out data
    assert head.class_prior.settled != 1
    torch.testing.assert_close(head.loss(features, y), loss, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(head(features), predicted, rtol=1e-4, atol=1e-4)
    assert not torch.allclose(head.eval().log_posterior(features), torch.log_softmax(predicted, 1), atol=1e-3)
    with pytest.raises(ValueError, match=r"call eval\(\) first; got a head in training mode"):
        head.train().settle(features, y)


def test_the_densities_of_a_settled_head_are_normalised():
    """In one dimension, the sum over a fine grid; C = 2 axes are two dimensions."""
    head = recommended(2)
    head.class_prior.settled = 1.7
    axis = torch.linspace(-14, 18, 401)
    z = torch.cartesian_prod(axis, axis)
    mass = head.class_prior.log_prob(z).exp().sum(0) * float(axis[1] - axis[0]) ** 2
    torch.testing.assert_close(mass, torch.ones(2), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("make", [auto, recommended])
def test_fewer_than_twenty_samples_settle_nothing(make):
    head = make()
    before = head.separation
    z, y = drawn(head, 3.0, number=FEWEST - 1)
    assert head.settle(features_of(head, z), y) == pytest.approx(before)
    assert (head.class_prior.settled, head.separation) == (1.0, pytest.approx(near(C)))
    z, y = drawn(head, 3.0, number=FEWEST)
    head.settle(features_of(head, z), y)
    assert head.class_prior.settled > 1.2
    assert head.class_prior.distance == pytest.approx(far(C))


def test_without_a_mistake_one_sample_of_which_nothing_is_known_keeps_it_from_certainty():
    """A parabola for that sample too: with m mistakes it weighs 1 / (1 + m) of a sample, whatever the number of samples."""
    for mistakes, count in ((0.0, 20), (0.0, 500), (3.0, 500)):
        found = best_temperature(losses_of(2 * (STEPPED + 1) ** 2, count * 3 * (STEPPED - 1) ** 2, mistakes, count))
        share = 3 / (1 + mistakes)
        wanted = (-2 * 2 + 2 * share) / (2 * 2 + 2 * share + PRIOR_DEVIATION**-2)
        assert math.log(found) == pytest.approx(wanted, rel=1e-9)
    head = recommended()
    head.widen()
    z, y = drawn(head, 0.3, number=100)
    features = features_of(head, z)
    losses = tempered_losses(head, features, y)
    assert losses[-2:].tolist() == [0.0, 100.0]
    assert head.settle(features, y) < far(C)  # all were right, and it is less sure than it was trained to be
    confidence = head.log_posterior(features).detach().exp().amax(1).mean()
    assert 0.95 < float(confidence) < 1 - 1e-3


@pytest.mark.parametrize("settled", [1.0, 1.3, 0.8])
@pytest.mark.parametrize(
    ("confident", "wanted"),
    [
        (lambda t: 0.8 - 0.4 * (t + 0.33), -0.33),  # as high as accuracy there
        (lambda t: 0.8 - 0.4 * (t - 0.9), 0.0),  # too sure as trained: as trained
        (lambda t: 0.8 - 0.4 * (t + 1.2), -0.7),  # no surer than right where log p(y|z) is highest
        (lambda t: 0.9 + 0 * t, 0.0),
        (lambda t: 0.7 + 0 * t, -0.7),
    ],
)
def test_it_becomes_surer_than_it_was_trained_as_far_as_it_is_right(confident, wanted, settled):
    """log p(y|z) asks for log T = -0.7 of the trained width, accuracy is 80%; `settled` is where the last call left it."""
    count, now = 10**6, STEPPED + 2 * math.log(settled)
    losses = losses_of(1e9 * (now + 0.7) ** 2, mistakes=0.2 * count, count=count, sure=count * confident(now))
    assert math.log(best_temperature(losses, settled)) + 2 * math.log(settled) == pytest.approx(wanted, abs=1e-6)


def test_less_sure_than_it_was_trained_is_what_log_p_asks_for_whatever_the_confidence():
    losses = losses_of(1e9 * (STEPPED - 0.4) ** 2, mistakes=200.0, count=1000, sure=torch.full_like(STEPPED, 990.0))
    assert math.log(best_temperature(losses)) == pytest.approx(0.4, abs=1e-6)


def test_unsure_where_it_is_right_and_too_sure_where_it_doubts_it_settles_as_sure_as_it_is_right():
    """Seven in ten are right at p = 0.9; of the others it says 0.75 and is right at 0.6. log p(y|z) would have it surer yet."""
    head, sure = recommended(), (torch.arange(7000) % C, torch.zeros(7000, C))
    sure[1][torch.arange(7000), sure[0]] = math.log(0.9 / (0.1 / 9))
    doubtful = torch.tensor([10 + math.log(3), 10.0] + [0.0] * (C - 2)).expand(3000, C)
    features, y = torch.cat([sure[1], doubtful]), torch.cat([sure[0], (torch.arange(3000) % 5 > 2).long()])
    losses = tempered_losses(head, features, y)
    head.settle_from(look_at(head, features, y, shape=False))
    posterior = head.log_posterior(features).detach().exp()
    assert float(posterior.amax(1).mean()) == pytest.approx(0.88, abs=1e-3) == float((posterior.argmax(1) == y).double().mean())
    assert STEP * (int(losses[: 2 * STEPS + 1].argmin()) - STEPS) < 2 * math.log(head.class_prior.settled) - STEP < -STEP


def test_every_part_of_the_losses_is_what_it_says():
    head = auto(label_prior=torch.tensor([0.5] + [0.5 / 9] * 9))
    z, y = drawn(head, 1.3, number=50)
    losses, log_posterior = tempered_losses(head, z, y), head.log_posterior(z).double()
    assert losses.shape == (LOSSES,)
    torch.testing.assert_close(losses[3 * STEPS + 1], -log_posterior.mean(1).sum(), rtol=1e-5, atol=0.0)
    torch.testing.assert_close(losses[5 * STEPS + 2], log_posterior.exp().amax(1).sum(), rtol=1e-5, atol=0.0)
    assert float(losses[-2]) == float((log_posterior.argmax(1) != y).sum()) > 0


def test_no_data_moves_nothing():
    head = auto()
    before = head.separation
    assert head.settle(torch.zeros(0, D), torch.zeros(0, dtype=torch.long)) == pytest.approx(before)
    assert best_temperature(torch.full((LOSSES,), math.nan)) == 1.0


def test_the_order_of_samples_and_an_earlier_sigma_do_not_matter():
    """The steps of the temperature start from the earlier sigma; between them a parabola is right to a part of a step."""
    head = auto()
    head.widen()
    z, y = drawn(head, 1.8, number=60)
    order = torch.randperm(60)
    found = []
    for start, rows in ((1.0, slice(None)), (1.0, order), (3.0, slice(None)), (0.8, slice(None))):
        head.class_prior.settled = start
        found.append(head.settle(z[rows], y[rows]))
    assert found[1] == pytest.approx(found[0], rel=1e-6)
    assert [math.log(each / found[0]) for each in found] == pytest.approx([0.0] * 4, abs=STEP / 4)


def test_it_is_saved_with_the_weights():
    for make in (auto, recommended):
        head, other = make(), make()
        z, y = drawn(head, 2.0)
        head.settle(features_of(head, z), y)
        assert head.separation != pytest.approx(other.separation)
        other.load_state_dict(head.state_dict())
        assert other.separation == head.separation
        torch.testing.assert_close(other(z), head(z)) if make is recommended else None
        assert options_of(head)["separation"] == "auto"


def test_folded_into_a_layer_it_keeps_the_settled_predictions_in_either_mode():
    head = recommended()
    head.widen()
    z, y = drawn(head, 2.0)
    features = features_of(head, z)
    head.settle(features, y)
    expected = head.log_posterior(features)
    for mode in (True, False):
        layer = head.train(mode).as_linear()
        assert head.training is mode
        torch.testing.assert_close(torch.log_softmax(layer(features), 1), expected, rtol=1e-4, atol=1e-4)


def test_a_gaussian_posterior_averages_over_its_draws():
    head = auto(posterior="gaussian", draws=4)
    torch.manual_seed(0)
    z, y = drawn(head, 1.0)
    # noise of half a sigma on latents that fill the prior already makes every average too unsure
    assert 0.6 < best_temperature(tempered_losses(head, z, y)) < 0.95


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separation": "auto", "means": "learned"}, "separation='auto' needs prior='gaussian' and means='axes' or 'simplex'"),
        ({"separation": "auto", "means": "simplex", "prior": "vmf"}, "separation='auto' needs prior='gaussian'"),
        ({"separation": "wide"}, "separation must be a number > 0 or 'auto'; got 'wide'"),
    ],
)
def test_what_cannot_settle_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        VariationalHead(D, C, **options)


def test_a_given_separation_does_not_settle():
    head = VariationalHead(D, C, means="simplex", separation=3.0).eval()
    assert head.separation == 3.0
    with pytest.raises(ValueError, match=r"settle needs separation='auto'; got separation=3.0"):
        head.settle(*drawn(head, 1.0))
    with pytest.raises(ValueError, match="needs hard labels"):
        auto().settle(torch.zeros(4, D), torch.full((4, C), 1 / C))


@pytest.mark.parametrize("options", [{}, {"ignore_index": 3}])  # which some of the parts are without
def test_many_held_out_samples_are_looked_at_in_parts_and_say_the_same(options, monkeypatch):
    torch.manual_seed(0)
    head = VariationalHead(4, C, **options).double().eval()
    features, y = torch.randn(30, 7, 4, dtype=torch.float64), torch.randint(C, (30, 7))
    whole = look_at(head, features, y)
    monkeypatch.setattr(consistency, "ENTRIES", 9 * C)
    parts = look_at(head, features, y)
    torch.testing.assert_close(parts.losses, whole.losses, rtol=1e-9, atol=0)
    torch.testing.assert_close(parts.outputs, whole.outputs)
    assert torch.equal(parts.labels, whole.labels)
    assert torch.equal(parts.weight, whole.weight)


def test_what_is_ignored_in_one_batch_does_not_count_where_another_has_nothing_to_ignore():
    torch.manual_seed(0)
    head = VariationalHead(4, C).double().eval()
    features, y = torch.randn(20, 4, dtype=torch.float64), torch.randint(C, (20,))
    y[12:] = -100
    joined = HeldOut.of([look_at(head, *part) for part in zip(features.split(10), y.split(10), strict=True)])
    assert joined.count == 12
    assert joined.weight.tolist() == [1.0] * 12 + [0.0] * 8
