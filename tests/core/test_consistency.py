"""separation="auto": the temperature that held-out data ask for, and the means that follow it."""

import math

import pytest
import torch

from varclass.core.anticipation import anticipate
from varclass.core.consistency import RATE, STEP, STEPS, best_temperature, first_separation, tempered_losses
from varclass.core.head import VariationalHead
from varclass.core.recall import options_of

C, D, N = 10, 9, 4000


def auto(classes=C, dim=D, **options):
    return VariationalHead(dim, classes, objective="gm", means="simplex", covariance="unit", separation="auto", **options)


def drawn(head, width, label_probs=None, seed=0):
    """Latents around their class means, `width` sigma wide, and labels."""
    generator = torch.Generator().manual_seed(seed)
    probs = torch.ones(head.num_classes) if label_probs is None else label_probs
    y = torch.multinomial(probs, N, replacement=True, generator=generator)
    return head.class_prior.mean[y] + width * torch.randn(N, head.latent_dim, generator=generator), y


def test_it_starts_where_ninety_percent_is_anticipated():
    for classes in (2, 10, 200):
        head = auto(classes, max(1, classes - 1))
        assert anticipate(head.class_prior).accuracy == pytest.approx(0.9, abs=1e-6)
        assert head.separation == pytest.approx(first_separation(classes))
    assert "separation=auto, now 2.83" in repr(auto())


@pytest.mark.parametrize("label_probs", [None, torch.tensor([0.5] + [0.5 / 9] * 9)], ids=["balanced", "imbalanced"])
@pytest.mark.parametrize("width", [0.85, 1.0, 1.6])
def test_the_temperature_is_the_variance_of_latents_in_units_of_the_prior(width, label_probs):
    """log p(z|y) of N(mu, s^2) differs between classes by 1 / s^2 of that of N(mu, 1). 10%: five errors of 4,000 samples."""
    head = auto(label_prior="uniform" if label_probs is None else label_probs)
    temperature = best_temperature(tempered_losses(head, *drawn(head, width, label_probs)))
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


def test_between_the_steps_the_least_loss_is_found_by_a_parabola():
    """Exact for a parabola in log T."""
    steps = torch.arange(-STEPS, STEPS + 1) * STEP
    losses = torch.cat([(steps - 0.23) ** 2 + 7.0, torch.ones(1)])
    assert best_temperature(losses) == pytest.approx(math.exp(0.23), rel=1e-5)
    assert best_temperature(torch.cat([-steps, torch.ones(1)])) == pytest.approx(math.exp(STEP * STEPS))  # the hottest there is


def test_a_step_goes_part_of_the_way_and_many_arrive():
    """Latents of fixed width around means that move along: too sure while the width is above 1 in units of sigma = 1."""
    head = auto()
    before = head.separation
    z, y = drawn(head, 1.5)
    assert head.settle(z, y) == pytest.approx(before * 2.25 ** (-RATE / 2), rel=0.02)
    assert head.separation < before

    def held_out():
        """Latents that the means pull along, and that are twice as wide as anticipated at a separation of 3."""
        z, y = drawn(head, 2.0 * head.separation / 3)
        return z, y

    for _ in range(25):
        head.settle(*held_out())
    assert head.separation == pytest.approx(1.5, rel=0.05)
    assert best_temperature(tempered_losses(head, *held_out())) == pytest.approx(1.0, abs=0.05)


def test_predictions_are_calibrated_once_it_has_settled():
    head = auto()
    for _ in range(25):
        z, y = drawn(head, 2.0 * head.separation / 3)
        head.settle(z, y)
    posterior = head.log_posterior(z).exp()
    confidence, answer = posterior.max(1)
    assert abs(float(confidence.mean() - (answer == y).float().mean())) < 0.03


def test_it_is_saved_with_the_weights():
    head, other = auto(), auto()
    head.settle(*drawn(head, 2.0))
    assert head.separation != pytest.approx(other.separation)
    other.load_state_dict(head.state_dict())
    assert other.separation == head.separation
    assert options_of(head)["separation"] == "auto"


def test_a_gaussian_posterior_averages_over_its_draws():
    head = auto(posterior="gaussian", draws=4)
    torch.manual_seed(0)
    z, y = drawn(head, 1.0)
    # noise of half a sigma on latents that fill the prior already makes every average too unsure
    assert 0.6 < best_temperature(tempered_losses(head, z, y)) < 0.95


def test_no_data_moves_nothing():
    head = auto()
    before = head.separation
    assert head.settle(torch.zeros(0, D), torch.zeros(0, dtype=torch.long)) == pytest.approx(before)
    assert best_temperature(torch.full((42,), math.nan)) == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separation": "auto", "means": "learned"}, "separation='auto' needs prior='gaussian' and means='simplex'"),
        ({"separation": "auto", "means": "simplex", "prior": "vmf"}, "separation='auto' needs prior='gaussian'"),
        ({"separation": "wide"}, "separation must be a number > 0 or 'auto'; got 'wide'"),
    ],
)
def test_what_cannot_settle_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        VariationalHead(D, C, **options)


def test_a_given_separation_does_not_settle():
    head = VariationalHead(D, C, means="simplex", separation=3.0)
    assert head.separation == 3.0
    with pytest.raises(ValueError, match=r"settle needs separation='auto'; got separation=3.0"):
        head.settle(*drawn(head, 1.0))
    with pytest.raises(ValueError, match="needs hard labels"):
        auto().settle(torch.zeros(4, D), torch.full((4, C), 1 / C))
