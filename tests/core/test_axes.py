"""Class means on axes: unit Gaussians at a e_y, of which no (C, C) table is made and which a softmax layer cannot tell."""

import math

import pytest
import torch
from tests.shapes import Shapes
from torch import nn

from varclass import VariationalHead
from varclass.core.anticipation import anticipate, anticipate_simplex
from varclass.core.axes import AxesPrior
from varclass.core.consistency import near
from varclass.core.priors import ALL, GaussianPrior
from varclass.core.recall import options_of

B, C, R = 7, 5, 2.5
LENGTH = R * math.sqrt(C / (C - 1))
CLOSE = {"rtol": 1e-9, "atol": 1e-9}
every_factor = pytest.mark.parametrize("factor", [1.0, 0.6, 1.7])


def pair(factor: float) -> tuple[AxesPrior, GaussianPrior]:
    """The prior, and learned means of the paper's family placed where it says they are."""
    axes = AxesPrior(C, C, "unit", "axes", R).double()
    placed = GaussianPrior(C, C, "unit", "learned", 1.0).double()
    axes.length.fill_(LENGTH)  # of which the constructor keeps float32's digits
    placed.place(LENGTH * torch.eye(C, dtype=torch.float64))
    axes.scale_factor = placed.scale_factor = factor
    return axes, placed


def example(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    z = 2 * torch.randn(B, C, dtype=torch.float64, generator=generator)
    shift = torch.randn(C, dtype=torch.float64, generator=generator)
    return z, torch.randint(C, (B,), generator=generator), shift


# ------------------------------------------------------------------------------------- the same densities as the paper's


@every_factor
def test_it_is_the_gaussian_family_with_means_on_the_axes(factor):
    axes, placed = pair(factor)
    z, y, shift = example()
    torch.testing.assert_close(axes.mean, placed.mean, **CLOSE)
    torch.testing.assert_close(axes.log_prob(z), placed.log_prob(z), **CLOSE)
    torch.testing.assert_close(axes.log_prob_of(z, y), placed.log_prob_of(z, y), **CLOSE)
    torch.testing.assert_close(axes.log_joint(z, shift), placed.log_joint(z, shift), **CLOSE)
    with torch.no_grad():
        torch.testing.assert_close(axes.log_joint(z, shift), placed.log_joint(z, shift), **CLOSE)
    torch.testing.assert_close(axes.standardize(z, y), placed.standardize(z, y), **CLOSE)
    torch.testing.assert_close(axes.log_sigma(), placed.log_sigma(), **CLOSE)
    for classes in (ALL, slice(0, 1), slice(1, 4), slice(4, 5)):
        torch.testing.assert_close(axes.log_prob(z, classes), placed.log_prob(z, classes), **CLOSE)


@every_factor
def test_what_tells_the_classes_apart_is_the_same_up_to_a_number_per_latent_and_the_sum_is_the_same(factor):
    axes, placed = pair(factor)
    z, y, shift = example()
    (relative, common), (expected, rest) = axes.log_prob_apart(z, shift), placed.log_prob_apart(z, shift)
    torch.testing.assert_close(relative - relative[:, :1], expected - expected[:, :1], **CLOSE)
    torch.testing.assert_close(relative + common[:, None], expected + rest[:, None], **CLOSE)
    (relative, own), (expected, wanted) = axes.log_prob_split(z, y, shift), placed.log_prob_split(z, y, shift)
    torch.testing.assert_close(relative - relative[:, :1], expected - expected[:, :1], **CLOSE)
    torch.testing.assert_close(own, wanted, **CLOSE)


@every_factor
@pytest.mark.parametrize("method", ["log_prob", "log_prob_of", "log_joint", "standardize", "log_prob_apart", "log_prob_split"])
def test_gradients_of_the_latents_are_the_same(factor, method):
    found = []
    for prior in pair(factor):
        z, y, shift = example()
        z.requires_grad_()
        args = {"log_prob": (), "log_joint": (shift,), "log_prob_apart": (shift,), "log_prob_split": (y, shift)}
        out = getattr(prior, method)(z, *args.get(method, (y,)))
        if method == "log_prob_apart":
            out = out[0] + out[1][:, None]
        if method == "log_prob_split":  # the second part passes no gradient to z, the first has one up to a number per latent
            out = torch.log_softmax(out[0], 1) + out[1][:, None]
        weight = torch.linspace(-1, 2, out.numel(), dtype=torch.float64).reshape(out.shape)
        found.append(torch.autograd.grad((out * weight).sum(), z)[0])
    torch.testing.assert_close(*found, **CLOSE)


@every_factor
def test_samples_have_the_means_and_the_covariance_within_five_standard_errors(factor):
    torch.manual_seed(0)
    axes, _ = pair(factor)
    n = 40_000
    y = torch.arange(C).repeat(n)
    z = axes.sample(y)
    assert z.dtype == torch.float64
    assert not z.requires_grad
    for k in range(C):
        own = z[y == k]
        assert float((own.mean(0) - axes.mean[k]).abs().max()) < 5 * factor / math.sqrt(n)
        covariance = torch.cov(own.T)
        assert float((covariance - factor**2 * torch.eye(C)).abs().max()) < 5 * factor**2 * math.sqrt(2 / n)
    assert len(axes.sample(y[:0])) == 0


@every_factor
def test_separation_and_anticipation_are_those_of_a_simplex(factor):
    axes = AxesPrior(C, C, "unit", "axes", R).double()
    simplex = GaussianPrior(C, C - 1, "unit", "simplex", R).double()
    axes.length.fill_(LENGTH)
    axes.scale_factor = simplex.scale_factor = factor
    probs = torch.tensor([0.4, 0.3, 0.1, 0.1, 0.1], dtype=torch.float64)
    assert axes.radius == pytest.approx(R / factor, rel=1e-12)
    assert anticipate(axes) == anticipate_simplex(axes.radius, C)
    for given in (None, probs):
        found, expected = anticipate(axes, given), anticipate(simplex, given)
        assert (found.samples, expected.samples) == (0, 0)
        assert found.accuracy == pytest.approx(expected.accuracy, rel=1e-6)  # the simplex in float32
        assert found.nll == pytest.approx(expected.nll, rel=1e-6)
    axes.scale_means(1.5)
    assert axes.radius == pytest.approx(1.5 * R / factor, rel=1e-12)
    assert float(axes.mean.diagonal().mean()) == pytest.approx(1.5 * LENGTH, rel=1e-12)
    center = axes.mean.mean(0)
    assert float((axes.mean - center).norm(dim=1).mean()) == pytest.approx(1.5 * R, rel=1e-12)


# ---------------------------------------------------------------------------------------------------------- in a head


def test_predictions_do_not_depend_on_the_separation_and_log_p_of_z_does():
    torch.manual_seed(0)
    head = VariationalHead(4, C).double()
    features, y = torch.randn(B, 4, dtype=torch.float64), torch.randint(C, (B,))
    before, evidence, pull = head.log_posterior(features), head.log_evidence(features), head.terms(features, y).prior
    for factor in (0.01, 3.0, 40.0):
        head.class_prior.scale_means(factor)
        torch.testing.assert_close(head.log_posterior(features), before, **CLOSE)
        assert not torch.allclose(head.log_evidence(features), evidence)
        assert not torch.allclose(head.terms(features, y).prior, pull)
    linear = head.projection(features) + head.log_label()
    torch.testing.assert_close(head.log_posterior(features), torch.log_softmax(linear, 1), **CLOSE)
    torch.testing.assert_close(head.latent(features), head.projection(features) / head.class_prior.length, **CLOSE)


def test_the_pull_is_to_the_square_of_the_length_for_the_own_class_and_to_zero_for_the_others():
    head = VariationalHead(C, C, label_prior="uniform").double()
    with torch.no_grad():
        head.projection.weight.copy_(torch.eye(C))
        head.projection.bias.zero_()
    length, y = head.class_prior.length, torch.arange(C)
    at_mean = (length.square() * torch.eye(C, dtype=torch.float64)).requires_grad_()
    prior = head.terms(at_mean, y).prior
    assert prior.item() == pytest.approx(C / 2 * math.log(2 * math.pi), rel=1e-9)  # -log of the density at its mode
    assert float(torch.autograd.grad(prior, at_mean)[0].abs().max()) < 1e-12


def test_the_energy_is_that_of_the_softmax_layer_whatever_settles():
    torch.manual_seed(0)
    layer, x, y = nn.Linear(4, C).double(), torch.randn(200, 2, 4, dtype=torch.float64), torch.randint(C, (200, 2))
    head = VariationalHead.from_linear(layer, label_prior=torch.tensor([0.4, 0.3, 0.1, 0.1, 0.1])).double().eval()
    expected = -torch.logsumexp(layer(x), dim=-1)
    torch.testing.assert_close(head.energy(x), expected, **CLOSE)
    evidence = head.log_evidence(x)
    head.settle(x, y)
    torch.testing.assert_close(head.energy(x), expected, **CLOSE)
    assert not torch.allclose(head.log_evidence(x), evidence)


@pytest.mark.parametrize("options", [{}, {"latent_dim": 3}, {"covariance": "shared"}, {"label_prior": "uniform"}])
def test_the_energy_of_learned_means_is_that_of_the_layer_they_amount_to(options):
    torch.manual_seed(0)
    head = VariationalHead(4, C, objective="ce", **options).double().eval()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    x = torch.randn(20, 2, 4, dtype=torch.float64)
    outputs = head.as_linear()(x)
    torch.testing.assert_close(head.energy(x), -torch.logsumexp(outputs, dim=-1), **CLOSE)
    torch.testing.assert_close(torch.softmax(outputs, -1), head.log_posterior(x).exp(), **CLOSE)


@pytest.mark.parametrize("options", [{}, {"prior": "vmf"}])
def test_a_head_that_is_no_softmax_layer_has_no_energy(options):
    with pytest.raises(ValueError, match=r"^energy is a softmax layer's: it needs covariance='unit' or 'shared'; use"):
        VariationalHead(4, C, objective="vc", **options).energy(torch.zeros(1, 4))


def test_the_state_dict_carries_the_length_and_the_buffer_moves_with_the_head():
    head, other = VariationalHead(4, C), VariationalHead(4, C)
    head.class_prior.scale_means(0.7)
    assert head.separation == pytest.approx(0.7 * near(C), rel=1e-6)
    assert other.separation != pytest.approx(head.separation, rel=0.1)
    result = other.load_state_dict(head.state_dict())
    assert (result.missing_keys, result.unexpected_keys) == ([], [])
    assert other.separation == head.separation
    features, y = torch.randn(3, 4), torch.tensor([0, 1, 2])
    expected = head(features)
    for dtype in (torch.float64, torch.float32):
        head.to(dtype)
        assert head.class_prior.length.dtype == dtype
        assert head(features.to(dtype)).dtype == head.sample(y).dtype == head.loss(features.to(dtype), y).dtype == dtype
    torch.testing.assert_close(head(features), expected, rtol=0, atol=0)
    assert head.to("meta").class_prior.length.is_meta
    assert [name for name, _ in head.class_prior.named_parameters()] == []


def test_settling_does_not_recompile():
    torch.manual_seed(0)
    torch.compiler.reset()
    head, graphs = VariationalHead(4, C), []

    def count(graph, _):
        graphs.append(graph)
        return graph.forward

    features, y = torch.randn(30, 4), torch.randint(C, (30,))
    compiled = torch.compile(head.loss, backend=count, fullgraph=True)
    for _ in range(3):
        torch.testing.assert_close(compiled(features, y), head.loss(features, y), rtol=1e-5, atol=1e-6)
        before = head.separation
        head.eval().settle(features, y)
        head.train()
        assert head.separation != before
    torch.compiler.reset()
    assert len(graphs) == 1


def test_a_new_head_for_other_classes_has_their_dimension_and_their_beta():
    model = nn.ModuleDict({"head": VariationalHead(4, 3, beta="1/D")})
    options = options_of(model["head"])
    assert (options["beta"], options["latent_dim"], options["means"], options["separation"]) == ("1/D", None, "axes", "auto")
    again = VariationalHead(4, 100, **options)
    assert (again.latent_dim, again.objective.beta) == (100, 1 / 100)
    assert again.separation == pytest.approx(near(100), rel=1e-6)
    assert options_of(VariationalHead(4, 3, beta=0.2))["beta"] == 0.2


# ------------------------------------------------------------------------------------------------------- many classes


@pytest.mark.parametrize("objective", ["pull", "bottleneck", "ce", "gm"])
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_no_classes_by_classes_tensor_is_made_at_ten_thousand(objective, soft):
    torch.manual_seed(0)
    classes, batch = 10_000, 6
    head = VariationalHead(3, classes, objective=objective, means="axes", draws=2)
    features, y = torch.randn(batch, 3, requires_grad=True), torch.randint(classes, (batch,))
    target = torch.softmax(torch.randn(batch, classes), 1) if soft else y
    with Shapes() as shapes:
        head.loss(features, target).backward()
        head.sample(y), head.latent(features), head.log_evidence(features), head.log_posterior(features)
        head.standardize(head.latent(features), y)
        with torch.no_grad():
            head(features)
    assert (batch, classes) in shapes.seen
    assert [shape for shape in shapes.seen if shape.count(classes) > 1] == []


@pytest.mark.parametrize("classes", [2, 3, 10, 1000, 10_000])
def test_two_to_ten_thousand_classes_train_predict_and_settle(classes):
    torch.manual_seed(0)
    head = VariationalHead(8, classes)
    features, y = torch.randn(40, 8), torch.arange(40) % min(classes, 40)
    step = torch.optim.AdamW(head.parameter_groups(0.05))
    losses = []
    for _ in range(15):
        step.zero_grad()
        loss = head.loss(features, y)
        loss.backward()
        step.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert math.isfinite(head.eval().settle(features, y))
    posterior = head.double().log_posterior(features.double()).exp()
    torch.testing.assert_close(posterior.sum(1), torch.ones(40, dtype=torch.float64), rtol=1e-9, atol=0)
    assert anticipate(head.class_prior).accuracy == pytest.approx(
        anticipate_simplex(head.separation, classes).accuracy, rel=1e-9
    )


def test_a_chunk_of_classes_would_save_nothing_and_changes_nothing():
    """The latents are as large as the log joint."""
    torch.manual_seed(0)
    plain = VariationalHead(4, C).double()
    chunked = VariationalHead(4, C, class_chunk=2).double()
    chunked.load_state_dict(plain.state_dict())
    features, y = torch.randn(B, 4, dtype=torch.float64), torch.randint(C, (B,))
    assert chunked.chunk_for(B) is None
    torch.testing.assert_close(chunked.loss(features, y), plain.loss(features, y), **CLOSE)
    torch.testing.assert_close(chunked.log_joint(chunked.latent(features), slice(1, 3)), plain(features)[:, 1:3], **CLOSE)


# -------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: VariationalHead(8, C, means="axes", latent_dim=8), "one dimension for each of 5 classes; got latent_dim=8"),
        (lambda: VariationalHead(8, C, preset="recommended", latent_dim=4), "got latent_dim=4"),
        (lambda: VariationalHead(8, C, means="axes", prior="vmf"), "means='axes' needs prior='gaussian'; got prior='vmf'"),
        (lambda: VariationalHead(8, C, means="axes", covariance="diagonal"), "must be one of 'unit'; got 'diagonal'"),
        (lambda: VariationalHead(8, C, means="axes", preset="authors"), "means='axes' needs a separation.*got None"),
        (lambda: AxesPrior(C, C, "unit", "axes", None), "means='axes' needs a separation.*got None"),
        (lambda: VariationalHead(8, C, separation=0.0), "separation must be a finite number > 0; got 0"),
        (lambda: VariationalHead.from_linear(nn.Linear(8, C), means="simplex"), "'axes' or 'learned'; got means='simplex'"),
        (lambda: pair(1.0)[0].place(torch.eye(C)), "stay on their axes"),
        (lambda: pair(1.0)[0].scale_means(0.0), "factor must be a finite number > 0; got 0"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(make, says):
    with pytest.raises(ValueError, match=says) as caught:
        make()
    assert "\n" not in str(caught.value)
