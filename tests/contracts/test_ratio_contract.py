"""What every density-ratio estimator T(z, y) promises, under every class prior."""

import pytest
import torch

from varclass.core.head import PRIORS  # importing the head registers every family
from varclass.core.priors import ClassPrior
from varclass.core.ratio import RATIOS, RatioEstimator

B, C, D = 6, 4, 5
every_pair = pytest.mark.parametrize(("ratio", "prior"), [(r, p) for r in RATIOS for p in PRIORS])


def make(ratio: str, prior: str, *, moved: bool = True) -> tuple[RatioEstimator, ClassPrior, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    family = PRIORS[prior]
    class_prior = family(C, D, family.covariances[0], "learned", 2.0).double()
    estimator = RATIOS[ratio](C, D).double()
    if moved:
        with torch.no_grad():
            for parameter in (*estimator.parameters(), *class_prior.parameters()):
                parameter.add_(0.3 * torch.randn_like(parameter))
    z = class_prior.support(torch.randn(B, D, dtype=torch.float64))
    return estimator, class_prior, z.detach(), torch.randint(C, (B,))


@every_pair
def test_a_ratio_starts_at_zero_everywhere(ratio, prior):
    estimator, class_prior, z, y = make(ratio, prior, moved=False)
    assert bool((estimator.of_class(z, y, class_prior) == 0).all())
    assert bool((estimator.of_all(z, class_prior) == 0).all())


@every_pair
def test_a_ratio_can_leave_zero_at_its_first_step(ratio, prior):
    estimator, class_prior, z, y = make(ratio, prior, moved=False)
    torch.nn.functional.softplus(-estimator.of_class(z, y, class_prior)).mean().backward()
    assert any(bool((parameter.grad != 0).any()) for parameter in estimator.parameters())


@every_pair
def test_of_all_gathered_is_of_class(ratio, prior):
    estimator, class_prior, z, y = make(ratio, prior)
    everywhere = estimator.of_all(z, class_prior)
    assert everywhere.shape == (B, C)
    torch.testing.assert_close(
        estimator.of_class(z, y, class_prior), everywhere.gather(1, y[:, None])[:, 0], rtol=1e-9, atol=1e-9
    )
    assert torch.equal(estimator(z, None, class_prior), everywhere)
    assert torch.equal(estimator(z, y, class_prior), estimator.of_class(z, y, class_prior))
    assert estimator.of_class(z[:0], y[:0], class_prior).shape == (0,)
    assert estimator.of_all(z[:0], class_prior).shape == (0, C)


@every_pair
@pytest.mark.parametrize("labelled", [True, False], ids=["one class", "all classes"])
def test_frozen_has_the_same_value_and_moves_the_latents_alone(ratio, prior, labelled):
    estimator, class_prior, z, y = make(ratio, prior)
    given, z = (y if labelled else None), z.requires_grad_()
    frozen = estimator.frozen(z, given, class_prior)
    torch.testing.assert_close(frozen, estimator(z, given, class_prior), rtol=1e-9, atol=1e-12)
    frozen.sum().backward()
    attached = torch.autograd.grad(estimator(z, given, class_prior).sum(), z)[0]
    torch.testing.assert_close(z.grad, attached, rtol=1e-9, atol=1e-12)
    assert bool((z.grad != 0).any())
    assert all(parameter.grad is None for parameter in (*estimator.parameters(), *class_prior.parameters()))


@every_pair
def test_every_ratio_parameter_gets_a_gradient_and_theta_gets_none(ratio, prior):
    estimator, class_prior, z, y = make(ratio, prior)
    estimator(z, y, class_prior).square().sum().backward()
    assert all(bool((parameter.grad != 0).any()) for parameter in estimator.parameters())
    assert all(parameter.grad is None for parameter in class_prior.parameters())


@every_pair
def test_gradients_are_those_of_finite_differences(ratio, prior):
    estimator, class_prior, z, y = make(ratio, prior)
    few = [p for p in estimator.parameters() if p.numel() <= 64]  # of the MLP, its biases: the rest is nn.Linear's
    inputs = (z[:2].requires_grad_(), *few)
    assert torch.autograd.gradcheck(lambda z, *psi: estimator.of_class(z, y[:2], class_prior), inputs)
    assert torch.autograd.gradcheck(lambda z, *psi: estimator.of_all(z, class_prior), inputs)
