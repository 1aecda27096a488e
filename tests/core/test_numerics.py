"""float32 against float64 where the expanded square cancels, and low-precision autocast that must not reach the head."""

import math

import pytest
import torch
from tests.combinations import skip_if_refused

from varclass import VariationalHead
from varclass.core.head import OBJECTIVES, PRIORS
from varclass.core.priors import GaussianPrior

C, D, SIGMA = 8, 512, 0.01
every_covariance = pytest.mark.parametrize("covariance", ["diagonal", "isotropic", "shared"])


def make(covariance: str, center: float, distance: float, seed: int = 0) -> GaussianPrior:
    """Means `center` from the origin and `distance` apart, every sigma within 20% of 0.01 (or 0.01, if it has no parameter)."""
    torch.manual_seed(seed)
    prior = GaussianPrior(C, D, covariance, "simplex", 1.0)
    common = torch.nn.functional.normalize(torch.randn(D), dim=0)
    apart = prior.offset * (distance / float(torch.pdist(prior.offset)[0]))
    jitter = 0.4 * (torch.rand_like(prior.log_scale) - 0.5) * (covariance != "unit")
    prior.place(center * common + apart, jitter.exp())
    prior.scale_factor = SIGMA
    torch.testing.assert_close(prior.log_sigma().detach(), math.log(SIGMA) + jitter, rtol=1e-5, atol=0)
    return prior


def latents(prior: GaussianPrior, noise: float) -> torch.Tensor:
    """Samples of every class, and points near the middle between two classes."""
    torch.manual_seed(1)
    y = torch.arange(C).repeat(8)
    middle = (prior.mean[y] + prior.mean[(y + 1) % C]) / 2
    return torch.cat([prior.sample(y), middle + noise * torch.randn_like(middle)]).detach()


def in_float64(prior: GaussianPrior, z: torch.Tensor) -> torch.Tensor:
    """torch.distributions, one class at a time, at the same float32 parameters."""
    # mean and sigma too must come from float64, or the reference would share their rounding
    double = GaussianPrior(C, D, prior.covariance, "simplex", 1.0).double()
    double.load_state_dict(prior.state_dict())
    mean = double.mean.detach()
    sigma = double.log_sigma().detach().exp().expand(C, D)
    return torch.stack([torch.distributions.Normal(mean[k], sigma[k]).log_prob(z.double()).sum(1) for k in range(C)], dim=1)


def naive(prior: GaussianPrior, z: torch.Tensor) -> torch.Tensor:
    """|z|^2 - 2 z.mu + |mu|^2 as it stands."""
    log_sigma = prior.log_sigma().expand(C, D)
    precision = torch.exp(-2 * log_sigma)
    square = z.square() @ precision.T - 2 * z @ (precision * prior.mean).T + (precision * prior.mean.square()).sum(1)
    return -0.5 * square - log_sigma.sum(1) - 0.5 * D * math.log(2 * math.pi)


@pytest.mark.parametrize("covariance", ["diagonal", "isotropic", "shared", "unit"])
def test_float32_is_within_a_thousandth_of_a_nat_when_the_means_sit_far_from_the_origin(covariance):
    prior = make(covariance, center=100.0, distance=4 * SIGMA)
    z = latents(prior, noise=SIGMA)
    expected = in_float64(prior, z)
    y = torch.arange(C).repeat(16)
    assert float((prior.log_prob(z).detach().double() - expected).abs().max()) < 1e-3
    with torch.no_grad():
        assert float((prior.log_joint(z, torch.zeros(C)).double() - expected).abs().max()) < 1e-3
    assert float((prior.log_prob_of(z, y).detach().double() - expected.gather(1, y[:, None])[:, 0]).abs().max()) < 1e-3


@pytest.mark.parametrize("covariance", ["shared", "unit"])
def test_float32_is_within_a_thousandth_of_a_nat_when_learned_means_have_drifted_away_together(covariance):
    prior = make(covariance, center=0.0, distance=4 * SIGMA)
    with torch.no_grad():
        prior.offset.add_(10 / math.sqrt(D))  # a thousand sigma from the origin, which stays where it was
    z = latents(prior, noise=SIGMA)
    assert float((prior.log_prob(z).detach().double() - in_float64(prior, z)).abs().max()) < 1e-3


@every_covariance
def test_float32_keeps_its_digits_when_the_origin_is_far_from_where_the_means_have_come_to_be(covariance):
    prior = make(covariance, center=0.0, distance=4 * SIGMA)
    away = torch.full((D,), 10 / math.sqrt(D))  # a thousand sigma
    with torch.no_grad():
        prior.offset.add_(SIGMA * away * torch.exp(-prior.log_sigma()))  # in units of sigma before the factor
        prior.origin.sub_(away)
    z = latents(prior, noise=SIGMA)
    assert (
        float((prior.log_prob(z).detach().double() - in_float64(prior, z)).abs().max()) < 1e-2
    )  # several nats without centring


@pytest.mark.parametrize("covariance", ["diagonal", "isotropic", "shared", "unit"])
def test_the_naive_expansion_fails_where_the_head_does_not(covariance):
    prior = make(covariance, center=100.0, distance=4 * SIGMA)
    z = latents(prior, noise=SIGMA)
    assert float((naive(prior, z).detach().double() - in_float64(prior, z)).abs().max()) > 1.0
    near = make(covariance, center=0.0, distance=4 * SIGMA)  # the same formula is right where nothing cancels
    z = latents(near, noise=SIGMA)
    assert float((naive(near, z).detach().double() - in_float64(near, z)).abs().max()) < 1e-2


def size_of_a_logit(prior: GaussianPrior, z: torch.Tensor) -> float:
    """The numbers added up on the way to a log-odds, each of which float32 rounds: z'Pz, z'Pm, m'Pm and log-determinant."""
    mean, precision = prior.mean.detach(), torch.exp(-2 * prior.log_sigma().detach())
    m, x = mean - mean.mean(0), z - mean.mean(0)
    cross = (x @ (precision * m).T).abs().max()
    squares = 0.5 * (precision.mean(0) * x.square()).sum(1).max() + 0.5 * (precision * m.square()).sum(1).max()
    return float(cross + squares) + D * abs(math.log(SIGMA))


@pytest.mark.parametrize("covariance", ["diagonal", "isotropic", "shared", "unit"])
@pytest.mark.parametrize("distance", [0.5, 1.0])
@pytest.mark.parametrize("noise", [SIGMA, SIGMA**2])
def test_float32_posteriors_agree_to_four_digits_when_the_means_are_of_order_one_apart(covariance, distance, noise):
    prior = make(covariance, center=0.0, distance=distance)
    z = latents(prior, noise=noise)
    expected = torch.softmax(in_float64(prior, z), 1)
    if noise < SIGMA and covariance in ("shared", "unit"):
        assert int((expected.max(1).values < 0.9).sum()) > 10  # otherwise the comparison half-way says nothing
    got = torch.softmax(prior.log_prob_apart(z, torch.zeros(C))[0], 1).detach().double()
    error, sampled = (got - expected).abs(), len(z) // 2
    assert float(error[:sampled].max()) < 1e-4
    # half-way between means up to 100 sigma apart, at log-odds near zero, the slope of a softmax is 1/4, and two logits of
    # several thousand, whose digits float32 rounds, decide
    rounding = 2 / 4 * torch.finfo(torch.float32).eps * size_of_a_logit(prior, z)
    assert float(error[sampled:].max()) < max(1e-4, rounding)


@every_covariance
def test_float32_gradients_follow_float64_where_the_means_sit_far_from_the_origin(covariance):
    prior = make(covariance, center=100.0, distance=4 * SIGMA)
    double = GaussianPrior(C, D, covariance, "simplex", 1.0).double()
    double.load_state_dict(prior.state_dict())
    z, y, grads = latents(prior, noise=SIGMA), torch.arange(C).repeat(16), []
    for p in (prior, double):
        z_leaf = z.to(p.mean.dtype).requires_grad_()
        loss = torch.nn.functional.cross_entropy(p.log_prob(z_leaf), y)
        grads.append([g.double() for g in torch.autograd.grad(loss, [z_leaf, p.log_scale])])
    for got, expected in zip(*grads, strict=True):
        assert float((got - expected).abs().max() / expected.abs().max()) < 1e-3


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_does_not_reach_the_head(objective, prior, dtype):
    skip_if_refused(objective, prior)
    torch.manual_seed(2)
    head = VariationalHead(16, 4, latent_dim=8, objective=objective, prior=prior, ratio="mlp", posterior="gaussian")
    features, y = torch.randn(6, 16), torch.randint(4, (6,))
    found = []
    for enabled in (False, True):
        torch.manual_seed(3)
        with torch.autocast("cpu", dtype=dtype, enabled=enabled):
            results = (head(features), head.log_posterior(features), head.log_evidence(features), head.latent(features))
            found.append((*results, *head.terms(features, y).as_dict().values(), head.loss(features, y)))
    assert found[1][0].dtype == torch.float32
    assert found[1][-1].dtype == torch.float32
    for got, expected in zip(found[1], found[0], strict=True):
        assert torch.equal(torch.as_tensor(got), torch.as_tensor(expected))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_features_are_accepted_and_computed_in_float32(dtype):
    torch.manual_seed(4)
    head = VariationalHead(16, 4)
    features, y = torch.randn(6, 16).to(dtype).requires_grad_(), torch.randint(4, (6,))
    assert head(features).dtype == torch.float32
    assert torch.equal(head(features), head(features.float()))
    torch.manual_seed(5)
    loss = head.loss(features, y)
    torch.manual_seed(5)
    assert torch.equal(loss, head.loss(features.float(), y))
    assert loss.dtype == torch.float32
    loss.backward()
    assert features.grad.dtype == dtype
    soft = torch.full((6, 4), 0.25, dtype=dtype)
    assert head.loss(features, soft).dtype == torch.float32


def test_an_encoder_under_autocast_and_its_head_train_in_one_backward():
    torch.manual_seed(6)
    encoder, head = torch.nn.Linear(8, 16), VariationalHead(16, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        features = encoder(torch.randn(6, 8))
        assert features.dtype == torch.bfloat16
        head.loss(features, torch.randint(4, (6,))).backward()
    assert bool((encoder.weight.grad != 0).any())
    assert all(parameter.grad.dtype == torch.float32 for parameter in head.parameters())


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_float64_soft_labels_do_not_change_the_type_of_a_float32_loss(objective):
    torch.manual_seed(7)
    head = VariationalHead(5, 3, objective=objective)
    assert head.loss(torch.randn(2, 5), torch.full((2, 3), 1 / 3, dtype=torch.float64)).dtype == torch.float32


@pytest.mark.parametrize("value", [0.0, 1e-12, 1e4, 1e8])
@pytest.mark.parametrize("prior", PRIORS)
def test_extreme_features_give_finite_losses_and_gradients(prior, value):
    torch.manual_seed(8)
    head = VariationalHead(5, 3, prior=prior)
    features = torch.full((2, 5), value, requires_grad=True)
    loss = head.loss(features, torch.tensor([0, 1]))
    loss.backward()
    assert math.isfinite(loss.item())
    assert all(bool(torch.isfinite(p.grad).all()) for p in (features, *head.parameters()))
