"""eq:sce, its Corollary, and eq:LVC_1: what a softmax classifier assumes, and when its predictions are right."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from varclass import VariationalHead

N, DIM, CLASSES = 64, 5, 4


def head_with_random_parameters(covariance, seed=0, **options):
    torch.manual_seed(seed)
    head = VariationalHead(DIM, CLASSES, objective="ce", covariance=covariance, **options).double()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return head


def equivalent_linear(head):
    """w_y = mu_y / sigma^2, b_y = log p(y) - |mu_y / sigma|^2 / 2: the exponents of eq:sce (ii), written out."""
    mean, variance = head.class_prior.mean.detach(), head.class_prior.log_sigma().detach().exp().square()
    layer = torch.nn.Linear(DIM, CLASSES, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(mean / variance)
        layer.bias.copy_(head.label_prior.log_probs() - 0.5 * (mean.square() / variance).sum(1))
    return layer


@pytest.mark.parametrize("covariance", ["shared", "unit"])
def test_eq_sce_softmax_cross_entropy_is_the_special_case_of_a_common_covariance(covariance):
    # SCE of the equivalent nn.Linear and the head's log p(y|z) agree in value and in the gradient for the features.
    head = head_with_random_parameters(covariance)
    layer = equivalent_linear(head)
    features, y = torch.randn(N, DIM, dtype=torch.float64), torch.randint(CLASSES, (N,))
    ours, theirs = features.clone().requires_grad_(), features.clone().requires_grad_()
    loss, reference = head.terms(ours, y).posterior, F.cross_entropy(layer(theirs), y)
    torch.testing.assert_close(loss, reference, rtol=1e-9, atol=0)
    (mine,), (expected,) = torch.autograd.grad(loss, ours), torch.autograd.grad(reference, theirs)
    torch.testing.assert_close(mine, expected, rtol=1e-9, atol=1e-9 * float(expected.abs().max()))


@pytest.mark.parametrize("covariance", ["diagonal", "isotropic"])
def test_eq_sce_a_covariance_per_class_is_not_softmax(covariance):
    # The control: without equal scales no linear layer has the head's log odds, so second differences do not vanish.
    head = head_with_random_parameters(covariance)
    z, step = torch.randn(N, DIM, dtype=torch.float64), torch.randn(N, DIM, dtype=torch.float64)

    def curvature(head):
        odds = [(head(z + k * step) - head(z + k * step)[:, :1]).detach() for k in (-1, 0, 1)]
        return float((odds[0] - 2 * odds[1] + odds[2]).abs().max())

    assert curvature(head) > 0.1
    assert curvature(head_with_random_parameters("shared")) < 1e-9


@pytest.mark.parametrize("covariance", ["shared", "unit", "diagonal", "isotropic"])
def test_eq_sce_the_total_of_ce_is_log_posterior_plus_log_label(covariance):
    # J_CE = E[ log p(y|z) + log p_pi(y) ]
    head = head_with_random_parameters(covariance)
    features, y = torch.randn(N, DIM, dtype=torch.float64), torch.randint(CLASSES, (N,))
    terms = head.terms(features, y)
    label = -torch.log_softmax(head.label_prior.logits, 0)[y].mean()
    posterior = -torch.log_softmax(head(features), 1)[torch.arange(N), y].mean()
    torch.testing.assert_close(terms.label, label, rtol=1e-9, atol=0)
    torch.testing.assert_close(terms.posterior, posterior, rtol=1e-9, atol=0)
    torch.testing.assert_close(terms.total, posterior + label, rtol=1e-9, atol=0)
    assert terms.prior is None
    assert terms.ratio is None
    assert terms.discriminator is None


# --------------------------------------------------------------------------------------------------------- the Corollary


@torch.no_grad()
def calibration_errors(head, z, y, bins=10):
    """(confidence - accuracy) / its standard error, over all predictions first and then per bin of confidence.

    Given z, the number of hits is a sum of independent Bernoullis with the stated confidences, which is what is tested.
    """
    confidence, guess = head.log_posterior(z).exp().max(1)
    hit = (guess == y).double()
    found = []
    for inside in [torch.ones_like(guess, dtype=torch.bool), *(((confidence * bins).floor() == b) for b in range(bins))]:
        c = confidence[inside]
        variance = float((c * (1 - c)).sum())
        if variance > 10:  # enough for the sum to be close to normal
            found.append(float((c - hit[inside]).sum()) / math.sqrt(variance))
    return found


PRIORS = {
    "gaussian diagonal": {"covariance": "diagonal", "separation": 2.0},
    "gaussian shared": {"covariance": "shared", "separation": 2.0},
    "vmf": {"prior": "vmf", "separation": 2.0},
}


def anticipated_latents(name, widen=1.0):
    """A head with unequal scales and p(y), and latents whose sigma is `widen` times what the head anticipates."""
    torch.manual_seed(3)
    head = VariationalHead(3, 4, objective="ce", **PRIORS[name]).double()
    with torch.no_grad():
        head.class_prior.log_scale.add_(0.3 * torch.randn_like(head.class_prior.log_scale))
        head.label_prior.logits.copy_(torch.tensor([0.0, 0.5, 1.0, -0.5]))
        y = torch.multinomial(head.label_prior.probs(), 50_000, replacement=True)
        head.class_prior.scale_factor = widen
        z = head.sample(y)
        head.class_prior.scale_factor = 1.0
    return head, z, y


@pytest.mark.parametrize("name", PRIORS)
def test_corollary_of_eq_sce_latents_that_follow_the_priors_give_calibrated_predictions(name):
    # z ~ p(z|y), y ~ p(y): among predictions of confidence c, a share c is right, in every bin and on average.
    errors = calibration_errors(*anticipated_latents(name))
    assert len(errors) >= 6
    assert max(abs(e) for e in errors) < 5


@pytest.mark.parametrize("name", PRIORS)
def test_corollary_of_eq_sce_latents_wider_than_the_priors_give_overconfident_predictions(name):
    # The control: sigma 1.5 times the anticipated one is found out, on average and in most bins.
    errors = calibration_errors(*anticipated_latents(name, widen=1.5))
    assert errors[0] > 5
    assert sum(e > 5 for e in errors[1:]) >= 3


# ---------------------------------------------------------------------------------------------------------------- eq:LVC_1


def stochastic_head():
    torch.manual_seed(5)
    head = VariationalHead(2, 3, objective="ce", posterior="gaussian", separation=2.0, draws=8).double()
    with torch.no_grad():
        head.posterior.log_scale.weight.add_(0.2 * torch.randn_like(head.posterior.log_scale.weight))
    return head, torch.randn(200, 2, dtype=torch.float64)


def replayed_log_joints(head, features, seed):
    """The log joints of the draws that `head(features)` averages under this seed: (draws, B, C)."""
    torch.manual_seed(seed)
    scale, noise = head.posterior.scale(features), [torch.randn_like(features) for _ in range(head.draws // 2)]
    draws = [features + sign * scale * n for n in noise for sign in (1, -1)]
    return torch.stack([head.log_joint(z) for z in draws])


@torch.no_grad()
def test_eq_lvc_1_the_mean_log_posterior_bounds_the_log_of_the_mean_posterior_from_below():
    # ELBO_VC = E_q log p(y|z) <= log E_q p(y|z) = log p(y|x), with a gap wherever p(y|z) varies under q(z|x).
    head, features = stochastic_head()
    elbo = torch.log_softmax(replayed_log_joints(head, features, seed=7), dim=-1).mean(0)
    torch.manual_seed(7)
    gap = head.log_posterior(features) - elbo
    assert float(gap.min()) >= 0
    assert float(gap.mean()) > 0.01


@torch.no_grad()
def test_eq_lvc_1_the_gap_closes_as_q_becomes_a_delta():
    # With s(x) -> 1e-3 the gap is of order s^2 |d log p(y|z)/dz|^2; the slopes are at most the spread of the means, 2r.
    head, features = stochastic_head()
    with torch.no_grad():
        head.posterior.log_scale.weight.zero_()
        head.posterior.log_scale.bias.fill_(head.posterior.log_limit * math.asin(math.log(1e-3) / head.posterior.log_limit))
    elbo = torch.log_softmax(replayed_log_joints(head, features, seed=7), dim=-1).mean(0)
    torch.manual_seed(7)
    gap = head.log_posterior(features) - elbo
    largest_step = float((head.posterior.scale(features).max() * 5) * 2 * head.class_prior.mean.norm(dim=1).max())
    assert float(gap.max()) < largest_step**2


@torch.no_grad()
def test_eq_lvc_1_a_stochastic_prediction_is_the_mean_posterior_and_the_mean_evidence_of_its_draws():
    # softmax of the output is mean p(y|z), logsumexp of it is log mean p(z).
    head, features = stochastic_head()
    joints = replayed_log_joints(head, features, seed=9)
    torch.manual_seed(9)
    out = head(features)
    torch.testing.assert_close(torch.softmax(out, -1), torch.softmax(joints, -1).mean(0), rtol=1e-9, atol=0)
    torch.testing.assert_close(torch.logsumexp(out, -1), joints.exp().sum(-1).mean(0).log(), rtol=1e-9, atol=0)


@torch.no_grad()
def test_eq_lvc_1_the_loss_is_one_unbiased_draw_of_the_bound():
    # The mean over repeated losses is E_q log p(y|z), here by Gauss-Hermite quadrature, within 5 standard errors.
    head, features = stochastic_head()
    features, y = features[:20], torch.randint(3, (20,))
    nodes, weights = (torch.as_tensor(v) for v in np.polynomial.hermite_e.hermegauss(40))
    grid = torch.cartesian_prod(nodes, nodes)
    weight = torch.cartesian_prod(weights, weights).prod(1) / (2 * math.pi)
    z = features[:, None] + head.posterior.scale(features)[:, None] * grid
    log_posterior = torch.log_softmax(head.log_joint(z.reshape(-1, 2)), -1).reshape(20, -1, 3)
    expected = -(log_posterior[torch.arange(20), :, y] @ weight).mean()
    found = torch.stack([head.terms(features, y).posterior for _ in range(1000)])
    assert abs(float(found.mean() - expected)) < 5 * float(found.std()) / math.sqrt(len(found))
