"""from_linear and as_linear against nn.Linear itself."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from varclass import VariationalHead

SETTINGS = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def random_layer(dim, outputs, seed, bias=True, dtype=torch.float32):
    torch.manual_seed(seed)
    return nn.Linear(dim, outputs, bias=bias, dtype=dtype), torch.randn(40, dim, dtype=dtype)


@torch.no_grad()
def assert_same_posterior(head, layer, x):
    """Log posteriors to 1e-5 (float32) of the largest number that is summed to make them: a mean times a centred latent.

    A shift that keeps p(y) may be long where the weights are nearly dependent, and means are stored exact to its length only.
    """
    mean = head.class_prior.mean
    size = max(1.0, float(mean.norm(dim=1).max() * (x - mean.mean(0)).norm(dim=1).max()))
    rtol = 1e-5 if x.dtype == torch.float32 else 1e-9
    expected = torch.log_softmax(layer(x), dim=1)
    torch.testing.assert_close(head.log_posterior(x), expected, rtol=rtol, atol=rtol * size)


@SETTINGS
@given(
    st.integers(1, 12),
    st.integers(0, 12),
    st.integers(0, 10**6),
    st.booleans(),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_from_linear_predicts_as_the_layer_and_keeps_a_uniform_prior(classes_less_one, extra, seed, bias, dtype):
    # C <= D + 1: a common shift of the means exists, so no warning, and p(y) stays uniform.
    classes, dim = classes_less_one + 1, classes_less_one + extra + (dtype == torch.float32)  # C = D + 1 may need float64
    layer, x = random_layer(dim, classes, seed, bias, dtype)
    head = VariationalHead.from_linear(layer, means="learned")
    assert_same_posterior(head, layer, x)
    torch.testing.assert_close(head.label_prior.probs(), torch.full((classes,), 1 / classes, dtype=dtype), rtol=1e-5, atol=0)
    assert head.class_prior.mean.dtype == dtype


@SETTINGS
@given(st.integers(1, 4), st.integers(2, 8), st.integers(0, 10**6), st.booleans())
def test_from_linear_with_more_classes_than_a_shift_can_serve_warns_and_absorbs_the_rest(dim, extra, seed, bias):
    # C > D + 1: p(y) takes what the shift cannot, and the predictions are still the layer's.
    layer, x = random_layer(dim, dim + extra, seed, bias)
    with pytest.warns(UserWarning, match="absorbs"):
        head = VariationalHead.from_linear(layer, means="learned")
    assert_same_posterior(head, layer, x)
    assert float((head.label_prior.probs() - 1 / (dim + extra)).abs().max()) > 0


def test_from_linear_keeps_the_label_prior_given():
    layer, x = random_layer(10, 4, seed=1)
    given_prior = torch.tensor([0.1, 0.2, 0.3, 0.4])
    head = VariationalHead.from_linear(layer, means="learned", label_prior=given_prior)
    assert_same_posterior(head, layer, x)
    torch.testing.assert_close(head.label_prior.probs(), given_prior, rtol=1e-5, atol=0)
    assert not list(head.label_prior.parameters())


def test_from_linear_with_a_learned_prior_starts_at_the_layer_and_trains_on():
    layer, x = random_layer(10, 4, seed=1)
    head = VariationalHead.from_linear(layer, means="learned", label_prior="learned")
    assert_same_posterior(head, layer, x)
    assert [p.shape for p in head.label_prior.parameters()] == [(4,)]


@pytest.mark.parametrize("covariance", ["diagonal", "isotropic", "shared", "unit"])
def test_from_linear_starts_at_the_layer_under_every_covariance(covariance):
    layer, x = random_layer(10, 4, seed=1)
    assert_same_posterior(VariationalHead.from_linear(layer, means="learned", covariance=covariance), layer, x)
    pulled = VariationalHead.from_linear(layer, means="learned", covariance=covariance, objective="pull")
    assert_same_posterior(pulled, layer, x)
    assert pulled.class_prior.means == "learned"


@pytest.mark.parametrize("means", [None, "axes", "learned"])
@pytest.mark.parametrize("bias", [True, False])
def test_from_linear_of_one_output_is_its_sigmoid(bias, means):
    # p(y=1|z) = sigmoid(w.z + b), and the layer's log odds come back as a difference of two outputs.
    layer, x = random_layer(6, 1, seed=2, bias=bias)
    head = VariationalHead.from_linear(layer, means=means)
    assert head.num_classes == 2
    probability = torch.sigmoid(layer(x)).squeeze(1)
    torch.testing.assert_close(head.log_posterior(x).exp()[:, 1], probability, rtol=1e-5, atol=0)
    back = head.as_linear()(x)
    torch.testing.assert_close(back[:, 1] - back[:, 0], layer(x).squeeze(1), rtol=1e-5, atol=1e-5)


def random_head(dim, classes, seed, covariance="shared", **options):
    torch.manual_seed(seed)
    head = VariationalHead(dim, classes, objective="ce", covariance=covariance, **options)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return head


@SETTINGS
@given(st.integers(1, 12), st.integers(2, 12), st.integers(0, 10**6), st.sampled_from(["shared", "unit"]), st.booleans())
def test_as_linear_predicts_as_the_head(dim, classes, seed, covariance, double):
    head = random_head(dim, classes, seed, covariance)
    head = head.double() if double else head
    layer = head.as_linear()
    x = 3 * torch.randn(40, dim, dtype=layer.weight.dtype)
    rtol = 1e-9 if double else 1e-5
    logits = layer(x).detach()
    # Sums of terms as large as the logits (which are at least as large as the log odds) are exact to their own size.
    size = max(1.0, float(logits.abs().max()), float(head(x).detach().abs().max()))
    torch.testing.assert_close(torch.log_softmax(logits, 1), head.log_posterior(x).detach(), rtol=rtol, atol=rtol * size)


def test_as_linear_folds_a_projection():
    head = random_head(7, 4, 0, latent_dim=3).double()
    x = torch.randn(40, 7, dtype=torch.float64)
    layer = head.as_linear()
    assert (layer.in_features, layer.out_features) == (7, 4)
    torch.testing.assert_close(torch.log_softmax(layer(x), 1), head.log_posterior(x), rtol=1e-9, atol=1e-9)


def test_as_linear_keeps_a_calibration():
    head = random_head(5, 4, 0).double()
    x = torch.randn(200, 5, dtype=torch.float64)
    plain = head.as_linear()
    factor = head.calibrate(x, torch.randint(4, (200,)))
    assert factor > 1.1  # random labels: less confidence is better
    torch.testing.assert_close(torch.log_softmax(head.as_linear()(x), 1), head.log_posterior(x), rtol=1e-9, atol=1e-9)
    assert float((torch.log_softmax(plain(x), 1) - head.log_posterior(x)).detach().abs().max()) > 0.1


@SETTINGS
@given(st.integers(1, 8), st.integers(0, 8), st.integers(0, 10**6))
def test_there_and_back_again_gives_the_layer_up_to_what_softmax_ignores(classes_less_one, extra, seed):
    # Weights and biases are determined up to a vector common to all classes.
    layer, _ = random_layer(classes_less_one + extra, classes_less_one + 1, seed, dtype=torch.float64)
    head = VariationalHead.from_linear(layer, means="learned")
    back = head.as_linear()
    torch.testing.assert_close(back.weight, layer.weight - layer.weight.mean(0), rtol=1e-9, atol=1e-9)
    size = max(1.0, float(head.class_prior.mean.detach().square().sum(1).max()))
    torch.testing.assert_close(back.bias, layer.bias - layer.bias.mean(), rtol=1e-9, atol=1e-9 * size)
