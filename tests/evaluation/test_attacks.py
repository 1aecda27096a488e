"""FGSM and PGD against foolbox's, and what every attack must keep to."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from varclass import Classifier, VariationalHead
from varclass.evaluation.attacks import fgsm, pgd, posterior_loss, training_loss

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it warns of numpy's own plans
    foolbox = pytest.importorskip("foolbox")

EPSILONS = [0.01, 0.1, 0.3]


@pytest.fixture(params=["ce", "vc"])
def model(request) -> Classifier:
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 6))
    return Classifier(encoder, VariationalHead(6, 3, objective=request.param)).double().eval()


@pytest.fixture
def batch() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    return torch.rand(12, 1, 8, 8, dtype=torch.float64), torch.randint(3, (12,))


def by_foolbox(model: Classifier, attack, x, y, epsilon) -> torch.Tensor:
    """foolbox attacks cross-entropy of logits, and a log joint may stand where it says logits."""
    wrapped = foolbox.PyTorchModel(model, bounds=(0, 1), device="cpu")
    return attack.run(wrapped, x, foolbox.criteria.Misclassification(y), epsilon=epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_fgsm_is_foolboxs(model, batch, epsilon):
    expected = by_foolbox(model, foolbox.attacks.LinfFastGradientAttack(), *batch, epsilon)
    torch.testing.assert_close(fgsm(posterior_loss(model), *batch, epsilon), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_pgd_without_a_random_start_is_foolboxs(model, batch, epsilon):
    attack = foolbox.attacks.LinfProjectedGradientDescentAttack(abs_stepsize=epsilon / 4, steps=7, random_start=False)
    expected = by_foolbox(model, attack, *batch, epsilon)
    found = pgd(posterior_loss(model), *batch, epsilon, steps=7, step_size=epsilon / 4)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("loss", [posterior_loss, training_loss])
def test_attacks_stay_in_the_ball_and_in_the_picture_and_make_the_loss_larger(model, batch, epsilon, loss):
    x, y = batch
    start = torch.rand_like(x) * 2 - 1
    for attacked in (fgsm(loss(model), x, y, epsilon), pgd(loss(model), x, y, epsilon, steps=5, start=start)):
        assert float((attacked - x).abs().max()) <= epsilon + 1e-12
        assert 0 <= float(attacked.min()) <= float(attacked.max()) <= 1
        assert not attacked.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())
    with torch.no_grad():
        assert posterior_loss(model)(fgsm(posterior_loss(model), x, y, 0.01), y) > posterior_loss(model)(x, y)


def test_pgd_is_at_least_as_strong_as_fgsm_and_a_random_start_is_where_it_begins(model, batch):
    x, y = batch
    loss = posterior_loss(model)
    with torch.no_grad():
        assert loss(pgd(loss, x, y, 0.1, steps=40), y) >= loss(fgsm(loss, x, y, 0.1), y)
    start = torch.from_numpy(np.random.default_rng(0).uniform(-1, 1, x.shape))
    found = pgd(loss, x, y, 0.1, steps=1, step_size=0.0, start=start)
    torch.testing.assert_close(found, (x + 0.1 * start).clamp(0, 1), rtol=0, atol=1e-12)
