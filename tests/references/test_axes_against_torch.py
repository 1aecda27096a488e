"""from_linear and as_linear of the recommended head against nn.Linear, and its training against F.cross_entropy's."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from varclass import VariationalHead, from_model
from varclass.core.axes import AxesPrior

DTYPES = st.sampled_from([torch.float32, torch.float64])


def random_layer(dim, outputs, seed, bias=True, dtype=torch.float32):
    torch.manual_seed(seed)
    return nn.Linear(dim, outputs, bias=bias, dtype=dtype), torch.randn(40, dim, dtype=dtype)


def tolerance(dtype):
    return {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-9, "atol": 1e-9}


# Warnings are errors in every test: none of these may say that p(y) absorbs anything.


@given(st.integers(1, 12), st.integers(2, 30), st.integers(0, 10**6), st.booleans(), DTYPES)
def test_from_linear_holds_the_layer_whatever_the_number_of_classes(dim, classes, seed, bias, dtype):
    layer, x = random_layer(dim, classes, seed, bias, dtype)
    head = VariationalHead.from_linear(layer)
    torch.testing.assert_close(head.log_posterior(x), torch.log_softmax(layer(x), 1), **tolerance(dtype))
    torch.testing.assert_close(head.label_prior.probs(), torch.full((classes,), 1 / classes, dtype=dtype), rtol=1e-5, atol=0)
    assert not list(head.label_prior.parameters())
    assert {parameter.dtype for parameter in head.parameters()} == {dtype}
    assert torch.equal(head.projection.weight, layer.weight)


@given(st.integers(1, 4), st.integers(2, 20), st.integers(0, 10**6), st.sampled_from(["given", "learned"]), DTYPES)
def test_from_linear_keeps_any_label_prior_beside_any_layer(dim, classes, seed, kind, dtype):
    layer, x = random_layer(dim, classes, seed, dtype=dtype)
    probs = torch.softmax(2 * torch.randn(classes, dtype=torch.float64), 0)
    head = VariationalHead.from_linear(layer, label_prior=probs if kind == "given" else kind)
    torch.testing.assert_close(head.log_posterior(x), torch.log_softmax(layer(x), 1), **tolerance(dtype))
    expected = probs if kind == "given" else torch.full((classes,), 1 / classes, dtype=torch.float64)
    torch.testing.assert_close(head.label_prior.probs().double(), expected, rtol=1e-5, atol=0)
    assert head.label_prior.learned == (kind == "learned")
    shifted = head.with_label_prior(torch.full((classes,), 1 / classes))  # Bayes' rule, not the bias, holds p(y)
    other = torch.log_softmax(layer(x) - expected.log().to(dtype), 1)
    torch.testing.assert_close(shifted.log_posterior(x), other, **tolerance(dtype))


@given(st.integers(1, 12), st.integers(2, 30), st.integers(0, 10**6), st.booleans())
def test_there_and_back_again_gives_the_layer_but_for_the_mean_of_its_biases(dim, classes, seed, uniform):
    layer, _ = random_layer(dim, classes, seed, dtype=torch.float64)
    probs = torch.softmax(torch.randn(classes, dtype=torch.float64), 0)
    back = VariationalHead.from_linear(layer, label_prior="uniform" if uniform else probs).as_linear()
    torch.testing.assert_close(back.weight, layer.weight, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(back.bias, layer.bias - layer.bias.mean(), rtol=1e-9, atol=1e-9)


def test_as_linear_of_a_trained_settled_and_calibrated_head_predicts_as_it_does():
    torch.manual_seed(0)
    head = VariationalHead(5, 4).double()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(torch.randn_like(parameter))
    x, y = torch.randn(200, 5, dtype=torch.float64), torch.randint(4, (200,))
    head.eval().settle(x, y)
    plain = head.as_linear()
    never_wrong = (plain(x) - head.label_prior.log_probs()).argmax(1)
    assert head.calibrate(x, never_wrong) < 0.9  # surer
    torch.testing.assert_close(torch.log_softmax(head.as_linear()(x), 1), head.log_posterior(x), rtol=1e-9, atol=1e-9)
    assert float((torch.log_softmax(plain(x), 1) - head.log_posterior(x)).detach().abs().max()) > 0.1


def test_from_linear_takes_every_objective_and_separation_on_axes():
    layer, x = random_layer(3, 7, seed=0)
    for options in ({"objective": "vc", "means": "axes"}, {"preset": "paper", "means": "axes"}, {"separation": 3.0}):
        head = VariationalHead.from_linear(layer, **options)
        assert isinstance(head.class_prior, AxesPrior)
        torch.testing.assert_close(head.log_posterior(x), torch.log_softmax(layer(x), 1), rtol=1e-5, atol=1e-5)
    assert head.separation == 3.0


def test_from_model_of_a_convolutional_network_with_more_classes_than_features():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 20), nn.Softmax(1))
    x = torch.randn(5, 3, 8, 8)
    classifier = from_model(model, example=x)
    torch.testing.assert_close(classifier.log_posterior(x).exp(), model(x), rtol=1e-5, atol=1e-7)
    assert isinstance(classifier.head.class_prior, AxesPrior)
    assert not any(isinstance(part, nn.Linear) for part in classifier.encoder.modules())
    classifier(x, torch.arange(5)).backward()
    assert bool((classifier.encoder[0].weight.grad != 0).any())


# --------------------------------------------------------------------------------- what the recommended head rests on


@pytest.mark.parametrize("separation", ["auto", 0.3, 20.0])
@pytest.mark.parametrize(
    "make",
    [
        lambda groups: torch.optim.SGD(groups, lr=0.5, momentum=0.9, weight_decay=0.01),
        lambda groups: torch.optim.AdamW(groups, lr=0.1, weight_decay=0.1),
    ],
    ids=["SGD", "AdamW"],
)
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_with_beta_zero_it_is_nn_linear_and_cross_entropy_step_by_step_under_any_optimizer(make, separation, soft):
    """The same weights after every step, whatever the separation: z = h / a under means a e_y has the posterior softmax(h)."""
    torch.manual_seed(0)
    x, y = torch.randn(60, 6, dtype=torch.float64), torch.randint(5, (60,))
    y = F.one_hot(y, 5).double() * 0.8 + 0.04 if soft else y
    head = VariationalHead(6, 5, beta=0, label_prior="uniform", separation=separation).double()
    layer = copy.deepcopy(head.projection)
    start = layer.weight.detach().clone()
    assert type(layer) is nn.Linear
    ours, theirs = make(head.parameter_groups(0.5)), make(layer.parameters())
    for group in ours.param_groups:  # the group's own rate and decay, as the optimizer has them for the layer
        group |= {key: theirs.param_groups[0][key] for key in ("lr", "weight_decay")}
    for step in range(20):
        rows = torch.arange(step, step + 20)
        ours.zero_grad()
        head.loss(x[rows], y[rows]).backward()
        ours.step()
        theirs.zero_grad()
        F.cross_entropy(layer(x[rows]), y[rows]).backward()
        theirs.step()
        if separation == "auto" and not soft:
            head.eval().settle(x, y)
            head.train()
        torch.testing.assert_close(head.projection.weight, layer.weight, rtol=1e-9, atol=1e-11)
        torch.testing.assert_close(head.projection.bias, layer.bias, rtol=1e-9, atol=1e-11)
    assert float((layer.weight - start).detach().abs().max()) > 0.1
