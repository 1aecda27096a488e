"""Appendix A.1 (sec:app_proof_ELBO_VC): under maximum likelihood the best latent of x is the argmax of E_{y|x} log p(y|z)."""

import torch
from torch import nn
from torch.nn import functional as F

from varclass import VariationalHead

CLASSES, DIM, PER_CLASS, ALPHA = 4, 3, 20, 1.0


def head_with_fixed_priors():
    torch.manual_seed(0)
    return VariationalHead(
        DIM, CLASSES, objective="ce", means="simplex", covariance="unit", separation=ALPHA, label_prior="uniform"
    ).double()


def train_free_latents(head, target, place, steps=400):
    """One free latent per sample, moved by the head's loss alone; `place` constrains it."""
    torch.manual_seed(1)
    free = nn.Parameter(torch.randn(len(target), DIM, dtype=torch.float64))
    optimizer = torch.optim.SGD([free], lr=len(target))  # the loss is a mean over samples: each latent moves at rate one
    start = place(free).detach().clone()
    for _ in range(steps):
        optimizer.zero_grad()
        head.loss(place(free), target).backward()
        optimizer.step()
    return start, place(free).detach()


def within_over_between(z, y):
    """Variance of the latents about their class's mean, relative to the variance of the class means."""
    means = torch.stack([z[y == c].mean(0) for c in range(CLASSES)])
    return float((z - means[y]).square().mean() / (means - means.mean(0)).square().mean())


def on_the_sphere(free):
    return ALPHA * F.normalize(free, dim=1)


def test_app_proof_elbo_vc_latents_of_a_class_collapse_to_one_point_under_cross_entropy():
    # |z| = alpha makes argmax_z p(y|z) unique (the footnote): every z_x of class y goes to alpha times w_y's direction.
    head, y = head_with_fixed_priors(), torch.arange(CLASSES).repeat(PER_CLASS)
    start, end = train_free_latents(head, y, on_the_sphere)
    goal = ALPHA * F.normalize(head.class_prior.mean, dim=1)[y]
    assert within_over_between(start, y) > 1
    assert float((start - goal).norm(dim=1).max()) > 1
    assert float((end - goal).norm(dim=1).max()) < 1e-5 * ALPHA  # the simplex is made in float32, so regular to 1e-7
    assert within_over_between(end, y) < 1e-10  # the square of that


def test_app_proof_elbo_vc_samples_with_different_label_distributions_do_not_collapse():
    # Where p(y|x) differs between samples, so does z* = argmax_z sum_y p(y|x) log p(y|z): there p(y|z*) = p(y|x).
    head = head_with_fixed_priors()
    torch.manual_seed(2)
    soft = torch.softmax(torch.randn(CLASSES * PER_CLASS, CLASSES, dtype=torch.float64), dim=1)
    _, end = train_free_latents(head, soft, lambda free: free, steps=1500)
    torch.testing.assert_close(head.log_posterior(end).exp(), soft, rtol=1e-9, atol=0)
    assert within_over_between(end, soft.argmax(1)) > 0.1


def test_app_proof_elbo_vc_samples_with_the_same_label_distribution_collapse_even_when_it_is_soft():
    # q(z|x) depends on x through p(y|x) alone: two groups of samples, two points.
    head = head_with_fixed_priors()
    kinds = torch.tensor([[0.7, 0.1, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4]], dtype=torch.float64)
    group = torch.arange(2).repeat(PER_CLASS)
    start, end = train_free_latents(head, kinds[group], lambda free: free)
    for g in range(2):
        assert float(start[group == g].std(0).min()) > 0.1
        assert float(end[group == g].std(0).max()) < 1e-9
    assert float((end[group == 0].mean(0) - end[group == 1].mean(0)).norm()) > 0.5
