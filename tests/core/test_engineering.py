"""compile, deepcopy, state_dict, optimizers: the head as an ordinary module."""

import copy
import json

import numpy as np
import pytest
import torch
from tests.combinations import posterior_for, skip_if_refused
from torch import nn

from varclass import CE, GM, VC, Authors, Classifier, VariationalHead
from varclass.core.head import OBJECTIVES, PRIORS
from varclass.core.objectives import Bottleneck, Pull
from varclass.core.posterior import GaussianPosterior
from varclass.core.presets import PRESETS
from varclass.core.recall import options_of

B, C, FEATURES, D = 6, 3, 5, 4
# dynamo instantiates a custom autograd.Function to trace it, and inductor still uses torch.jit: torch's own, not ours
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*should not be instantiated:DeprecationWarning", "ignore:.*torch.jit:DeprecationWarning"
)


def make(seed: int = 0, **options) -> VariationalHead:
    if isinstance(options.get("objective"), str):
        options = {"posterior": posterior_for(options["objective"])} | options
        skip_if_refused(options["objective"], options.get("prior", "gaussian"), options["posterior"])
    torch.manual_seed(seed)
    head = VariationalHead(FEATURES, C, **{"latent_dim": D} | options)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return head


def batch(seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(B, FEATURES, generator=generator), torch.randint(C, (B,), generator=generator)


def loss_and_gradients(function, module: nn.Module, *args) -> list[torch.Tensor]:
    module.zero_grad()
    torch.manual_seed(2)
    loss = function(*args)
    loss.backward()
    return [loss.detach(), *(parameter.grad.clone() for parameter in module.parameters())]


def seeded(function, *args) -> torch.Tensor:
    """The same draws each time, where q(z|x) is Gaussian."""
    torch.manual_seed(2)
    return function(*args).detach()


def assert_all_close(got, expected) -> None:
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


@pytest.fixture
def compiler():
    torch.compiler.reset()
    yield torch.compile
    torch.compiler.reset()


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("prior", PRIORS)
def test_loss_compiles_to_one_graph_with_the_eager_value_and_gradients(compiler, objective, prior):
    head = make(objective=objective, prior=prior, ratio="mlp", latent_dim=64)  # of few dimensions, vmf is a long graph
    features, y = batch()
    compiled = compiler(head.loss, fullgraph=True, backend="aot_eager")
    assert_all_close(loss_and_gradients(compiled, head, features, y), loss_and_gradients(head.loss, head, features, y))


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("posterior", ["delta", "gaussian"])
def test_forward_compiles_to_one_graph(compiler, objective, posterior):
    head = make(objective=objective, posterior=posterior, draws=3)
    features, _ = batch()
    compiled = compiler(head, fullgraph=True, backend="eager")
    torch.testing.assert_close(seeded(compiled, features), seeded(head, features), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_classifier_compiles_to_one_graph_with_and_without_labels(compiler, objective):
    torch.manual_seed(0)
    model = Classifier(nn.Sequential(nn.Linear(2, FEATURES), nn.ReLU()), make(objective=objective, latent_dim=None))
    x, y = torch.randn(B, 2), batch()[1]
    compiled = compiler(model, fullgraph=True, backend="eager")
    torch.testing.assert_close(seeded(compiled, x), seeded(model, x), rtol=1e-5, atol=1e-5)
    assert_all_close(loss_and_gradients(compiled, model, x, y), loss_and_gradients(model, model, x, y))


@pytest.mark.parametrize(
    "options", [{"class_chunk": 2}, {"class_weight": torch.tensor([1.0, 2.0, 0.5])}], ids=["chunk", "weight"]
)
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_chunks_weights_and_soft_or_ignored_labels_compile(compiler, options, soft):
    head = make(objective="vc", latent_dim=None, **options)
    features, y = batch()
    y[1] = -100
    table = head.class_prior.sample(torch.arange(C))
    head.class_prior.sample = lambda labels: table[labels]
    target = torch.softmax(features[:, :C], 1) if soft else y
    compiled = compiler(head.loss, fullgraph=True, backend="aot_eager" if "class_weight" in options else "eager")
    got, expected = loss_and_gradients(compiled, head, features, target), loss_and_gradients(head.loss, head, features, target)
    if soft:  # which label a row draws for its prior sample is up to the generator
        psi = {id(parameter) for parameter in head.ratio.parameters()}
        keep = [1 + i for i, parameter in enumerate(head.parameters()) if id(parameter) not in psi]
        got, expected = [got[i] for i in keep], [expected[i] for i in keep]
    assert_all_close(got, expected)


def test_inductor_compiles_the_loss_with_the_eager_value_and_gradients(compiler):
    head = make(objective="vc", latent_dim=None)
    table = head.class_prior.sample(torch.arange(C))
    head.class_prior.sample = lambda labels: table[labels]
    features, y = batch()
    compiled = compiler(head.loss, fullgraph=True)
    assert_all_close(loss_and_gradients(compiled, head, features, y), loss_and_gradients(head.loss, head, features, y))


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("prior", PRIORS)
def test_a_deep_copy_is_equal_and_independent(objective, prior):
    head = make(objective=objective, prior=prior, posterior="gaussian")
    twin = copy.deepcopy(head)
    features, y = batch()
    assert torch.equal(*(loss_and_gradients(h.loss, h, features, y)[0] for h in (head, twin)))
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.add_(1.0)
    twin.class_prior.scale_factor = 2.0
    assert all(not torch.equal(a, b) for a, b in zip(head.parameters(), twin.parameters(), strict=True))
    assert head.class_prior.scale_factor == 1.0


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("means", ["learned", "simplex"])
def test_a_state_dict_carries_everything_a_prediction_and_a_loss_need(objective, prior, means):
    options = {"objective": objective, "prior": prior, "means": means}
    first = make(seed=0, label_prior=torch.tensor([0.5, 0.3, 0.2]), class_weight=torch.tensor([1.0, 2.0, 0.5]), **options)
    features, y = batch()
    first.calibrate(features, y)
    second = make(seed=9, label_prior="uniform", class_weight=torch.ones(C), **options)
    assert not torch.allclose(seeded(second, features), seeded(first, features))
    missing = second.load_state_dict(first.state_dict())
    assert (missing.missing_keys, missing.unexpected_keys) == ([], [])
    assert second.class_prior.scale_factor == first.class_prior.scale_factor != 1.0
    assert torch.equal(seeded(second, features), seeded(first, features))
    assert torch.equal(*(loss_and_gradients(h.loss, h, features, y)[0] for h in (first, second)))


def test_a_head_moves_to_float64_and_back():
    head = make()
    features, y = batch()
    expected = head(features)
    head.double()
    assert head(features.double()).dtype == torch.float64
    assert head.loss(features.double(), y).dtype == torch.float64
    torch.testing.assert_close(head.float()(features), expected, rtol=0, atol=0)


def test_forward_and_loss_write_nothing_on_the_head():
    head = make(posterior="gaussian")
    features, y = batch()
    before = {name: value.clone() for name, value in head.state_dict().items()}
    attributes = set(vars(head))
    head(features), head.loss(features, y), head.sample(y), head.latent(features)
    assert set(vars(head)) == attributes
    assert all(torch.equal(value, before[name]) for name, value in head.state_dict().items())


# ---------------------------------------------------------------------------------------------------- parameter groups


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("posterior", ["delta", "gaussian"])
def test_every_parameter_is_in_exactly_one_group_of_the_right_name(objective, prior, posterior):
    head, encoder = make(objective=objective, prior=prior, posterior=posterior), nn.Linear(2, FEATURES)
    groups = {group["name"]: group["params"] for group in head.parameter_groups(lr=0.1, encoder=encoder)}
    ids = [id(parameter) for params in groups.values() for parameter in params]
    assert sorted(ids) == sorted(id(parameter) for module in (head, encoder) for parameter in module.parameters())
    expected = {"phi": [encoder, head.projection, head.posterior], "theta": [head.class_prior]}
    if objective in ("pull", "bottleneck") and prior == "gaussian":
        del expected["theta"]  # the recommended geometry: class priors that stay where they are
    if OBJECTIVES[objective].uses_label_prior:
        expected["pi"] = [head.label_prior]
    if OBJECTIVES[objective].uses_ratio:
        expected["psi"] = [head.ratio]
    assert list(groups) == list(expected)
    for name, modules in expected.items():
        assert {id(p) for p in groups[name]} == {id(p) for module in modules for p in module.parameters()}


def test_parameters_that_are_frozen_or_absent_are_in_no_group():
    head = make(objective="ce", means="simplex", covariance="unit", label_prior="uniform", latent_dim=None)
    assert head.parameter_groups(lr=0.1) == []
    head = make()
    head.projection.weight.requires_grad_(False)
    assert [len(g["params"]) for g in head.parameter_groups(lr=0.1) if g["name"] == "phi"] == [1]


def table(head: VariationalHead, **options) -> dict[str, tuple[float, float]]:
    return {g["name"]: (g["lr"], g["weight_decay"]) for g in head.parameter_groups(0.1, 0.01, **options)}


def test_groups_have_their_own_learning_rate_and_weight_decay():
    head = make()
    assert table(head) == {"phi": (0.1, 0.01), "theta": (0.1, 0.0), "pi": (0.1, 0.0), "psi": (0.1, 0.01)}
    changed = table(head, lr_multipliers={"theta": 0.5, "psi": 2}, weight_decays={"theta": 0.3, "phi": 0.0})
    assert changed == {"phi": (0.1, 0.0), "theta": (0.05, 0.3), "pi": (0.1, 0.0), "psi": (0.2, 0.01)}


def test_the_authors_preset_is_their_released_code():
    head = VariationalHead(2000, C, preset="authors")
    assert isinstance(head.objective, Authors)
    assert (head.objective.l1, head.objective.l2) == (0.01, 0.01)
    assert not head.label_prior.learned
    groups = {g["name"]: (g["lr"], g["weight_decay"]) for g in head.parameter_groups(0.1, 0.001)}
    assert groups == {"theta": (pytest.approx(0.01), 0.001), "psi": (0.1, 0.001)}
    mean = head.class_prior.mean.detach()  # from N(0, 1)
    n = mean.numel()
    assert abs(float(mean.mean())) < 5 / n**0.5
    assert abs(float(mean.square().mean()) - 1) < 5 * (2 / n) ** 0.5


def test_the_paper_preset_is_beta_one_and_the_default_is_one_per_dimension():
    paper = VariationalHead(64, C, preset="paper")
    assert isinstance(paper.objective, VC)
    assert paper.objective.beta == 1.0
    default = VariationalHead(64, C, objective="vc")
    assert isinstance(default.objective, VC)
    assert default.objective.beta == 1 / 64
    assert VariationalHead(64, C, objective="vc", beta="1/D").objective.beta == 1 / 64
    assert VariationalHead(64, C, latent_dim=8).objective.beta == 1 / 8
    assert VariationalHead(64, C, preset="paper", beta=0.25).objective.beta == 0.25
    for head in (paper, default):
        assert (head.class_prior.covariance, head.class_prior.means, head.class_prior.separation) == (
            "diagonal",
            "learned",
            4.0,
        )
        assert head.label_prior.learned
        assert type(head.ratio).__name__ == "LinearRatio"
        assert not head.posterior.stochastic
    assert VariationalHead(64, C, prior="vmf").class_prior.covariance == "isotropic"


RECOMMENDED = {"objective": "pull", "means": "axes", "covariance": "unit", "posterior": "delta", "prior": "gaussian"}
RECOMMENDED |= {"separation": "auto", "beta": "auto", "preset": "recommended"}


@pytest.mark.parametrize("named", [(), *((name,) for name in RECOMMENDED), tuple(RECOMMENDED)], ids=str)
def test_a_head_of_which_nothing_else_is_named_is_the_recommended_one(named):
    head = VariationalHead(64, C, **{name: RECOMMENDED[name] for name in named})
    assert type(head.objective) is Pull
    assert head.objective.beta == pytest.approx(0.01 * min(0.5, 10 / C**2))
    assert (head.latent_dim, head.class_prior.covariance, head.class_prior.means) == (C, "unit", "axes")
    assert head.settles
    assert head.label_prior.learned
    assert not head.posterior.stochastic
    assert [group["name"] for group in head.parameter_groups(0.1)] == ["phi", "pi"]


@pytest.mark.parametrize(
    ("options", "objective", "means"),
    [
        ({"latent_dim": 8}, VC, "learned"),
        ({"ratio": "mlp"}, VC, "learned"),
        ({"means": "learned"}, VC, "learned"),
        ({"means": "simplex"}, VC, "simplex"),
        ({"covariance": "diagonal"}, VC, "learned"),
        ({"posterior": "gaussian"}, VC, "learned"),
        ({"prior": "vmf"}, VC, "learned"),
        ({"objective": "ce"}, CE, "learned"),
        ({"objective": "pull", "latent_dim": 8}, Pull, "simplex"),
        ({"objective": "pull", "means": "learned"}, Pull, "learned"),
        ({"objective": "bottleneck"}, Bottleneck, "axes"),
        ({"objective": "vc", "means": "axes"}, VC, "axes"),
    ],
    ids=str,
)
def test_what_else_is_named_asks_for_the_papers_model_or_for_what_it_allows_of_the_recommended(options, objective, means):
    head = VariationalHead(64, C, **options)
    assert type(head.objective) is objective
    assert head.class_prior.means == means
    assert head.settles == (objective in (Pull, Bottleneck) and means != "learned")
    assert head.posterior.stochastic == (objective is Bottleneck or "posterior" in options)
    if hasattr(head.objective, "beta"):
        weight = 0.01 * min(0.5, 10 / head.latent_dim**2) if objective is Pull else 1 / head.latent_dim
        assert head.objective.beta == pytest.approx(weight)


@pytest.mark.parametrize(
    ("given", "kind"),
    [(name, kind) for name, kind in OBJECTIVES.items()] + [(GM(0.5), GM), (Authors(0.1, 0.2), Authors), (Pull(0.5), Pull)],
)
def test_an_objective_is_a_name_or_an_object(given, kind):
    head = make(objective=given)
    assert type(head.objective) is kind
    if not isinstance(given, str):
        assert head.objective is given
    assert repr(head.objective) in repr(head)


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_one_backward_and_one_optimizer_move_every_parameter(optimizer, objective):
    head, encoder = make(objective=objective), nn.Linear(2, FEATURES)
    model = Classifier(encoder, head)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    step = optimizer(model.parameter_groups(lr=0.1, weight_decay=0.0))
    model(torch.randn(B, 2), batch()[1]).backward()
    step.step()
    assert all(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
@pytest.mark.parametrize("objective", [None, *OBJECTIVES])
def test_training_separates_two_easy_classes(optimizer, objective):
    torch.manual_seed(3)
    y = torch.arange(2).repeat(32)
    x = torch.randn(64, 2) + 4 * torch.stack([y, -y], 1)
    model = Classifier(nn.Linear(2, 4), VariationalHead(4, 2, objective=objective))
    step = optimizer(model.parameter_groups(lr=0.05))
    for _ in range(100):
        step.zero_grad()
        model(x, y).backward()
        step.step()
    assert float((model(x).argmax(1) == y).float().mean()) > 0.95


def test_numbers_may_be_numpys():
    head = VariationalHead(np.int64(8), np.int32(C), beta=np.float32(0.25), separation=np.float64(3.0), samples=np.int64(100))
    assert (type(head.in_features), type(head.objective.beta), type(head.samples)) == (int, float, int)
    assert repr(head) == repr(VariationalHead(8, C, beta=0.25, separation=3.0, samples=100))
    json.dumps(options_of(head))


@pytest.mark.parametrize("preset", [None, *PRESETS])
def test_a_bottleneck_is_of_a_gaussian_posterior_beside_any_preset(preset):
    assert isinstance(VariationalHead(8, C, preset=preset, objective="bottleneck").posterior, GaussianPosterior)
