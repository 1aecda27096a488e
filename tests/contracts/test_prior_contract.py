"""What every class prior promises. A family is tested by being registered: nothing here names one, except where it must."""

import math

import pytest
import torch
from torch import nn

from varclass import VariationalHead
from varclass.core.directions import spread_directions
from varclass.core.options import Registry
from varclass.core.priors import ALL, PRIORS, ClassPrior

B, C, D = 7, 4, 6
CASES = [(name, covariance) for name, family in PRIORS.items() for covariance in family.covariances]
every_prior = pytest.mark.parametrize(("name", "covariance"), CASES)


def make(
    name: str, covariance: str, *, means: str = "learned", dtype: torch.dtype = torch.float64, seed: int = 0
) -> ClassPrior:
    """A prior whose parameters have moved from where they start, so that no symmetry hides a mistake."""
    torch.manual_seed(seed)
    prior = PRIORS[name](C, D, covariance, means, 4.0).to(dtype)
    with torch.no_grad():
        for parameter in prior.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    prior.scale_factor = math.exp(0.1)
    return prior


def latents(prior: ClassPrior, seed: int = 1) -> torch.Tensor:
    torch.manual_seed(seed)
    return prior.support(2 * torch.randn(B, D, dtype=prior.log_scale.dtype))


def labels(seed: int = 2) -> torch.Tensor:
    return torch.randint(C, (B,), generator=torch.Generator().manual_seed(seed))


@every_prior
def test_log_prob_has_a_row_per_latent_and_a_column_per_class(name, covariance):
    prior = make(name, covariance)
    log_prob = prior.log_prob(latents(prior))
    assert log_prob.shape == (B, C)
    assert log_prob.dtype == torch.float64
    assert prior.log_prob(torch.zeros(0, D, dtype=torch.float64)).shape == (0, C)


@every_prior
def test_log_prob_of_is_the_gathered_log_prob(name, covariance):
    prior, y = make(name, covariance), labels()
    z = latents(prior)
    torch.testing.assert_close(prior.log_prob_of(z, y), prior.log_prob(z).gather(1, y[:, None])[:, 0], rtol=1e-9, atol=1e-9)


@every_prior
@pytest.mark.parametrize("classes", [ALL, slice(0, 1), slice(1, 3), slice(3, 4)], ids=str)
def test_log_prob_of_some_classes_is_the_slice_in_value_and_gradient(name, covariance, classes):
    prior = make(name, covariance)
    z = latents(prior).requires_grad_()
    inputs = [z, *prior.parameters()]
    weight = torch.randn(B, C, dtype=torch.float64)[:, classes]
    part, whole = prior.log_prob(z, classes), prior.log_prob(z)[:, classes]
    torch.testing.assert_close(part, whole, rtol=1e-9, atol=1e-9)
    for got, expected in zip(
        torch.autograd.grad((part * weight).sum(), inputs), torch.autograd.grad((whole * weight).sum(), inputs), strict=True
    ):
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)


def values_and_gradients(outputs, weights, inputs) -> list[torch.Tensor]:
    loss = sum((output * weight).sum() for output, weight in zip(outputs, weights, strict=True))
    grads = torch.autograd.grad(loss, inputs, allow_unused=True) if loss.requires_grad else [None] * len(inputs)
    return [torch.zeros_like(i) if g is None else g for i, g in zip(inputs, grads, strict=True)]


@every_prior
def test_log_prob_apart_adds_up_to_log_prob_plus_the_shift(name, covariance):
    prior = make(name, covariance)
    weight, found = torch.randn(B, C, dtype=torch.float64), []
    for apart in (True, False):
        z, shift = latents(prior).requires_grad_(), torch.linspace(-1, 1, C, dtype=torch.float64).requires_grad_()
        relative, common = prior.log_prob_apart(z, shift) if apart else (prior.log_prob(z) + shift, z.new_zeros(B))
        assert common.shape == (B,)
        whole = relative + common[:, None]
        found.append([whole.detach(), *values_and_gradients([whole], [weight], [z, shift, *prior.parameters()])])
    for got, expected in zip(*found, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)


@every_prior
@pytest.mark.parametrize("factor", [1.0, 1.7])
def test_log_joint_is_log_prob_plus_the_shift_with_and_without_gradients(name, covariance, factor):
    prior, shift = make(name, covariance), torch.linspace(-1, 1, C, dtype=torch.float64)
    prior.scale_factor = factor
    z = latents(prior)
    expected = prior.log_prob(z) + shift
    torch.testing.assert_close(prior.log_joint(z, shift), expected, rtol=1e-9, atol=1e-9)
    with torch.no_grad():
        torch.testing.assert_close(prior.log_joint(z, shift), expected, rtol=1e-9, atol=1e-9)


@every_prior
@pytest.mark.parametrize("used", [(1, 1), (1, 0), (0, 1)])
def test_log_prob_split_is_the_posterior_and_log_prob_of_detached_latents(name, covariance, used):
    prior, y = make(name, covariance), labels()
    weights = used[0] * torch.randn(B, C, dtype=torch.float64), used[1] * torch.randn(B, dtype=torch.float64)
    found = []
    for split in (True, False):
        z, shift = latents(prior).requires_grad_(), torch.linspace(-1, 1, C, dtype=torch.float64).requires_grad_()
        if split:
            relative, own = prior.log_prob_split(z, y, shift)
        else:
            relative, own = prior.log_prob(z) + shift, prior.log_prob_of(z.detach(), y) + shift[y]
        every = torch.log_softmax(relative, 1)  # the relative part is defined up to a number per latent
        inputs = [z, shift, *prior.parameters()]
        found.append([every.detach(), own.detach(), *values_and_gradients([every, own], weights, inputs)])
    for got, expected in zip(*found, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)


@every_prior
def test_samples_lie_on_the_support_and_carry_no_gradient(name, covariance):
    prior, y = make(name, covariance), labels()
    z = prior.sample(y)
    assert z.shape == (B, D)
    assert z.dtype == torch.float64
    assert not z.requires_grad
    assert bool(torch.isfinite(z).all())
    torch.testing.assert_close(prior.support(z), z, rtol=1e-9, atol=1e-12)
    assert prior.sample(y[:0]).shape == (0, D)
    assert not torch.equal(prior.sample(y), z)


@every_prior
def test_samples_of_a_class_are_likelier_under_it_than_under_any_other(name, covariance):
    prior = make(name, covariance)
    y = torch.arange(C).repeat_interleave(500)
    torch.manual_seed(3)
    log_prob = prior.log_prob(prior.sample(y)).detach()
    margin = (log_prob.gather(1, y[:, None]) - log_prob).reshape(C, 500, C)
    mean, error = margin.mean(1), margin.std(1) / math.sqrt(500)
    others = ~torch.eye(C, dtype=torch.bool)
    assert bool((mean > 5 * error)[others].all())


@every_prior
def test_samples_average_to_a_log_density_that_integrates_to_one(name, covariance):
    """E_{z ~ p(z|a)} p(z|b) / p(z|a) = 1: normalisation and sampler agree, whatever the family."""
    torch.manual_seed(0)
    prior = PRIORS[name](2, 3, covariance, "learned", 1.0).double()
    with torch.no_grad():
        for parameter in prior.parameters():
            parameter.mul_(0.5)  # overlapping classes: the ratio then has a modest variance
    torch.manual_seed(4)
    log_prob = prior.log_prob(prior.sample(torch.zeros(20_000, dtype=torch.long))).detach()
    ratio = torch.exp(log_prob[:, 1] - log_prob[:, 0])
    assert abs(float(ratio.mean()) - 1) < 5 * float(ratio.std()) / math.sqrt(len(ratio))


@every_prior
def test_standardize_passes_a_gradient_to_the_latents_and_none_to_theta(name, covariance):
    prior, y = make(name, covariance), labels()
    z = latents(prior).requires_grad_()
    out = prior.standardize(z, y)
    assert out.shape == (B, D)
    out.square().sum().backward()
    assert bool((z.grad != 0).any())
    assert all(parameter.grad is None for parameter in prior.parameters())


@every_prior
def test_standardized_samples_look_alike_in_every_class(name, covariance):
    """In the frame of its class, every prior is the same if the scales are: the means of the samples then agree."""
    torch.manual_seed(0)
    prior, n = PRIORS[name](C, D, covariance, "learned", 4.0).double(), 2000
    y = torch.arange(C).repeat_interleave(n)
    u = prior.standardize(prior.sample(y), y).reshape(C, n, D)
    mean, error = u.mean(1), u.std(1) / math.sqrt(n)
    for k in range(1, C):
        assert bool(((mean[k] - mean[0]).abs() < 5 * torch.hypot(error[k], error[0])).all())


@every_prior
@pytest.mark.parametrize("value", [1e6, -1e6, 12345.6, 1e20, 0.0])
def test_sigma_stays_within_its_limit_of_one_whatever_the_parameter(name, covariance, value):
    prior = make(name, covariance, dtype=torch.float32)
    prior.scale_factor = 1.0
    with torch.no_grad():
        prior.log_scale.copy_(value * torch.linspace(0.5, 1, prior.log_scale.numel()).reshape(prior.log_scale.shape))
    sigma = prior.log_sigma().exp()
    assert bool((sigma <= prior.scale_limit * (1 + 1e-5)).all())
    assert bool((sigma >= (1 - 1e-5) / prior.scale_limit).all())
    z = torch.cat([latents(prior), prior.sample(labels())])
    assert bool(torch.isfinite(prior.log_prob(z)).all())
    assert bool(torch.isfinite(prior.log_prob_of(z, labels().repeat(2))).all())


@every_prior
def test_a_larger_calibration_factor_is_a_larger_sigma(name, covariance):
    prior = make(name, covariance)
    before = prior.log_sigma()
    prior.scale_factor *= 2
    torch.testing.assert_close(prior.log_sigma(), before + math.log(2), rtol=1e-9, atol=1e-9)


@every_prior
@pytest.mark.parametrize("means", ["learned", "simplex"])
def test_gradients_are_those_of_finite_differences(name, covariance, means):
    prior, y = make(name, covariance, means=means), labels()[:3]
    z = latents(prior)[:3].detach().requires_grad_()
    inputs = (z, *prior.parameters())  # gradcheck nudges these tensors in place, so the module sees it
    assert torch.autograd.gradcheck(lambda z, *theta: prior.log_prob(z), inputs)
    assert torch.autograd.gradcheck(lambda z, *theta: prior.log_prob_of(z, y), inputs)
    assert torch.autograd.gradcheck(lambda z, *theta: prior.log_prob(z, slice(1, 3)), inputs)
    assert torch.autograd.gradgradcheck(lambda z, *theta: prior.log_prob(z), inputs)


def location_of(tensors) -> torch.Tensor:
    found = [value for key, value in tensors if key != "log_scale" and value.shape == (C, D)]
    assert len(found) == 1
    return found[0].detach()


@every_prior
def test_simplex_means_are_equidistant_and_are_buffers(name, covariance):
    prior = PRIORS[name](C, D, covariance, "simplex", 4.0).double()
    assert [key for key, _ in prior.named_parameters() if key != "log_scale"] == []
    location = location_of(prior.named_buffers())
    distance = torch.pdist(location)
    torch.testing.assert_close(distance, distance[0].expand_as(distance), rtol=1e-5, atol=0)
    assert float(distance[0]) > 0
    norm = location.norm(dim=1)
    torch.testing.assert_close(norm, norm[0].expand_as(norm), rtol=1e-5, atol=0)


@every_prior
def test_learned_means_start_where_fixed_ones_stay(name, covariance):
    torch.manual_seed(5)
    fixed = location_of(PRIORS[name](C, D, covariance, "simplex", 3.0).named_buffers())
    torch.manual_seed(5)
    learned = location_of(PRIORS[name](C, D, covariance, "learned", 3.0).named_parameters())
    assert torch.equal(fixed, learned)


@pytest.mark.parametrize("covariance", PRIORS["gaussian"].covariances)
@pytest.mark.parametrize("separation", [0.5, 4.0])
def test_gaussian_means_are_separation_sigmas_from_the_origin(covariance, separation):
    prior = PRIORS["gaussian"](C, D, covariance, "simplex", separation)
    torch.testing.assert_close(prior.mean.norm(dim=1), torch.full((C,), separation), rtol=1e-5, atol=0)
    assert bool((prior.log_sigma() == 0).all())


@pytest.mark.parametrize("separation", [1.0, 4.0])
def test_von_mises_fisher_means_are_separation_sigmas_from_the_origin(separation):
    """|E z| / sigma with sigma^2 the variance of each of the D - 1 directions across the mean, on average."""
    torch.manual_seed(6)
    prior, n = PRIORS["vmf"](C, D, "unit", "simplex", separation).double(), 50_000
    z = prior.sample(torch.zeros(n, dtype=torch.long))
    length = float((z @ nn.functional.normalize(prior.direction[0], dim=0)).mean())
    sigma = math.sqrt((1 - length**2) / (D - 1))
    assert length / sigma == pytest.approx(separation, rel=0.05)  # initial_kappa inverts |E z| by a known approximation


@pytest.mark.parametrize(("num_classes", "dim"), [(2, 1), (2, 5), (4, 3), (10, 9), (10, 64)])
def test_directions_are_a_regular_simplex_where_the_dimension_allows(num_classes, dim):
    torch.manual_seed(7)
    x = spread_directions(num_classes, dim).double()
    gram = torch.full((num_classes, num_classes), -1 / (num_classes - 1), dtype=torch.float64).fill_diagonal_(1.0)
    torch.testing.assert_close(x @ x.T, gram, rtol=0, atol=1e-6)


def max_cosine(x: torch.Tensor) -> float:
    return float((x @ x.T).fill_diagonal_(-1).max())


@pytest.mark.parametrize(("num_classes", "dim"), [(12, 3), (50, 8), (200, 16)])
def test_directions_past_a_simplex_are_unit_vectors_much_further_apart_than_random(num_classes, dim):
    torch.manual_seed(8)
    x = spread_directions(num_classes, dim)
    torch.testing.assert_close(x.norm(dim=1), torch.ones(num_classes), rtol=1e-5, atol=0)
    random = min(max_cosine(nn.functional.normalize(torch.randn(num_classes, dim), dim=1)) for _ in range(10))
    assert max_cosine(x) < random - 0.1


def test_directions_in_the_plane_are_evenly_spaced_and_on_a_line_too():
    torch.manual_seed(9)
    x = spread_directions(7, 2)
    assert max_cosine(x) == pytest.approx(math.cos(2 * math.pi / 7), abs=1e-5)
    assert spread_directions(5, 1)[:, 0].tolist() == [-1.0, -0.5, 0.0, 0.5, 1.0]


class LaplacePrior(ClassPrior):
    """p(z|y) = prod_d exp(-|z_d - mu_yd| / b_y) / 2 b_y: a family a user might add, in its shortest form."""

    covariances = ("isotropic", "unit")

    def __init__(self, num_classes, latent_dim, covariance, means, separation):
        super().__init__(num_classes, latent_dim, covariance, means, separation)
        self._make_means("mean", radius=separation or 1.0)
        self._make_log_scale(num_classes, 1)

    def log_prob(self, z, classes=ALL):
        log_b = self.log_sigma().expand(self.num_classes, 1)[classes]
        return (-(z[:, None] - self.mean[classes]).abs() / log_b.exp() - log_b - math.log(2)).sum(-1)

    def log_prob_of(self, z, y):
        log_b = self.log_sigma().expand(self.num_classes, 1)[y]
        return (-(z - self.mean[y]).abs() / log_b.exp() - log_b - math.log(2)).sum(-1)

    @torch.no_grad()
    def sample(self, y):
        scale = self.log_sigma().expand(self.num_classes, 1)[y].exp()
        return self.mean[y] + scale * torch.distributions.Laplace(torch.zeros_like(self.mean[y]), 1.0).sample()

    def standardize(self, z, y):
        return (z - self.mean.detach()[y]) / self.log_sigma().detach().expand(self.num_classes, 1)[y].exp()


PROMISES = [
    test_log_prob_has_a_row_per_latent_and_a_column_per_class,
    test_log_prob_of_is_the_gathered_log_prob,
    test_samples_lie_on_the_support_and_carry_no_gradient,
    test_samples_of_a_class_are_likelier_under_it_than_under_any_other,
    test_samples_average_to_a_log_density_that_integrates_to_one,
    test_standardize_passes_a_gradient_to_the_latents_and_none_to_theta,
    test_standardized_samples_look_alike_in_every_class,
    test_a_larger_calibration_factor_is_a_larger_sigma,
    test_simplex_means_are_equidistant_and_are_buffers,
    test_learned_means_start_where_fixed_ones_stay,
]


@pytest.mark.parametrize("covariance", LaplacePrior.covariances)
def test_a_family_that_registers_itself_passes_the_contract(monkeypatch, covariance):
    monkeypatch.setitem(PRIORS, "laplace", LaplacePrior)
    for promise in PROMISES:
        promise("laplace", covariance)
    for classes in (slice(0, 1), slice(1, 3)):
        test_log_prob_of_some_classes_is_the_slice_in_value_and_gradient("laplace", covariance, classes)
    test_sigma_stays_within_its_limit_of_one_whatever_the_parameter("laplace", covariance, 1e6)
    test_gradients_are_those_of_finite_differences("laplace", covariance, "learned")


@pytest.mark.parametrize("objective", ["ce", "gm", "vc", "authors"])
def test_a_family_that_registers_itself_works_in_a_head(monkeypatch, objective):
    monkeypatch.setitem(PRIORS, "laplace", LaplacePrior)
    torch.manual_seed(10)
    head = VariationalHead(D, C, prior="laplace", objective=objective, class_chunk=3).double()
    assert head.class_prior.covariance == "isotropic"
    y, z = labels(), torch.randn(B, D, dtype=torch.float64)
    head.loss(z, y).backward()
    assert all(parameter.grad is not None for parameter in head.parameters())
    expected = torch.distributions.Laplace(head.class_prior.mean, 1.0).log_prob(z[:, None]).sum(-1) - math.log(C)
    torch.testing.assert_close(head(z), expected, rtol=1e-9, atol=1e-9)


def test_registering_a_name_makes_it_a_choice_and_the_error_lists_it():
    registry = Registry("shape")
    assert registry.register("round")(dict) is dict
    assert registry.pick("round") is dict
    with pytest.raises(ValueError, match="shape must be one of 'round'; got 'square'"):
        registry.pick("square")
