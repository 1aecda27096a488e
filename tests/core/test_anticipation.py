"""What a head anticipates of itself: the quadrature against closed forms, other quadratures and sampling; and its inverse."""

import copy
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

from varclass import VariationalHead
from varclass.core import anticipation
from varclass.core.anticipation import anticipate, anticipate_simplex, separation_for, width_for
from varclass.core.priors import PRIORS, GaussianPrior

separations = st.floats(0.05, 6)
weights = st.lists(st.floats(0.01, 1), min_size=2, max_size=12)
NUMBERS = ("accuracy", "confidence", "nll")


def normalized(given_weights) -> torch.Tensor:
    weight = torch.as_tensor(given_weights, dtype=torch.float64)
    return weight / weight.sum()


def zipf(num_classes: int) -> torch.Tensor:
    return normalized(1 / torch.arange(1, num_classes + 1))


def entropy(probs: torch.Tensor) -> float:
    return float(torch.special.entr(probs).sum())


def draw_scores(separation: float, probs: torch.Tensor, samples: int) -> dict[str, tuple[float, float]]:
    """Mean and standard error of each number, from simplex means in R^C and Bayes' rule written out."""
    num_classes = len(probs)
    generator = torch.Generator().manual_seed(1)
    mean = torch.eye(num_classes, dtype=torch.float64) - 1 / num_classes
    mean = separation * mean / mean.norm(dim=1, keepdim=True)
    y = torch.multinomial(probs, samples, replacement=True, generator=generator)
    z = mean[y] + torch.randn(samples, num_classes, dtype=torch.float64, generator=generator)
    log_posterior = torch.log_softmax(probs.log() - 0.5 * torch.cdist(z, mean).square(), dim=1)
    hit = (log_posterior.argmax(1) == y).double()
    values = (hit, log_posterior.amax(1).exp(), -log_posterior.gather(1, y[:, None])[:, 0])
    return {name: (float(v.mean()), float(v.std()) / math.sqrt(samples)) for name, v in zip(NUMBERS, values, strict=True)}


def assert_agree(found, exact) -> None:
    """A sampled result within 5 of its own standard errors of an exact one."""
    assert found.samples > 0
    for name in NUMBERS:
        assert abs(getattr(found, name) - getattr(exact, name)) < 5 * getattr(found, f"{name}_error"), (name, found, exact)


# ------------------------------------------------------------------------------------------- exact: other people's numbers


@pytest.mark.parametrize("separation", [1e-3, 0.3, 1.0, 2.5, 5.9])
def test_two_classes_uniform_are_right_with_probability_phi_of_r(separation):
    assert 1 - anticipate_simplex(separation, 2).accuracy == pytest.approx(stats.norm.sf(separation), rel=1e-6, abs=0)


@pytest.mark.parametrize("probs", [(0.5, 0.5), (0.7, 0.3), (0.99, 0.01)])
@pytest.mark.parametrize("separation", [0.05, 0.3, 1.0, 3.0])
def test_two_classes_have_a_closed_accuracy_and_a_one_dimensional_nll(separation, probs):
    """The log-odds of the true class are N(log p_y / p_other + 2 r^2, 4 r^2)."""
    error = nll = 0.0
    for own, other in (probs, probs[::-1]):
        center = math.log(own / other) + 2 * separation**2
        error += own * stats.norm.cdf(-center / (2 * separation))

        def loss(e, center=center):
            return stats.norm.pdf(e) * np.logaddexp(0, -center - 2 * separation * e)

        nll += own * integrate.quad(loss, -12, 12, epsabs=0, epsrel=1e-11, limit=200)[0]
    found = anticipate_simplex(separation, 2, torch.tensor(probs, dtype=torch.float64))
    assert 1 - found.accuracy == pytest.approx(error, rel=1e-9)
    assert found.nll == pytest.approx(nll, rel=1e-9)


@pytest.mark.parametrize("num_classes", [3, 10, 1000, 10_000])
@pytest.mark.parametrize("separation", [0.1, 2.0, 4.0, 6.0])
def test_uniform_accuracy_is_the_integral_of_phi_times_a_power_of_its_distribution(num_classes, separation):
    a = separation * math.sqrt(num_classes / (num_classes - 1))

    def correct(e):
        return stats.norm.pdf(e) * math.exp((num_classes - 1) * special.log_ndtr(e + a))

    expected = integrate.quad(correct, -10, 10, epsabs=1e-13, epsrel=1e-12, limit=400)[0]
    assert anticipate_simplex(separation, num_classes).accuracy == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("probs", [(1 / 3, 1 / 3, 1 / 3), (0.6, 0.3, 0.1)])
@pytest.mark.parametrize("separation", [0.3, 1.0, 2.0])
def test_three_classes_agree_with_gauss_hermite_in_the_plane_of_their_means(separation, probs):
    node, weight = np.polynomial.hermite_e.hermegauss(120)
    angle = 2 * np.pi * np.arange(3) / 3
    mean = separation * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    nll = 0.0
    for y, own in enumerate(probs):
        z = mean[y] + np.stack(np.meshgrid(node, node, indexing="ij"), axis=-1)
        log_posterior = special.log_softmax(np.log(probs) - 0.5 * ((z[:, :, None] - mean) ** 2).sum(-1), axis=-1)
        nll -= own * weight @ log_posterior[:, :, y] @ weight / (2 * np.pi)
    found = anticipate_simplex(separation, 3, torch.tensor(probs, dtype=torch.float64))
    assert found.nll == pytest.approx(nll, rel=1e-8)


@pytest.mark.parametrize("separation", [0.3, 1.5, 3.0])
@pytest.mark.parametrize("probs", [normalized(torch.ones(10)), zipf(40), normalized([1.0] * 5 + [0.05] * 5)])
def test_the_exact_numbers_are_what_bayes_rule_gives_on_draws(separation, probs):
    exact = anticipate_simplex(separation, len(probs), probs)
    for name, (mean, error) in draw_scores(separation, probs, 20_000).items():
        assert abs(getattr(exact, name) - mean) < 5 * error, name


def test_ten_thousand_classes_of_different_frequency_agree_with_draws():
    probs = zipf(10_000)
    exact = anticipate_simplex(4.0, 10_000, probs)
    generator = torch.Generator().manual_seed(2)
    a = 4.0 * math.sqrt(10_000 / 9_999)
    y = torch.multinomial(probs, 1000, replacement=True, generator=generator)
    score = probs.log() + a * torch.randn(1000, 10_000, generator=generator)  # of equidistant means
    score[torch.arange(1000), y] += a**2
    log_posterior = torch.log_softmax(score, dim=1)
    for expected, values in ((exact.accuracy, log_posterior.amax(1).exp()), (exact.nll, -log_posterior[torch.arange(1000), y])):
        assert abs(float(values.mean()) - expected) < 5 * float(values.std()) / math.sqrt(1000)


# -------------------------------------------------------------------------------------------------- exact: properties


@given(weight=weights, separation=separations, step=st.floats(0.01, 2))
def test_separation_raises_accuracy_and_lowers_nll(weight, separation, step):
    probs = normalized(weight)
    near, far = (anticipate_simplex(r, len(probs), probs) for r in (separation, separation + step))
    assert float(probs.max()) - 1e-12 <= near.accuracy <= far.accuracy + 1e-12
    assert far.accuracy <= 1
    assert 0 <= far.nll < near.nll <= entropy(probs) + 1e-9
    assert near.confidence == near.accuracy
    assert near.samples == near.accuracy_error == near.nll_error == 0


@given(weight=weights, separation=separations)
def test_the_order_of_the_classes_does_not_matter_and_impossible_ones_only_by_the_geometry(weight, separation):
    probs = normalized(weight)
    found, turned = (anticipate_simplex(separation, len(p), p) for p in (probs, probs.flip(0)))
    assert turned.accuracy == pytest.approx(found.accuracy, rel=1e-12)
    assert turned.nll == pytest.approx(found.nll, rel=1e-9)
    count = len(probs)
    same_distance = separation * math.sqrt(count / (count - 1) * count / (count + 1))
    padded = anticipate_simplex(same_distance, count + 1, torch.cat([probs, torch.zeros(1)]))
    assert padded.accuracy == pytest.approx(found.accuracy, rel=1e-12)
    assert padded.nll == pytest.approx(found.nll, rel=1e-9)


@pytest.mark.parametrize("num_classes", [2, 30])
def test_classes_of_equal_frequency_are_as_those_of_nearly_equal_frequency(num_classes):
    """The first are computed once and counted, the second one by one."""
    nearly = normalized(1 + 1e-10 * torch.arange(num_classes).double())
    assert len(nearly.unique()) == num_classes
    once, each = anticipate_simplex(2.0, num_classes), anticipate_simplex(2.0, num_classes, nearly)
    assert each.accuracy == pytest.approx(once.accuracy, rel=1e-8)
    assert each.nll == pytest.approx(once.nll, rel=1e-8)


@pytest.mark.parametrize("probs", [zipf(50), normalized([0.499999, 0.5, 1e-6]), torch.tensor([1.0, 0.0])])
def test_the_limits_are_the_likeliest_class_and_certainty(probs):
    near, far, farther = (anticipate_simplex(r, len(probs), probs) for r in (1e-7, 11.0, 1e4))
    assert near.accuracy == pytest.approx(float(probs.max()), rel=1e-6)
    assert near.nll == pytest.approx(entropy(probs.double()), rel=1e-6)
    assert 0 <= far.nll < 1e-10
    assert (farther.accuracy, farther.nll) == (1, 0)


# -------------------------------------------------------------------------------------------------------- the inverse


@given(weight=weights, separation=st.floats(0.3, 5))
def test_the_inverse_returns_the_separation(weight, separation):
    probs = normalized(weight)
    accuracy = anticipate_simplex(separation, len(probs), probs).accuracy
    if accuracy - float(probs.max()) > 1e-6:  # below, the accuracy no longer tells separations apart
        assert separation_for(accuracy, len(probs), probs) == pytest.approx(separation, abs=1e-6)


@pytest.mark.parametrize("num_classes", [2, 10, 1000, 10_000])
@pytest.mark.parametrize("error", [0.4, 1e-3, 1e-9])
def test_the_inverse_reaches_any_accuracy_for_any_number_of_classes(num_classes, error):
    separation = separation_for(1 - error, num_classes)
    assert 1 - anticipate_simplex(separation, num_classes).accuracy == pytest.approx(error, rel=1e-6)
    if num_classes == 2:
        assert separation == pytest.approx(stats.norm.isf(error), abs=1e-6)


def test_the_inverse_works_just_above_chance():
    assert separation_for(0.500001, 2) == pytest.approx(stats.norm.ppf(0.500001), rel=1e-2)
    assert separation_for(2e-4, 10_000) > 0


@pytest.mark.parametrize("accuracy", [0.7, 0.3, 1.0, 1.2, -1.0, math.nan, "high", None])
def test_the_inverse_refuses_what_no_separation_anticipates(accuracy):
    with pytest.raises(ValueError, match=r"accuracy must lie between 0\.7, the largest") as caught:
        separation_for(accuracy, 3, torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64))
    assert f"got {accuracy!r}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_arguments_are_checked():
    with pytest.raises(ValueError, match=r"num_classes must be a whole number of at least 2; got 1"):
        separation_for(0.9, 1)
    with pytest.raises(ValueError, match=r"separation must be a finite number > 0; got 0"):
        anticipate_simplex(0, 3)
    with pytest.raises(ValueError, match=r"label_probs must hold 3 probabilities; got shape \(2,\)"):
        anticipate_simplex(1.0, 3, torch.tensor([0.5, 0.5]))
    with pytest.raises(ValueError, match=r"samples must be a whole number of at least 2; got 1"):
        anticipate(GaussianPrior(3, 2, "unit", "simplex", 2.0), samples=1)
    with pytest.raises(ValueError, match=r"label_probs must hold 3 probabilities; got shape \(2,\)"):
        width_for(0.9, GaussianPrior(3, 2, "unit", "simplex", 2.0), torch.tensor([0.5, 0.5]))


# ---------------------------------------------------------------------------------------------------------- of a head


def widened(prior, width):
    prior = copy.deepcopy(prior)
    prior.scale_factor *= width
    return prior


def gaussian(num_classes: int, latent_dim: int, covariance: str = "unit", means: str = "simplex") -> GaussianPrior:
    torch.manual_seed(0)
    return GaussianPrior(num_classes, latent_dim, covariance, means, 2.0)


@pytest.mark.parametrize("covariance", ["unit", "shared"])
@pytest.mark.parametrize("means", ["simplex", "learned"])
@pytest.mark.parametrize("probs", [None, zipf(6)])
def test_equidistant_means_are_recognized_and_sampling_agrees(monkeypatch, covariance, means, probs):
    prior = gaussian(6, 8, covariance, means)
    with torch.no_grad():
        prior.log_scale.add_(0.2 * torch.randn(prior.log_scale.shape) if covariance == "shared" else 0)
        prior.origin.add_(5)
        prior.offset.add_(torch.randn(8))  # a common shift moves no class from another
    prior.scale_factor = 1.3
    exact = anticipate(prior, probs)
    assert exact.samples == 0
    assert exact.accuracy == pytest.approx(anticipate_simplex(2 / 1.3, 6, probs).accuracy, rel=1e-6)
    monkeypatch.setattr(anticipation, "EQUAL", -1.0)
    assert_agree(anticipate(prior, probs), exact)


@pytest.mark.parametrize("accuracy", [0.55, 0.9, 0.9999])
def test_of_equidistant_means_the_width_is_the_ratio_of_separations(accuracy):
    prior = gaussian(6, 5)
    assert 2.0 / width_for(accuracy, prior, zipf(6)) == pytest.approx(separation_for(accuracy, 6, zipf(6)), rel=2e-4)


@pytest.mark.parametrize("name", PRIORS)
def test_priors_as_wide_as_it_says_anticipate_that_accuracy(name):
    torch.manual_seed(0)
    prior = PRIORS[name](6, 5, "shared", "learned", None)
    before = copy.deepcopy(prior.state_dict())
    for accuracy in (0.4, 0.75, 0.97):
        width = width_for(accuracy, prior, samples=4000)
        assert anticipate(widened(prior, width), samples=4000).accuracy == pytest.approx(accuracy, abs=2e-3)
    assert prior.training
    assert all(torch.equal(value, before[name]) for name, value in prior.state_dict().items())


@pytest.mark.parametrize("accuracy", [0.1, 1.0, math.nan, "high", None])
def test_the_width_of_what_no_width_anticipates_is_refused(accuracy):
    prior = gaussian(4, 3)
    with pytest.raises(ValueError, match=r"accuracy must lie between 0\.25\d* and 1, .* thousand times as wide") as caught:
        width_for(accuracy, prior)
    assert f"got {accuracy!r}" in str(caught.value)
    assert prior.scale_factor == 1


@pytest.mark.parametrize("made", ["axes", "simplex", "covariance"])
def test_what_a_head_anticipates_is_of_its_predictions_in_either_mode(made):
    options = {"objective": "gm", "covariance": "unit", "means": "simplex", "separation": "auto"} if made == "simplex" else {}
    head = VariationalHead(8, 6, **options)
    head.class_prior.settled = 1.8
    if made == "covariance":
        head.class_prior.root = torch.eye(6) + 0.1
    told = [anticipate(head.train(mode).class_prior) for mode in (True, False)]
    assert told[0] == told[1]
    if made != "covariance":
        assert told[1].accuracy == pytest.approx(anticipate_simplex(head.separation, 6).accuracy, abs=1e-6)
    assert not head.class_prior.training


def test_means_that_are_not_equidistant_are_sampled():
    assert anticipate(gaussian(6, 4)).samples > 0  # no six points of four dimensions are equidistant
    assert anticipate(gaussian(6, 8, "isotropic")).samples > 0
    moved = gaussian(6, 8)
    moved.offset[0] *= 1.01
    assert anticipate(moved).samples > 0
    two = gaussian(2, 8, "shared", "learned")
    two.place(torch.randn(2, 8))
    assert anticipate(two).samples == 0  # two points always are


def test_means_that_have_collapsed_anticipate_chance():
    prior = gaussian(4, 8, means="learned")
    prior.place(torch.ones(4, 8))
    found = anticipate(prior, normalized([4, 3, 2, 1]))
    assert found.confidence == pytest.approx(0.4, rel=1e-5)
    assert abs(found.accuracy - 0.4) < 5 * found.accuracy_error


def test_unequal_variances_agree_with_an_integral_over_the_line():
    prior = GaussianPrior(2, 1, "diagonal", "learned", 1.0).double()
    mean, sigma, probs = [-1.0, 2.0], [0.7, 3.0], [0.4, 0.6]
    prior.place(torch.tensor(mean).double()[:, None], torch.tensor(sigma).double()[:, None])
    z = np.linspace(-30, 40, 200_001)
    joint = np.stack([p * stats.norm.pdf(z, m, s) for p, m, s in zip(probs, mean, sigma, strict=True)])
    accuracy = integrate.trapezoid(joint.max(0), z)
    nll = integrate.trapezoid(special.entr(joint).sum(0) - special.entr(joint.sum(0)), z)
    assert_agree(anticipate(prior, torch.tensor(probs)), anticipation.Anticipated(accuracy, accuracy, nll))


FAMILIES = [(name, covariance) for name, family in PRIORS.items() for covariance in family.covariances]


@pytest.mark.parametrize(("name", "covariance"), FAMILIES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_family_is_calibrated_when_latents_follow_it(name, covariance, dtype):
    torch.manual_seed(3)
    head = VariationalHead(5, 7, prior=name, covariance=covariance, means="learned", separation=2.0).to(dtype)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    found = anticipate(head.class_prior, head.label_prior.probs())
    assert found.samples == 2**14
    assert abs(found.accuracy - found.confidence) < 5 * found.accuracy_error
    assert 0 < found.confidence_error < found.accuracy_error <= 0.5 / math.sqrt(2**14 - 1)
    assert 1 / 7 < found.accuracy < 1


def test_sampling_keeps_no_graph(monkeypatch):
    prior, seen = gaussian(6, 4, "diagonal", "learned"), []
    apart = prior.log_prob_apart
    monkeypatch.setattr(prior, "log_prob_apart", lambda *args: seen.append(apart(*args)) or seen[-1])
    anticipate(prior, samples=10)
    assert [part.requires_grad for parts in seen for part in parts] == [False, False]


@pytest.mark.parametrize("name", PRIORS)
def test_chunks_are_more_of_the_same_draws(monkeypatch, name):
    torch.manual_seed(4)
    prior = PRIORS[name](30, 4, "isotropic", "learned", 2.0)
    whole = anticipate(prior, zipf(30), samples=5000)
    monkeypatch.setattr(anticipation, "CHUNK_ENTRIES", 64 * 700)  # 7 chunks of 700, and a last one of 100
    chunked = anticipate(prior, zipf(30), samples=5000, seed=1)
    assert chunked.samples == 5000
    for quantity in NUMBERS:
        error = math.hypot(getattr(whole, f"{quantity}_error"), getattr(chunked, f"{quantity}_error"))
        assert 0 < abs(getattr(whole, quantity) - getattr(chunked, quantity)) < 5 * error


@pytest.mark.parametrize("name", PRIORS)
def test_a_seed_repeats_itself_and_the_global_random_state_stays(name):
    prior = PRIORS[name](6, 4, "isotropic", "learned", 2.0)
    before = torch.get_rng_state()
    first = anticipate(prior, samples=500, seed=5)
    assert torch.equal(torch.get_rng_state(), before)
    torch.randn(10)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert anticipate(prior, samples=500, seed=5) == first
    assert anticipate(prior, samples=500, seed=6) != first


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", PRIORS)
def test_on_a_gpu_it_agrees_with_the_cpu_and_leaves_both_random_states(name):
    torch.manual_seed(6)
    prior = PRIORS[name](6, 4, "isotropic", "learned", 2.0)
    on_cpu = anticipate(prior, zipf(6))
    before = torch.get_rng_state(), torch.cuda.get_rng_state()
    anticipate(prior, zipf(6))
    on_gpu = anticipate(prior.cuda(), zipf(6).cuda())
    assert torch.equal(torch.get_rng_state(), before[0])
    assert torch.equal(torch.cuda.get_rng_state(), before[1])
    assert anticipate(prior, zipf(6)) == on_gpu
    for quantity in NUMBERS:
        error = math.hypot(getattr(on_cpu, f"{quantity}_error"), getattr(on_gpu, f"{quantity}_error"))
        assert abs(getattr(on_cpu, quantity) - getattr(on_gpu, quantity)) < 5 * error
